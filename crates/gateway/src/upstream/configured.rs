//! The upstream that a configuration names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use blueflame_core::config;
use blueflame_core::yaml::Problem;

use super::{BadAddress, BadCertificates, BadRecording, Replay, Timeouts, Trust, Upstream, Web};
use crate::credential::{BadCredential, Credential};
use crate::script::Script;

/// What a configuration leaves to the place where it is used.
#[derive(Clone, Debug)]
pub struct Surroundings<'s> {
    /// Where relative paths of scripts start.
    pub directory: &'s Path,
    /// The key from the environment, if there is one.
    pub key: Option<Credential>,
    /// The recordings of the session that is replayed, the earliest first.
    pub recordings: Vec<PathBuf>,
}

/// An upstream that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadUpstream {
    #[error("`{provider}` needs a key, and `{variable}` is not set")]
    NoKey { provider: String, variable: String },
    #[error("`{variable}`: {source}")]
    BadKey { variable: String, source: BadCredential },
    #[error(transparent)]
    Address(#[from] BadAddress),
    #[error("`gateway.ca_file`: {0}")]
    Trust(#[from] BadCertificates),
    #[error("the script `{}` cannot be read", path.display())]
    ScriptFile { path: PathBuf, source: std::io::Error },
    #[error("the script `{}` has {} problem(s)", path.display(), problems.len())]
    Script { path: PathBuf, text: Vec<u8>, problems: Vec<Problem> },
    #[error(transparent)]
    Recording(#[from] BadRecording),
}

impl Upstream {
    /// Makes the upstream ready, or says why it cannot be used: before any
    /// agent is started.
    pub fn configured(
        config: &config::Gateway,
        surroundings: &Surroundings<'_>,
    ) -> Result<Upstream, BadUpstream> {
        let connect = Timeouts::default().connect;
        let trust = || match &config.ca_file {
            Some(file) => Trust::also(&surroundings.directory.join(file)),
            None => Ok(Trust::default()),
        };
        let web = |address: &str, needs_key: bool| {
            if config.passthrough_auth {
                return Ok(Upstream::Web(Web::passing_login(address, trust()?, connect)?));
            }
            if needs_key && surroundings.key.is_none() {
                let variable = config.credential_env.clone();
                return Err(BadUpstream::NoKey { provider: address.to_owned(), variable });
            }
            Ok(Upstream::Web(Web::new(address, surroundings.key.clone(), trust()?, connect)?))
        };
        match &config.upstream {
            config::Upstream::Anthropic => web(Web::ANTHROPIC, true),
            config::Upstream::OpenAi => web(Web::OPENAI, true),
            // Local servers often want none.
            config::Upstream::Url(address) => web(address, false),
            config::Upstream::Script(file) => {
                let path = surroundings.directory.join(file.trim());
                let text = std::fs::read(&path)
                    .map_err(|source| BadUpstream::ScriptFile { path: path.clone(), source })?;
                match Script::read(&text) {
                    Ok((script, _)) => Ok(Upstream::Script(Arc::new(script))),
                    Err(problems) => Err(BadUpstream::Script { path, text, problems }),
                }
            }
            config::Upstream::Replay(_) => {
                let paths: Vec<&Path> =
                    surroundings.recordings.iter().map(PathBuf::as_path).collect();
                Ok(Upstream::Replay(Arc::new(Replay::read(&paths)?)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(upstream: config::Upstream, key: Option<&str>, passthrough_auth: bool) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("good.yaml"), "replies: [{say: hi}]").unwrap();
        std::fs::write(dir.path().join("bad.yaml"), "replies: [{}, {}]").unwrap();
        let config = config::Gateway {
            upstream,
            credential_env: "SOME_KEY".to_owned(),
            passthrough_auth,
            ca_file: None,
            record: false,
            accounts: std::collections::BTreeMap::new(),
            prices: std::collections::BTreeMap::new(),
        };
        let key = key.map(|key| Credential::new(key).unwrap());
        let surroundings = Surroundings { directory: dir.path(), key, recordings: Vec::new() };
        match Upstream::configured(&config, &surroundings) {
            Ok(Upstream::Web(web)) => format!("web, own login: {}", web.passes_login()),
            Ok(Upstream::Script(_)) => "script".to_owned(),
            Ok(Upstream::Replay(_)) => "replay".to_owned(),
            Err(error) => error.to_string().replace(&dir.path().display().to_string(), ""),
        }
    }

    #[test]
    fn a_configuration_names_an_upstream_or_a_reason() {
        use config::Upstream::{Anthropic, OpenAi, Script, Url};
        let script = |file: &str| Script(file.to_owned());
        let url = Url("http://127.0.0.1:8080/v1".to_owned());
        for (upstream, key, passthrough, expected) in [
            (Anthropic, Some("k"), false, "web, own login: false"),
            (Anthropic, None, true, "web, own login: true"),
            (
                OpenAi,
                None,
                false,
                "`https://api.openai.com` needs a key, and `SOME_KEY` is not set",
            ),
            (url, None, false, "web, own login: false"),
            (script("good.yaml"), None, false, "script"),
            (script("bad.yaml"), None, false, "the script `/bad.yaml` has 2 problem(s)"),
            (script("none.yaml"), None, false, "the script `/none.yaml` cannot be read"),
        ] {
            assert_eq!(configured(upstream, key, passthrough), expected);
        }
    }
}

//! Executors, models, the gateway and the sandbox.

use std::collections::BTreeMap;

use super::super::{
    BUILT_IN_EXECUTORS, CustomExecutor, Executors, Gateway, ModelPrice, Sandbox, SandboxMode,
    Upstream, file,
};
use super::values::Check;
use crate::ids::{ExecutorName, SessionId};
use crate::money::Usd;
use crate::rules::PerRole;
use crate::yaml::{Spanned, one_of, path_below};

/// Where people keep credentials, below the home directory.
const SECRETS: [&str; 16] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".claude",
    ".codex",
    ".git-credentials",
    ".config/gh",
    ".config/gcloud",
    ".local/share/opencode",
    ".cargo/credentials.toml",
];

pub(super) fn models(check: Check<'_>, file: &file::Models) -> PerRole<String> {
    let model = |role: &str, name: &Spanned<String>| {
        let path = format!("models.{role}");
        let bad = name.is_empty()
            || name.starts_with('-')
            || name.chars().any(|c| c.is_whitespace() || c.is_control());
        if bad {
            let message = if name.is_empty() {
                "is empty".to_owned()
            } else {
                format!("is not a model name, got `{}`", name.value)
            };
            check.error(&path, name, message, "write an alias such as `sonnet`, or a full name");
        }
        name.value.clone()
    };
    PerRole {
        planner: model("planner", &file.planner),
        worker: model("worker", &file.worker),
        validator: model("validator", &file.validator),
        merger: model("merger", &file.merger),
    }
}

pub(super) fn executors(check: Check<'_>, file: &file::Executors) -> Option<Executors> {
    let custom = custom(check, file);
    let own = file.custom.keys().map(String::as_str);
    let own = own.filter(|name| !BUILT_IN_EXECUTORS.contains(name));
    let known: Vec<&str> = BUILT_IN_EXECUTORS.into_iter().chain(own).collect();
    let named = |path: &str, name: &Spanned<String>| {
        if !known.contains(&name.as_str()) {
            let hint = match check.problems.closest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("use {}, or define it in executors.custom", one_of(known.clone())),
            };
            check.error(
                path,
                name,
                format!("is not a known executor, got `{}`", name.value),
                &hint,
            );
            return None;
        }
        ExecutorName::new(name.value.clone()).ok()
    };
    let default = named("executors.default", &file.default);
    let fallback: Vec<ExecutorName> = file
        .fallback
        .iter()
        .enumerate()
        .filter_map(|(index, name)| named(&format!("executors.fallback[{index}]"), name))
        .collect();
    let chain = |role: &str, own: &Option<Spanned<String>>| {
        let first = match own {
            Some(name) => named(&format!("executors.{role}"), name),
            None => default.clone(),
        };
        let mut chain: Vec<ExecutorName> = first.into_iter().collect();
        for name in &fallback {
            if !chain.contains(name) {
                chain.push(name.clone());
            }
        }
        chain
    };
    let chains = PerRole {
        planner: chain("planner", &file.planner),
        worker: chain("worker", &file.worker),
        validator: chain("validator", &file.validator),
        merger: chain("merger", &file.merger),
    };
    Some(Executors { chains, custom: custom? })
}

fn custom(
    check: Check<'_>,
    file: &file::Executors,
) -> Option<BTreeMap<ExecutorName, CustomExecutor>> {
    let mut all = BTreeMap::new();
    let mut good = true;
    for (name, executor) in &file.custom {
        let path = path_below("executors.custom", name);
        match ExecutorName::new(name.clone()) {
            Err(bad) => {
                check.error(&path, executor, format!("is not a good name: {}", bad.rule), "");
                good = false;
            }
            Ok(_) if BUILT_IN_EXECUTORS.contains(&name.as_str()) => {
                let hint = "choose another name";
                check.error(&path, executor, "is the name of a built-in executor", hint);
                good = false;
            }
            Ok(name) => {
                let custom = CustomExecutor {
                    command: executor.command.iter().map(|word| word.value.clone()).collect(),
                    dialect: executor.dialect.value,
                };
                all.insert(name, custom);
            }
        }
        if executor.command.first().is_none_or(|program| program.trim().is_empty()) {
            let hint = "add `command: [\"my-agent\", \"--json\"]`";
            check.error(&format!("{path}.command"), executor, "names no program", hint);
            good = false;
        }
        for (index, word) in executor.command.iter().enumerate() {
            check.no_strange_characters(&format!("{path}.command[{index}]"), word);
        }
    }
    good.then_some(all)
}

pub(super) fn gateway(check: Check<'_>, file: &file::Gateway) -> Option<Gateway> {
    let upstream = upstream(check, &file.upstream);
    let name = &file.credential_env;
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !valid {
        // The value may be a key that was pasted here; it is not repeated.
        check.error(
            "gateway.credential_env",
            name,
            "is not the name of an environment variable",
            "write a name such as ANTHROPIC_API_KEY; the key itself does not belong in this file",
        );
    }
    if upstream == Some(Upstream::OpenAi) && name.span.is_none() {
        check.warning(
            "gateway.credential_env",
            &file.upstream,
            "still names the key for Anthropic, `ANTHROPIC_API_KEY`",
            "add `credential_env: OPENAI_API_KEY`",
        );
    }
    let prices = prices(check, file);
    Some(Gateway {
        upstream: upstream?,
        credential_env: name.value.clone(),
        passthrough_auth: file.passthrough_auth.value,
        ca_file: file.ca_file.as_ref().map(|path| path.value.clone()),
        record: file.record.value,
        prices: prices?,
    })
}

fn prices(check: Check<'_>, file: &file::Gateway) -> Option<BTreeMap<String, ModelPrice>> {
    let mut all = BTreeMap::new();
    let mut good = true;
    for (model, written) in &file.prices {
        let path = path_below("gateway.prices", model);
        let dollars = |key: &str, value: &Spanned<f64>| {
            Usd::from_dollars(value.value).or_else(|| {
                let path = format!("{path}.{key}");
                check.error(&path, value, format!("is no price, got `{}`", value.value), "");
                None
            })
        };
        let optional = |key: &str, value: &Option<Spanned<f64>>| match value {
            None => Some(None),
            Some(value) => dollars(key, value).map(Some),
        };
        let price = (
            dollars("input", &written.input),
            dollars("output", &written.output),
            optional("cache_read", &written.cache_read),
            optional("cache_write", &written.cache_write),
        );
        if let (Some(input), Some(output), Some(cache_read), Some(cache_write)) = price {
            // A price of nothing would take the brake off without a word.
            if written.input.span.is_none() || written.output.span.is_none() {
                let hint = "write both, 0 for a model that costs nothing";
                check.error(&path, written, "needs a price for `input` and `output`", hint);
                good = false;
            }
            all.insert(model.clone(), ModelPrice { input, output, cache_read, cache_write });
        } else {
            good = false;
        }
    }
    good.then_some(all)
}

fn upstream(check: Check<'_>, written: &Spanned<String>) -> Option<Upstream> {
    let path = "gateway.upstream";
    let text = written.trim();
    let refuse = |message: &str, hint: &str| {
        check.error(path, written, format!("{message}, got `{text}`"), hint);
        None
    };
    if let Some(file) = text.strip_prefix("script:") {
        return if file.trim().is_empty() {
            refuse("names no script file", "write `script:FILE`")
        } else {
            Some(Upstream::Script(file.to_owned()))
        };
    }
    if let Some(session) = text.strip_prefix("replay:") {
        return SessionId::new(session).map(Upstream::Replay).ok().or_else(|| {
            refuse("names no session", "write `replay:` and an id like ses-20260206-143022")
        });
    }
    if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            let hint = "name the key's variable in credential_env";
            check.error(path, written, "contains a login, which does not belong in a file", hint);
            return None;
        }
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        if host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return refuse("is not a web address", "write it like `https://api.example.com`");
        }
        if text.starts_with("http://") && !matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
            check.warning(path, written, "sends your key unencrypted", "use `https://`");
        }
        return Some(Upstream::Url(text.to_owned()));
    }
    match text {
        "anthropic" => Some(Upstream::Anthropic),
        "openai" => Some(Upstream::OpenAi),
        _ => refuse(
            "is not a known upstream",
            "use `anthropic`, `openai`, `https://...`, `script:FILE` or `replay:SESSION`",
        ),
    }
}

pub(super) fn sandbox(check: Check<'_>, file: &file::Sandbox) -> Sandbox {
    if file.allow_network.value {
        check.error(
            "sandbox.allow_network",
            &file.allow_network,
            "must be false: agents never have network access",
            "agents reach their model through the gateway and need nothing else; remove the line",
        );
    }
    if file.mode.value == SandboxMode::Off {
        check.warning(
            "sandbox.mode",
            &file.mode,
            "is off: agents can read and change everything that you can",
            "use `auto` unless this machine is itself a sandbox",
        );
    }
    for (index, path) in file.read.iter().enumerate() {
        if let Some((message, hint)) = unreadable(path) {
            let message = format!("{message}, got `{}`", path.value);
            check.error(&format!("sandbox.read[{index}]"), path, message, hint);
        }
    }
    let most_mb = 16_777_216;
    Sandbox {
        mode: file.mode.value,
        read: file.read.iter().map(|path| path.value.clone()).collect(),
        max_cpu_seconds: check.range("sandbox.max_cpu_seconds", &file.max_cpu_seconds, 1..=604_800),
        max_memory_mb: check.range("sandbox.max_memory_mb", &file.max_memory_mb, 64..=most_mb),
        max_file_size_mb: check.range(
            "sandbox.max_file_size_mb",
            &file.max_file_size_mb,
            1..=most_mb,
        ),
        max_open_files: check.range("sandbox.max_open_files", &file.max_open_files, 64..=1_048_576),
        max_disk_mb: check.range("sandbox.max_disk_mb", &file.max_disk_mb, 16..=most_mb),
        process_limit: file.process_limit.value,
    }
}

/// Whether a path is a home directory, or in or above a place of credentials.
pub fn holds_credentials(path: &str) -> bool {
    unreadable(path).is_some()
}

/// Why agents may not read a path, if so.
fn unreadable(path: &str) -> Option<(&'static str, &'static str)> {
    let narrower = "name the directory that is needed, such as `~/.cargo/registry`";
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if !path.starts_with('/') && !path.starts_with("~/") && path != "~" {
        return Some(("must be absolute or start with `~/`", narrower));
    }
    if parts.contains(&"..") || path.chars().any(char::is_control) {
        return Some(("must not contain `..`", narrower));
    }
    // What is left of the path below a home directory.
    let below_home = match parts.as_slice() {
        ["~" | "root", rest @ ..] | ["home" | "Users", _, rest @ ..] => rest.join("/"),
        [] | ["home" | "Users"] => String::new(),
        _ => return None,
    };
    let holds = |secret: &&str| {
        below_home.is_empty()
            || below_home == **secret
            || below_home.starts_with(&format!("{secret}/"))
            || secret.starts_with(&format!("{below_home}/"))
    };
    SECRETS.iter().any(holds).then_some(("holds credentials", narrower))
}

#[cfg(test)]
mod tests {
    use super::unreadable;

    #[test]
    fn directories_with_credentials_stay_closed() {
        for open in ["~/.rustup", "~/.cargo/registry", "/usr/share/dict", "/home/me/.npm/_cacache"]
        {
            assert_eq!(unreadable(open), None, "{open}");
        }
        for closed in [
            "~",
            "~/",
            "/",
            "/home",
            "/home/me",
            "/root",
            "~/.ssh",
            "~/.ssh/id_rsa",
            "~/.config",
            "/home/me/.aws",
            "~/.cargo",
            "~/.claude/",
            "relative",
            "~/../x",
            "/Users/me/.kube",
            "~other/x",
            "",
        ] {
            assert!(unreadable(closed).is_some(), "{closed} was opened");
        }
    }
}

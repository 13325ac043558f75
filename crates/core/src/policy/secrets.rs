//! Which files look like they hold secrets.
//!
//! A blocked path must not be changed. If it looks like a secret it is not read
//! either, while `go.mod` and the like may be looked at.

use globset::GlobBuilder;

use super::Policy;
use super::rules::fold;
use crate::path_pattern::expand;

/// Parts of names, in lower case.
const EXTENSIONS: &[&str] =
    &["secret", "secrets", "key", "pem", "p12", "pfx", "jks", "keystore", "kdbx", "asc", "gpg"];
const BEGINNINGS: &[&str] = &[
    ".env",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "credential",
    "secret",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
];
const DIRECTORIES: &[&str] = &[".ssh", ".aws", ".gnupg", ".kube", ".docker"];

/// Names that stand for the secrets a pattern could be after.
const SAMPLES: &[&str] = &[
    ".env",
    ".env.local",
    ".env.production",
    "a.secret",
    "a.key",
    "server.key",
    "a.pem",
    "a.p12",
    "id_rsa",
    "id_ed25519",
    "credentials.json",
    "secrets.yaml",
    ".netrc",
    ".npmrc",
];

/// Names that a pattern for ordinary files would match as well.
const ORDINARY: &[&str] =
    &["a", "a.go", "main.rs", "README.md", "index.ts", ".x", "a.json", "a.yaml"];

/// Whether a path, by its names, looks like a secret.
pub(super) fn looks_secret(path: &str) -> bool {
    fold(path).split('/').any(|name| {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        DIRECTORIES.contains(&name)
            || EXTENSIONS.contains(&extension)
            || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
    })
}

impl Policy {
    /// Whether a glob is after secrets that are blocked: one of its readings
    /// matches some, and nothing ordinary.
    pub(super) fn seeks_secrets(&self, glob: &str) -> bool {
        let globs: Vec<&str> =
            if glob.contains('{') { vec![glob] } else { glob.split(',').collect() };
        globs.into_iter().any(|glob| match expand(&fold(glob)) {
            Ok(readings) => readings.iter().any(|reading| self.reading_seeks_secrets(reading)),
            Err(_) => true,
        })
    }

    fn reading_seeks_secrets(&self, glob: &str) -> bool {
        let blocked = |name: &str| looks_secret(name) && self.blocked_by(name).is_some();
        if blocked(glob) {
            return true;
        }
        let name = glob.rsplit('/').next().unwrap_or_default();
        let Ok(matcher) = GlobBuilder::new(name).literal_separator(true).build() else {
            return true;
        };
        let matcher = matcher.compile_matcher();
        SAMPLES.iter().any(|sample| matcher.is_match(sample) && blocked(sample))
            && !ORDINARY.iter().any(|sample| matcher.is_match(sample))
    }
}

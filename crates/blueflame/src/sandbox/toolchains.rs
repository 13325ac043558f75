//! Compilers and interpreters that are installed in the person's home. Only the
//! directories that programs are in become visible, never one with credentials
//! beside them.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use blueflame_core::config::{self, holds_credentials};

use super::plan::{Limits, Terms, Tier};

/// Version managers: the variable that says where one lives, its usual place in
/// the home, and what of `PATH` shows that it is used.
const MANAGERS: [(&str, &str, &str); 5] = [
    ("RUSTUP_HOME", ".rustup", ".cargo/bin"),
    ("PYENV_ROOT", ".pyenv", ".pyenv"),
    ("RBENV_ROOT", ".rbenv", ".rbenv"),
    ("VOLTA_HOME", ".volta", ".volta"),
    ("NVM_DIR", ".nvm", ".nvm"),
];

/// Downloads that builds without a network need, below the home, for programs
/// that are content to read them.
const CACHES: [&str; 2] = [".cargo/registry", ".cargo/git"];

/// The terms of a session: what the configuration says, with what this machine
/// has.
pub fn terms(config: &config::Sandbox, tier: Tier, path: &str) -> Terms {
    let home = env::home_dir().unwrap_or_default();
    let mut terms = Terms { tier, limits: Limits::of_agents(config), ..Terms::default() };
    for named in &config.read {
        terms.read.push(match named.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => PathBuf::from(named),
        });
    }
    for place in env::split_paths(path) {
        // Some people have their home in `PATH`.
        let whole_home = home.starts_with(&place) || holds_credentials(&place.to_string_lossy());
        if place.is_absolute() && place.is_dir() && !whole_home {
            terms.read.push(installation(&place));
        }
    }
    terms.variables = managers(&home, path);
    terms.read.extend(terms.variables.values().map(PathBuf::from));
    terms.in_home = caches(&home);
    terms
}

/// The directory that a directory of programs belongs to, if it is safe to show.
fn installation(programs: &Path) -> PathBuf {
    let whole = programs.parent().filter(|_| programs.ends_with("bin")).filter(|whole| {
        !holds_credentials(&whole.to_string_lossy())
            && whole.join("lib").is_dir()
            && !whole.ends_with(".local")
            // Somebody's work, not an installation.
            && !whole.join(".git").exists()
    });
    whole.unwrap_or(programs).to_owned()
}

fn managers(home: &Path, path: &str) -> BTreeMap<String, String> {
    let used = |sign: &str| env::split_paths(path).any(|place| place.starts_with(home.join(sign)));
    let found = MANAGERS.iter().filter_map(|(variable, usual, sign)| {
        let place = match env::var_os(variable) {
            Some(place) => PathBuf::from(place),
            None if used(sign) => home.join(usual),
            None => return None,
        };
        let text = place.to_str()?.to_owned();
        let safe = place.is_absolute() && place.is_dir() && !holds_credentials(&text);
        safe.then(|| ((*variable).to_owned(), text))
    });
    found.collect()
}

fn caches(home: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let found = CACHES.iter().map(|name| (PathBuf::from(name), home.join(name)));
    found.filter(|(_, place)| place.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_never_an_installation() {
        for (programs, shown) in [
            ("/root/.cargo/bin", "/root/.cargo/bin"),
            ("/home/me/bin", "/home/me/bin"),
            ("/home/me/.local/bin", "/home/me/.local/bin"),
            ("/opt/nothing/bin", "/opt/nothing/bin"),
            ("/usr/bin", "/usr"),
        ] {
            assert_eq!(installation(Path::new(programs)), Path::new(shown), "{programs}");
        }
    }
}

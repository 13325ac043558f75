//! Compilers and interpreters that are installed in the person's home. Only the
//! directories that programs are in become visible, never one with credentials
//! beside them.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use blueflame_core::config::{self, holds_credentials};

use super::plan::{Boundary, Limits, Terms, Tier};

/// The variable that says where something is, and its usual place in the home.
type Named = (&'static str, &'static str);

/// Version managers. In a home of its own, the `cargo` of rustup or the `node` of
/// one of these finds no version of itself unless it is told.
const MANAGERS: [Named; 6] = [
    ("RUSTUP_HOME", ".rustup"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("VOLTA_HOME", ".volta"),
    ("NVM_DIR", ".nvm"),
    ("ASDF_DATA_DIR", ".asdf"),
];

/// What tools have downloaded, with settings and logins beside it. A sandbox
/// does not show these, and a tool that is sent there fails.
const STORES: [Named; 3] =
    [("CARGO_HOME", ".cargo"), ("GOMODCACHE", "go/pkg/mod"), ("npm_config_cache", ".npm")];

/// Downloads that builds without a network need, below the home, for programs
/// that are content to read them.
const CACHES: [&str; 2] = [".cargo/registry", ".cargo/git"];

/// The terms of a session: what the configuration says, with what this machine
/// has.
pub fn terms(config: &config::Sandbox, boundary: Boundary, path: &str) -> Terms {
    let home = env::home_dir().unwrap_or_default();
    let limits = Limits::of_agents(config, boundary.counting);
    let mut terms = Terms { tier: boundary.tier, limits, ..Terms::default() };
    terms.read = named(config);
    for place in env::split_paths(path) {
        // Some people have their home in `PATH`.
        let whole_home = home.starts_with(&place) || holds_credentials(&place.to_string_lossy());
        if place.is_absolute() && place.is_dir() && !whole_home {
            terms.read.push(installation(&place));
        }
    }
    terms.variables = found(&MANAGERS, &home, |name| env::var_os(name))
        .into_iter()
        .filter(|(_, place)| !holds_credentials(place))
        .collect();
    terms.read.extend(terms.variables.values().map(PathBuf::from));
    terms.in_home = caches(&home);
    terms
}

/// What the configuration names for agents to read.
pub(super) fn named(config: &config::Sandbox) -> Vec<PathBuf> {
    let place = |named: &String| match named.strip_prefix("~/") {
        Some(rest) => env::home_dir().unwrap_or_default().join(rest),
        None => PathBuf::from(named),
    };
    config.read.iter().map(place).collect()
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

/// Variables that lead the commands of checks to what the person's tools have
/// downloaded, where no sandbox hides it.
pub fn stores(tier: Tier) -> BTreeMap<String, String> {
    match tier {
        Tier::Off => found(&STORES, &env::home_dir().unwrap_or_default(), |name| env::var_os(name)),
        Tier::Namespaces | Tier::Landlock => BTreeMap::new(),
    }
}

fn found(
    places: &[Named],
    home: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> BTreeMap<String, String> {
    let places = places.iter().filter_map(|(name, usual)| {
        let place = variable(name).map_or_else(|| home.join(usual), PathBuf::from);
        let text = place.to_str()?.to_owned();
        (place.is_absolute() && place.is_dir()).then(|| ((*name).to_owned(), text))
    });
    places.collect()
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

    #[test]
    fn nobody_in_a_sandbox_is_sent_to_a_store() {
        assert_eq!(stores(Tier::Namespaces), BTreeMap::new());
        assert_eq!(stores(Tier::Landlock), BTreeMap::new());
    }

    #[test]
    fn tools_are_found_where_they_are() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        for name in ["home/.rustup", "home/.cargo", "home/.nvm", "cargo", "pyenv"] {
            std::fs::create_dir_all(place(name)).unwrap();
        }
        let home = PathBuf::from(place("home"));
        let told = |set: &[(&str, String)]| {
            found(&[&MANAGERS[..], &STORES[..]].concat(), &home, |name| {
                set.iter().find(|it| it.0 == name).map(|it| it.1.clone().into())
            })
        };
        let expected = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, at)| ((*name).to_owned(), place(at))).collect()
        };
        assert_eq!(
            told(&[]),
            expected(&[
                ("RUSTUP_HOME", "home/.rustup"),
                ("CARGO_HOME", "home/.cargo"),
                ("NVM_DIR", "home/.nvm"),
            ])
        );
        let set = [
            ("CARGO_HOME", place("cargo")),
            ("PYENV_ROOT", place("pyenv")),
            ("RUSTUP_HOME", "relative".to_owned()),
            ("NVM_DIR", place("nowhere")),
        ];
        assert_eq!(told(&set), expected(&[("CARGO_HOME", "cargo"), ("PYENV_ROOT", "pyenv")]));
    }
}

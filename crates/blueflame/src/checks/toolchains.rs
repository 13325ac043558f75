//! Compilers and interpreters that are installed in the person's home.
//!
//! Commands have a home of their own, in which the `cargo` of rustup or the
//! `node` of a version manager finds no version of itself, and in which a build
//! has to download everything once more. So they are told where the person's
//! tools are.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use blueflame_core::config::SandboxMode;

/// The variable that says where something is, and its usual place in the home.
type Named = (&'static str, &'static str);

/// Version managers.
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

/// Variables that lead to the tools of whoever runs this program.
pub fn variables(sandbox: SandboxMode) -> BTreeMap<String, String> {
    let stores = if sandbox == SandboxMode::Off { &STORES[..] } else { &[] };
    let home = env::home_dir().unwrap_or_default();
    let places = MANAGERS.iter().chain(stores);
    found(places, &home, |name| env::var_os(name))
}

fn found<'p>(
    places: impl Iterator<Item = &'p Named>,
    home: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> BTreeMap<String, String> {
    let places = places.filter_map(|(name, usual)| {
        let place = variable(name).map_or_else(|| home.join(usual), PathBuf::from);
        let text = place.to_str()?.to_owned();
        (place.is_absolute() && place.is_dir()).then(|| ((*name).to_owned(), text))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_in_a_sandbox_is_sent_to_a_store() {
        for mode in [SandboxMode::Auto, SandboxMode::Namespaces, SandboxMode::Landlock] {
            let told = variables(mode);
            assert!(STORES.iter().all(|(name, _)| !told.contains_key(*name)), "{mode:?}");
        }
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
            let places = MANAGERS.iter().chain(&STORES);
            found(places, &home, |name| {
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

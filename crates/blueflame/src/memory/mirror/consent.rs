//! That the person lets `bd` be run for a repository. It is kept among the person's
//! own things, where nothing that a repository brings along can say so for them.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::brought::Along;
use super::place::Place;
use crate::atomic_file::{self, AtomicError, Durability};

/// What the person agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consent {
    /// The directory that `bd` may be run for.
    directory: PathBuf,
    /// The mark of what others had put there, which `bd` runs and obeys.
    brought: Option<String>,
}

impl Consent {
    /// Whether it is for what is there now; nothing needs no consent of its own.
    pub fn covers(&self, brought: Option<&Along>) -> bool {
        brought.is_none_or(|it| self.brought.as_ref() == Some(&it.mark))
    }
}

/// Why a consent cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum ConsentError {
    #[error("there is no home directory to keep your consent in")]
    NoHome,
    #[error("your consent would be kept in the repository itself, as `{}`", .0.display())]
    Inside(PathBuf),
    #[error("cannot make `{}`: {source}", path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] AtomicError),
}

/// Where the person's programs keep what they have to know from one time to the next.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: Option<PathBuf>,
}

impl StateDirectory {
    /// That of the person who runs this program.
    pub fn here() -> StateDirectory {
        let named = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
        let usual = || env::home_dir().map(|home| home.join(".local/state"));
        // One that depends on where we are is not to be used.
        let is_fixed = |path: &PathBuf| path.is_absolute();
        let path = named.filter(is_fixed).or_else(|| usual().filter(is_fixed));
        StateDirectory { path: path.map(|it| it.join("blueflame")) }
    }

    pub fn at(path: &Path) -> StateDirectory {
        StateDirectory { path: Some(path.to_owned()) }
    }

    /// What the person agreed to for this place, if anything.
    pub fn consent(&self, place: &Place) -> Option<Consent> {
        let consent: Consent =
            serde_json::from_slice(&fs::read(self.file(place).ok()?).ok()?).ok()?;
        (consent.directory == real(place)).then_some(consent)
    }

    /// Keeps what the person agreed to.
    pub fn agree(&self, place: &Place, brought: Option<&Along>) -> Result<(), ConsentError> {
        let file = self.file(place)?;
        let parent = file.parent().unwrap_or(&file);
        fs::create_dir_all(parent)
            .map_err(|source| ConsentError::Make { path: parent.to_owned(), source })?;
        // Only now every link on the way can be followed.
        let file = self.file(place)?;
        let consent =
            Consent { directory: real(place), brought: brought.map(|it| it.mark.clone()) };
        let text = serde_json::to_vec(&consent).unwrap_or_default();
        Ok(atomic_file::replace(&file, &text, Durability::Power)?)
    }

    fn file(&self, place: &Place) -> Result<PathBuf, ConsentError> {
        let root = self.path.as_ref().ok_or(ConsentError::NoHome)?.join("beads");
        let root = root.canonicalize().unwrap_or(root);
        let directory = real(place);
        let name = blake3::hash(directory.as_os_str().as_encoded_bytes()).to_hex();
        let file = root.join(format!("{}.json", &name[..32]));
        // What is in a checkout may be committed.
        if directory.parent().is_some_and(|home| file.starts_with(home)) {
            return Err(ConsentError::Inside(file));
        }
        Ok(file)
    }
}

/// The directory by the name that it has wherever one comes from. It need not be
/// there yet.
fn real(place: &Place) -> PathBuf {
    let name = place.directory.file_name().unwrap_or_default();
    place.home.canonicalize().unwrap_or_else(|_| place.home.clone()).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_agreed_holds_for_one_place_and_is_never_in_a_repository() {
        let root = tempfile::tempdir().unwrap();
        let (one, other) = (root.path().join("one"), root.path().join("other"));
        fs::create_dir_all(&one).unwrap();
        fs::create_dir_all(&other).unwrap();
        let (one, other) = (Place::in_directory(&one), Place::in_directory(&other));
        let own = StateDirectory::at(&root.path().join("state"));
        assert_eq!(own.consent(&one), None);
        let brought = |mark: &str| Along { what: "something", mark: mark.to_owned() };
        own.agree(&one, None).unwrap();
        assert!(own.consent(&one).unwrap().covers(None));
        assert!(!own.consent(&one).unwrap().covers(Some(&brought("a"))));
        assert_eq!(own.consent(&other), None);
        // The same for another place is none.
        fs::copy(own.file(&one).unwrap(), own.file(&other).unwrap()).unwrap();
        assert_eq!(own.consent(&other), None);
        own.agree(&one, Some(&brought("a"))).unwrap();
        assert!(own.consent(&one).unwrap().covers(Some(&brought("a"))));
        assert!(!own.consent(&one).unwrap().covers(Some(&brought("b"))), "it came later");

        for within in [one.home.join("state"), one.directory.clone()] {
            let carried = StateDirectory::at(&within);
            assert!(matches!(carried.agree(&one, None), Err(ConsentError::Inside(_))));
            // Even if somebody put the very file there.
            let name = own.file(&one).unwrap();
            let forged = within.join("beads").join(name.file_name().unwrap());
            fs::create_dir_all(forged.parent().unwrap()).unwrap();
            fs::copy(name, forged).unwrap();
            assert_eq!(carried.consent(&one), None);
        }
        assert_eq!(StateDirectory { path: None }.consent(&one), None);
    }
}

//! How the objects of a repository are named.

use blueflame_core::ids::Oid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// That of a repository which has an object of this name.
    pub fn of(oid: &Oid) -> ObjectFormat {
        if oid.as_str().len() == 40 { ObjectFormat::Sha1 } else { ObjectFormat::Sha256 }
    }

    /// As git calls it.
    pub fn name(self) -> &'static str {
        match self {
            ObjectFormat::Sha1 => "sha1",
            ObjectFormat::Sha256 => "sha256",
        }
    }

    /// The tree without anything in it, which git knows without having it.
    pub fn empty_tree(self) -> &'static str {
        match self {
            ObjectFormat::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            ObjectFormat::Sha256 => {
                "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::objects::Objects;
    use crate::git::plumbing::Plumbing;

    #[test]
    fn git_has_the_same_names_for_the_empty_tree() {
        for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
            let dir = tempfile::tempdir().unwrap();
            let git = Plumbing::of_repository(Objects::of(dir.path()));
            let init = ["init", "--quiet", "--bare", "--object-format", format.name()];
            git.call(init).answer().unwrap();
            let named = git.call(["hash-object", "-t", "tree", "--stdin"]).input("");
            let named = named.answer().unwrap().oid().unwrap();
            assert_eq!(ObjectFormat::of(&named), format);
            assert_eq!(format.empty_tree(), named.as_str(), "{format:?}");
        }
    }
}

//! Sockets among the files that agents may read. A socket that is seen can be
//! connected to, whatever is read-only, and somebody outside answers.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// How many names are looked at: more than that are no configuration any more.
const MOST: usize = 200_000;

/// What a look at some places came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    None,
    At(PathBuf),
    /// There was too much to look at, in this place.
    Unknown(PathBuf),
}

/// Looks for a socket in these places.
pub(super) fn look(places: &[PathBuf]) -> Sockets {
    for place in places {
        let mut left = vec![place.clone()];
        let mut seen = 0;
        while let Some(path) = left.pop() {
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            if found.file_type().is_socket() {
                return Sockets::At(path);
            }
            if found.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                // Plain files, of which there are many, are not looked at again.
                let kinds = entries.filter(|it| !it.file_type().is_ok_and(|kind| kind.is_file()));
                left.extend(kinds.map(|entry| entry.path()));
                seen += 1;
            }
            if seen > MOST {
                return Sockets::Unknown(place.clone());
            }
        }
    }
    Sockets::None
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_is_found_however_deep_it_lies() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "").unwrap();
        let places = [place.path().to_owned()];
        assert_eq!(look(&places), Sockets::None);
        let socket = deep.join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(look(&places), Sockets::At(socket));
    }
}

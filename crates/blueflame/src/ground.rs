//! The real file system, as the policy wants to know it.
//!
//! A path is followed name by name, as the system does it, but without opening
//! anything: through symbolic links, also dangling ones, and past its existing
//! part. What is found may change before the agent uses it; that gap is closed
//! by the sandbox, not here.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use blueflame_core::policy::{Found, Ground, Resolved};

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

/// The workspace of one agent.
#[derive(Clone, Debug)]
pub struct RealGround {
    workspace: String,
}

#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    #[error("the workspace `{path}` cannot be found: {source}", path = path.display())]
    Missing { path: PathBuf, source: io::Error },
    #[error("the workspace's path is not UTF-8: `{path}`", path = path.display())]
    NotText { path: PathBuf },
}

impl RealGround {
    pub fn new(workspace: &Path) -> Result<Self, GroundError> {
        let path = fs::canonicalize(workspace)
            .map_err(|source| GroundError::Missing { path: workspace.to_owned(), source })?;
        match path.into_os_string().into_string() {
            Ok(workspace) => Ok(RealGround { workspace }),
            Err(path) => Err(GroundError::NotText { path: path.into() }),
        }
    }
}

impl Ground for RealGround {
    fn workspace(&self) -> &str {
        &self.workspace
    }

    fn resolve(&self, path: &str) -> Resolved {
        match follow(path) {
            Ok((path, found)) => Resolved::At { path, found },
            Err(why) => Resolved::Lost(why),
        }
    }

    fn names_in(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

fn follow(path: &str) -> Result<(String, Found), String> {
    if !path.starts_with('/') {
        return Err("it is not absolute".to_owned());
    }
    let mut todo: VecDeque<String> = path.split('/').map(str::to_owned).collect();
    let mut at = String::new();
    let mut found = Found::Directory;
    let mut links = 0;
    while let Some(name) = todo.pop_front() {
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                at.truncate(at.rfind('/').unwrap_or(0));
                found = look(&at)?.0;
                continue;
            }
            _ => {}
        }
        if let Found::File { .. } | Found::Special = found {
            return Err(format!("`{at}` is not a directory"));
        }
        let next = format!("{at}/{name}");
        let (what, target) = look(&next)?;
        let Some(target) = target else {
            at = next;
            found = what;
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            return Err("it goes through too many symbolic links".to_owned());
        }
        if target.starts_with('/') {
            at.clear();
        }
        for name in target.split('/').rev() {
            todo.push_front(name.to_owned());
        }
        found = Found::Directory;
    }
    if at.is_empty() {
        at.push('/');
    }
    Ok((at, found))
}

/// What is at a path whose directory was followed, and where it points if it
/// is a symbolic link.
fn look(path: &str) -> Result<(Found, Option<String>), String> {
    let path = Path::new(if path.is_empty() { "/" } else { path });
    let shown = path.display();
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Found::Nothing, None)),
        Err(error) => return Err(format!("`{shown}`: {error}")),
    };
    let kind = metadata.file_type();
    if kind.is_symlink() {
        let target = fs::read_link(path).map_err(|error| format!("`{shown}`: {error}"))?;
        return match target.into_os_string().into_string() {
            Ok(target) => Ok((Found::Nothing, Some(target))),
            Err(_) => Err(format!("the link `{shown}` is not UTF-8")),
        };
    }
    let special =
        kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device();
    let found = if kind.is_dir() {
        Found::Directory
    } else if special || !kind.is_file() {
        Found::Special
    } else {
        Found::File { links: metadata.nlink() }
    };
    Ok((found, None))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn at(path: &Path, found: Found) -> Resolved {
        Resolved::At { path: path.to_str().unwrap().to_owned(), found }
    }

    #[test]
    fn paths_are_followed_to_where_they_lead() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let ws = root.join("ws");
        fs::create_dir_all(ws.join("src/deep")).unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        fs::write(ws.join("src/a.rs"), "").unwrap();
        fs::write(root.join("outside/secret"), "").unwrap();
        fs::hard_link(root.join("outside/secret"), ws.join("src/twice")).unwrap();
        symlink("../../outside", ws.join("src/out")).unwrap();
        symlink(root.join("outside/new"), ws.join("src/dangling")).unwrap();
        symlink("a.rs", ws.join("src/near")).unwrap();
        symlink("round", ws.join("src/round")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, ws.join("src/pipe"), rustix::fs::Mode::RWXU).unwrap();
        let ground = RealGround::new(&ws).unwrap();
        assert_eq!(ground.workspace(), ws.to_str().unwrap());
        let outside = root.join("outside");
        for (path, expected) in [
            ("src/a.rs", at(&ws.join("src/a.rs"), Found::File { links: 1 })),
            ("src", at(&ws.join("src"), Found::Directory)),
            ("src/new.rs", at(&ws.join("src/new.rs"), Found::Nothing)),
            ("no/such/dir/x", at(&ws.join("no/such/dir/x"), Found::Nothing)),
            ("src/twice", at(&ws.join("src/twice"), Found::File { links: 2 })),
            ("src/near", at(&ws.join("src/a.rs"), Found::File { links: 1 })),
            ("src/out", at(&outside, Found::Directory)),
            ("src/out/secret", at(&outside.join("secret"), Found::File { links: 2 })),
            ("src/out/../x", at(&root.join("x"), Found::Nothing)),
            ("src/dangling", at(&outside.join("new"), Found::Nothing)),
            ("src/pipe", at(&ws.join("src/pipe"), Found::Special)),
            ("src/../../outside/secret", at(&outside.join("secret"), Found::File { links: 2 })),
            ("no/../src/out/x", at(&outside.join("x"), Found::Nothing)),
        ] {
            let path = format!("{}/{path}", ws.display());
            assert_eq!(ground.resolve(&path), expected, "{path}");
        }
        let mut names = ground.names_in(ws.join("src").to_str().unwrap());
        names.sort();
        assert_eq!(names, ["a.rs", "dangling", "deep", "near", "out", "pipe", "round", "twice"]);
        assert!(ground.names_in(ws.join("none").to_str().unwrap()).is_empty());
        for path in ["src/round", "src/round/x", "src/a.rs/x"] {
            let path = format!("{}/{path}", ws.display());
            assert!(matches!(ground.resolve(&path), Resolved::Lost(_)), "{path}");
        }
    }

    #[test]
    fn a_workspace_behind_a_link_is_known_by_its_real_path() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("alias")).unwrap();
        let ground = RealGround::new(&root.join("alias")).unwrap();
        assert_eq!(ground.workspace(), root.join("real").to_str().unwrap());
        assert!(matches!(RealGround::new(&root.join("nowhere")), Err(GroundError::Missing { .. })));
    }
}

//! The git directory of a workspace: the files in it that are ours.
//!
//! They are written when the workspace is made and again before anything is
//! fetched from it, so that what an agent wrote there has no effect. Before
//! that the whole directory is looked through: git must meet no symbolic link,
//! no pipe and no pointer to another directory in it.

use std::fs;
use std::io;
use std::path::Path;

use blueflame_core::ids::Oid;

use super::error::{HarvestError, WorkspaceError, failed};
use super::plain::PlainRepository;
use super::{Workspace, exclude};
use crate::atomic_file::{self, AtomicError, Durability};
use crate::attempt::spec::Author;
use crate::git::ObjectFormat;

/// More files than any honest agent leaves in a git directory.
const MOST_FILES: usize = 500_000;

/// Makes a git directory whose one branch is at a commit, as git would, in few files.
pub(super) fn make(
    git_dir: &Path,
    workspace: &Workspace,
    start: &Oid,
) -> Result<(), WorkspaceError> {
    for name in ["refs", "objects"] {
        let path = git_dir.join(name);
        fs::create_dir_all(&path).map_err(failed("make", &path))?;
    }
    let branch = format!("refs/heads/{}", workspace.branch);
    for (name, text) in [
        ("HEAD", format!("ref: {branch}\n")),
        (
            "packed-refs",
            format!("# pack-refs with: peeled fully-peeled sorted \n{start} {branch}\n"),
        ),
    ] {
        let path = git_dir.join(name);
        fs::write(&path, text).map_err(failed("write", &path))?;
    }
    Ok(())
}

/// Writes what is ours into a git directory.
pub(super) fn write(
    git_dir: &Path,
    workspace: &Workspace,
    plain: &PlainRepository,
) -> Result<(), AtomicError> {
    let failed = |step, path: &Path| {
        let path = path.to_owned();
        move |source| AtomicError { step, path, source }
    };
    let put = |name: &str, bytes: &[u8]| {
        atomic_file::replace(&git_dir.join(name), bytes, Durability::Process)
    };
    for name in ["objects/info", "info"] {
        let path = git_dir.join(name);
        fs::create_dir_all(&path).map_err(failed("make", &path))?;
    }
    for (name, bytes) in steering(workspace, plain) {
        put(name, &bytes)?;
    }
    let hidden: String =
        workspace.hidden.iter().map(|path| exclude::pattern(path) + "\n").collect();
    put("info/exclude", hidden.as_bytes())?;
    match fs::read(plain.shallow()) {
        Ok(bytes) => put("shallow", &bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = git_dir.join("shallow");
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(failed("remove", &path)(error))
                }
                _ => Ok(()),
            }
        }
        Err(error) => Err(failed("read", plain.shallow())(error)),
    }
}

/// The files that git goes by, as they should be.
pub(super) fn steering(
    workspace: &Workspace,
    plain: &PlainRepository,
) -> [(&'static str, Vec<u8>); 2] {
    let mut objects = plain.objects().as_os_str().as_encoded_bytes().to_vec();
    objects.push(b'\n');
    [
        ("config", config(&workspace.author, plain.format()).into_bytes()),
        ("objects/info/alternates", objects),
    ]
}

/// The whole configuration of a workspace.
fn config(author: &Author, format: ObjectFormat) -> String {
    let (version, extensions) = match format {
        ObjectFormat::Sha1 => (0, ""),
        ObjectFormat::Sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
    };
    format!(
        "[core]\n\
         \trepositoryFormatVersion = {version}\n\
         \tbare = false\n\
         \tfileMode = true\n\
         \tlogAllRefUpdates = true\n\
         \thooksPath = /dev/null\n\
         \tfsmonitor = false\n\
         \tcheckStat = minimal\n\
         {extensions}\
         [user]\n\
         \tname = {}\n\
         \temail = {}\n\
         [commit]\n\
         \tgpgSign = false\n\
         [tag]\n\
         \tgpgSign = false\n\
         [gc]\n\
         \tauto = 0\n\
         [maintenance]\n\
         \tauto = false\n",
        quoted(&author.name),
        quoted(&author.email),
    )
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Looks through the git directory of a workspace that an agent had to itself.
pub(super) fn inspect(workspace: &Workspace) -> Result<(), HarvestError> {
    match fs::symlink_metadata(&workspace.path) {
        Ok(found) if found.is_dir() => look_through(&workspace.git_dir()),
        Ok(_) => Err(tampered(&workspace.path, "no directory")),
        Err(error) => Err(lost(&workspace.path, error)),
    }
}

/// Refuses a git directory with anything in it that leads elsewhere.
pub(super) fn look_through(git_dir: &Path) -> Result<(), HarvestError> {
    match fs::symlink_metadata(git_dir) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(tampered(git_dir, "no directory")),
        Err(error) => return Err(lost(git_dir, error)),
    }
    let mut left = MOST_FILES;
    let mut directories = vec![git_dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| lost(&directory, error))? {
            let entry = entry.map_err(|error| lost(&directory, error))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| lost(&path, error))?;
            if kind.is_symlink() {
                return Err(tampered(&path, "a symbolic link"));
            } else if kind.is_dir() {
                directories.push(path);
            } else if !kind.is_file() {
                return Err(tampered(&path, "a special file"));
            }
            left = left.checked_sub(1).ok_or_else(|| tampered(git_dir, "full of files"))?;
        }
    }
    // It would have git read the configuration of another directory.
    let pointer = git_dir.join("commondir");
    if pointer.exists() { Err(tampered(&pointer, "a pointer elsewhere")) } else { Ok(()) }
}

fn tampered(path: &Path, what: &'static str) -> HarvestError {
    HarvestError::Tampered { path: path.to_owned(), what }
}

fn lost(path: &Path, source: io::Error) -> HarvestError {
    if source.kind() == io::ErrorKind::NotFound {
        return tampered(path, "gone");
    }
    HarvestError::Io { step: "look at", path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_add_to_the_configuration() {
        let author = Author { name: "a\"\n[core]\n\\".into(), email: "a@b # c".into() };
        let text = config(&author, ObjectFormat::Sha1);
        assert!(text.contains("\tname = \"a\\\" [core] \\\\\"\n"), "{text}");
        assert!(text.contains("\temail = \"a@b # c\"\n"), "{text}");
    }
}

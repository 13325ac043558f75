//! The git directory of a workspace: the files in it that are ours.
//!
//! They are written when the workspace is made, most of them in the checkout beneath it,
//! and what an agent wrote in their place is put right before anything is taken from it,
//! so that it has no effect. Before that the whole directory is looked through: git must
//! meet no symbolic link, no pipe and no pointer to another directory in it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;

use super::error::{HarvestError, WorkspaceError, failed};
use super::plain::PlainRepository;
use super::{Layers, Workspace, exclude, left_file};
use crate::atomic_file::{self, AtomicError, Durability};
use crate::attempt::spec::Author;
use crate::git::ObjectFormat;

/// More files than any honest agent leaves in a git directory.
const MOST_FILES: usize = 500_000;

/// The longest name of an object, and the end of its line.
const LONGEST_REFERENCE: u64 = 65;

/// What is a file, and what is a directory, wherever it is there: git expects it, and
/// nothing else makes way for what is ours.
const FILES: [&str; 5] = ["HEAD", "config", "shallow", "info/exclude", "objects/info/alternates"];
const DIRECTORIES: [&str; 4] = ["info", "objects", "objects/info", "refs"];

/// What is empty at the start: places that git expects, and those that the sandbox covers
/// so that nothing gets there.
const EMPTY: [&str; 3] = ["refs", "hooks", "info"];

/// Makes what all git directories of a session have alike. Workspaces that are laid over a
/// checkout see it there, which takes them no time and no room.
pub(super) fn make_common(
    git_dir: &Path,
    author: &Author,
    plain: &PlainRepository,
) -> Result<(), WorkspaceError> {
    for name in EMPTY {
        let path = git_dir.join(name);
        fs::create_dir_all(&path).map_err(failed("make", &path))?;
    }
    // A log that is there is kept, and no other is begun: that of `HEAD` has all of them.
    let log = ("logs/HEAD", Vec::new());
    steering(author, plain)
        .into_iter()
        .chain([log])
        .try_for_each(|(name, bytes)| write_new(git_dir, name, &bytes))
}

/// Makes what is different in each: the one branch, at a commit. With
/// [what they have in common](make_common) it is all that git asks for.
pub(super) fn make_own(
    git_dir: &Path,
    workspace: &Workspace,
    start: &Oid,
    plain: &PlainRepository,
) -> Result<(), WorkspaceError> {
    let of_git =
        [("HEAD", Some(head(workspace))), ("packed-refs", Some(packed_refs(workspace, start)))];
    for (name, bytes) in of_git.into_iter().chain(own(workspace, plain)?) {
        if let Some(bytes) = bytes {
            write_new(git_dir, name, &bytes)?;
        }
    }
    Ok(())
}

/// Nobody looks into a directory that is being made: no need to put its files there whole.
fn write_new(git_dir: &Path, name: &str, bytes: &[u8]) -> Result<(), WorkspaceError> {
    let path = git_dir.join(name);
    let write = || File::create_new(&path).and_then(|mut file| file.write_all(bytes));
    let written = match write() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(git_dir);
            fs::create_dir_all(parent).map_err(failed("make", parent))?;
            write()
        }
        written => written,
    };
    written.map_err(failed("write", &path))
}

/// The reference that a workspace has, as git names it.
pub(super) fn reference(workspace: &Workspace) -> String {
    format!("refs/heads/{}", workspace.branch)
}

/// Which branch is checked out at the start.
fn head(workspace: &Workspace) -> Vec<u8> {
    format!("ref: {}\n", reference(workspace)).into_bytes()
}

/// The list of references of a workspace in which nothing was done yet.
fn packed_refs(workspace: &Workspace, start: &Oid) -> Vec<u8> {
    let reference = reference(workspace);
    format!("# pack-refs with: peeled fully-peeled sorted \n{start} {reference}\n").into_bytes()
}

/// Puts what is ours into a git directory that an agent had to itself, in place of whatever
/// is there instead.
pub(super) fn write_again(
    workspace: &Workspace,
    plain: &PlainRepository,
) -> Result<(), HarvestError> {
    let git_dir = workspace.git_dir();
    // Whoever removes what is beneath leaves a note, which is refused before this. What is
    // only the agent's own loss is not put back: git is not run by it.
    let layered = Layers::of(&workspace.path).is_some();
    let is_beneath = |path: &Path| layered && fs::symlink_metadata(path).is_err();
    let steering = steering(&workspace.author, plain).map(|(name, bytes)| (name, Some(bytes)));
    for (name, bytes) in steering.into_iter().chain(own(workspace, plain)?) {
        let path = git_dir.join(name);
        match bytes {
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let error = AtomicError { step: "remove", path, source: error };
                    return Err(not_written(error));
                }
                _ => {}
            },
            Some(bytes) if !is_beneath(&path) => put(&path, &bytes).map_err(not_written)?,
            Some(_) => {}
        }
    }
    Ok(())
}

/// Puts into a git directory what is only seen from inside: git is to be run in it, from
/// outside.
pub(super) fn complete(workspace: &Workspace, plain: &PlainRepository) -> Result<(), HarvestError> {
    let git_dir = workspace.git_dir();
    if Layers::of(&workspace.path).is_some() {
        let refs = git_dir.join("refs");
        let made = fs::create_dir_all(&refs);
        made.map_err(|source| not_written(AtomicError { step: "make", path: refs, source }))?;
        for (name, bytes) in steering(&workspace.author, plain) {
            put(&git_dir.join(name), &bytes).map_err(not_written)?;
        }
    }
    Ok(())
}

/// Has a file say this, unless it does.
fn put(path: &Path, bytes: &[u8]) -> Result<(), AtomicError> {
    // One that is known by another name as well could still be changed there.
    let left = left_file::read(path, bytes.len() as u64);
    if left.is_some_and(|left| left.bytes == bytes && left.names == 1) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        let made = fs::create_dir_all(parent);
        made.map_err(|source| AtomicError { step: "make", path: parent.to_owned(), source })?;
    }
    atomic_file::replace(path, bytes, Durability::Process)
}

/// A file of a git directory by its name, and what is in it; `None` if there must be
/// none.
type Ours = (&'static str, Option<Vec<u8>>);

/// The files that are ours and may be different in each workspace, as they should be.
fn own(workspace: &Workspace, plain: &PlainRepository) -> Result<[Ours; 2], AtomicError> {
    let hidden: String =
        workspace.hidden.iter().map(|path| exclude::pattern(path) + "\n").collect();
    let exclude = (!hidden.is_empty()).then(|| hidden.into_bytes());
    // Where a history that was not fetched whole ends.
    let shallow = match fs::read(plain.shallow()) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => {
            return Err(AtomicError { step: "read", path: plain.shallow().to_owned(), source });
        }
    };
    Ok([("info/exclude", exclude), ("shallow", shallow)])
}

/// The files that git goes by, as they should be.
pub(super) fn steering(author: &Author, plain: &PlainRepository) -> [(&'static str, Vec<u8>); 2] {
    let mut objects = plain.objects().as_os_str().as_encoded_bytes().to_vec();
    objects.push(b'\n');
    [("config", config(author, plain.format()).into_bytes()), ("objects/info/alternates", objects)]
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
         \tlogAllRefUpdates = false\n\
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

/// What a look through a git directory found.
pub(super) struct Looked {
    /// The files that references are in, one in each.
    references: Vec<PathBuf>,
    /// Whether anything is where packs and lists of them are.
    packs: bool,
}

impl Looked {
    /// Whether there may be objects in packs, or something that says so.
    pub(super) fn has_packs(&self) -> bool {
        self.packs
    }

    /// The commit of the branch, if it is the only reference of the workspace; `None` if
    /// that is a question for git, as it is for a repository that git made.
    pub(super) fn only_branch(&self, workspace: &Workspace) -> Option<Oid> {
        let git_dir = workspace.git_dir();
        let is_as_made = |name: &str, made: &[u8]| {
            let left = left_file::read(&git_dir.join(name), made.len() as u64);
            left.is_some_and(|left| left.bytes == made)
        };
        let packed = packed_refs(workspace, &workspace.start);
        if !is_as_made("packed-refs", &packed) || !is_as_made("HEAD", &head(workspace)) {
            return None;
        }
        match &self.references[..] {
            // Nothing was committed, unless it was removed.
            [] => {
                let refs = workspace.file(Path::new(".git/refs"))?;
                refs.is_dir().then(|| workspace.start.clone())
            }
            [one] if *one == git_dir.join(reference(workspace)) => {
                let left = left_file::read(one, LONGEST_REFERENCE)?;
                let text = str::from_utf8(&left.bytes).ok()?;
                Oid::new(text.strip_suffix('\n')?).ok()
            }
            _ => None,
        }
    }
}

/// Looks through the git directory of a workspace that an agent had to itself.
pub(super) fn inspect(workspace: &Workspace) -> Result<Looked, HarvestError> {
    match fs::symlink_metadata(&workspace.path) {
        Ok(found) if found.is_dir() => look_through(&workspace.git_dir()),
        Ok(_) => Err(tampered(&workspace.path, "no directory")),
        Err(error) => Err(lost(&workspace.path, error)),
    }
}

/// Refuses a git directory with anything in it that leads elsewhere.
pub(super) fn look_through(git_dir: &Path) -> Result<Looked, HarvestError> {
    match fs::symlink_metadata(git_dir) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(tampered(git_dir, "no directory")),
        Err(error) => return Err(lost(git_dir, error)),
    }
    let mut left = MOST_FILES;
    let (refs, packs) = (git_dir.join("refs"), git_dir.join("objects/pack"));
    let mut looked = Looked { references: Vec::new(), packs: false };
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
            } else if path.starts_with(&refs) {
                looked.references.push(path);
            } else if path.starts_with(&packs) {
                looked.packs = true;
            }
            left = left.checked_sub(1).ok_or_else(|| tampered(git_dir, "full of files"))?;
        }
    }
    let at = |name: &str| git_dir.join(name);
    if let Some(name) = FILES.iter().find(|name| at(name).is_dir()) {
        return Err(tampered(&at(name), "a directory"));
    }
    if let Some(name) = DIRECTORIES.iter().find(|name| at(name).is_file()) {
        return Err(tampered(&at(name), "no directory"));
    }
    // It would have git read the configuration of another directory.
    let pointer = git_dir.join("commondir");
    if pointer.exists() {
        return Err(tampered(&pointer, "a pointer elsewhere"));
    }
    Ok(looked)
}

fn tampered(path: &Path, what: &'static str) -> HarvestError {
    HarvestError::Tampered { path: path.to_owned(), what }
}

fn lost(path: &Path, source: io::Error) -> HarvestError {
    match source.kind() {
        io::ErrorKind::NotFound => tampered(path, "gone"),
        io::ErrorKind::PermissionDenied => tampered(path, CLOSED),
        _ => HarvestError::Io { step: "look at", path: path.to_owned(), source },
    }
}

/// Why what is ours could not be written. All of it was ours to write at the start.
fn not_written(error: AtomicError) -> HarvestError {
    match error.source.kind() {
        io::ErrorKind::PermissionDenied => tampered(&error.path, CLOSED),
        _ => error.into(),
    }
}

/// What a directory is that its owner took the rights to.
const CLOSED: &str = "closed to us";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_to_us_is_the_agents_doing_and_a_broken_disk_is_not() {
        let path = Path::new("/w/.git/info");
        for (kind, of_the_agent) in
            [(io::ErrorKind::PermissionDenied, true), (io::ErrorKind::StorageFull, false)]
        {
            let unwritten = AtomicError { step: "remove", path: path.into(), source: kind.into() };
            for error in [lost(path, kind.into()), not_written(unwritten)] {
                assert_eq!(error.is_the_agents(), of_the_agent, "{error}");
            }
        }
    }

    #[test]
    fn a_name_cannot_add_to_the_configuration() {
        let author = Author { name: "a\"\n[core]\n\\".into(), email: "a@b # c".into() };
        let text = config(&author, ObjectFormat::Sha1);
        assert!(text.contains("\tname = \"a\\\" [core] \\\\\"\n"), "{text}");
        assert!(text.contains("\temail = \"a@b # c\"\n"), "{text}");
    }
}

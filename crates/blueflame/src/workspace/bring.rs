//! Bringing objects into the person's repository from one that is not to be trusted.
//!
//! That repository has no say in what is done, neither by its configuration nor by what it
//! lists: its objects, and nothing else of it, are packed by a git of ours that sees the
//! person's objects first. All of them are checked before any comes in, so no tree with
//! entries like `.git` or `..` does, and nothing that lacks what it refers to.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;
use tempfile::TempDir;

use super::Workspaces;
use super::complaint::Complaint;
use super::error::HarvestError;
use super::git_dir::Looked;
use crate::git::{Answer, Call, GitError};

/// More packs than any honest agent leaves.
const MOST_PACKS: usize = 50;

/// Where objects come from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    /// A git directory that was looked through.
    pub git_dir: &'a Path,
    pub looked: &'a Looked,
    /// What people know it by.
    pub branch: &'a str,
}

impl Workspaces {
    /// Brings a commit with all that it needs and that is not needed by another, which the
    /// person has. Nothing keeps it there yet.
    pub(super) fn bring(
        &self,
        commit: &Oid,
        have: &Oid,
        from: Source<'_>,
    ) -> Result<(), HarvestError> {
        let objects = from.git_dir.join("objects");
        let alone = from.looked.has_packs().then(|| self.objects_alone(&objects, from));
        let alone = alone.transpose()?;
        let seen = alone.as_ref().map_or(&*objects, TempDir::path);
        let packing = self
            .plain
            .git()
            .variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(seen))
            // What says more of commits than they do themselves is not believed.
            .setting("core.commitGraph=false")
            .words(&["pack-objects", "--revs", "--stdout", "--quiet"])
            .input(format!("{commit}\n^{have}\n"));
        let taking_in = self.person().words(&["index-pack", "--stdin", "--strict"]);
        let [packing, taking_in] = packing.run_into(taking_in)?;
        // Nobody listens to the first any more once the second has refused something.
        let unheard = packing.status.signal() == Some(libc::SIGPIPE);
        let complaints = [&packing, &taking_in].map(Complaint::of);
        match (packing.status.success(), taking_in.status.success(), complaints) {
            (true, true, _) => Ok(()),
            (_, false, [_, refused]) if unheard => Err(refused.about(from.branch)),
            (_, _, [one, other]) => Err(one.and(&other).about(from.branch)),
        }
    }

    /// A directory that has the objects of another and nothing else. Where objects are in a
    /// pack is written anew: by a list that lies, one would stand for another.
    fn objects_alone(&self, objects: &Path, from: Source<'_>) -> Result<TempDir, HarvestError> {
        let plain = self.plain.git_dir();
        let alone = tempfile::Builder::new().prefix("objects.").tempdir_in(plain);
        let alone = alone.map_err(failed("make a directory in", plain))?;
        for (name, path) in entries(objects)? {
            if name.len() == 2 {
                let link = alone.path().join(&name);
                symlink(&path, &link).map_err(failed("make", &link))?;
            }
        }
        let place = alone.path().join("pack");
        fs::create_dir(&place).map_err(failed("make", &place))?;
        let packs: Vec<PathBuf> = entries(&objects.join("pack"))?
            .into_iter()
            .map(|(_, path)| path)
            .filter(|path| path.extension().is_some_and(|it| it == "pack"))
            .collect();
        if packs.len() > MOST_PACKS {
            let message = format!("there are more than {MOST_PACKS} packs in the repository");
            return Err(Complaint::new(message).about(from.branch));
        }
        for (number, pack) in packs.iter().enumerate() {
            let link = place.join(format!("pack-{number}.pack"));
            symlink(pack, &link).map_err(failed("make", &link))?;
            let call = self.plain.git().setting("pack.writeReverseIndex=false");
            let call = call.words(&["index-pack", "-o"]).word(link.with_extension("idx"));
            let answer = call.word(&link).run()?;
            if !answer.status.success() {
                return Err(Complaint::of(&answer).about(from.branch));
            }
        }
        Ok(alone)
    }
}

/// What is in a directory, if there is one.
fn entries(directory: &Path) -> Result<Vec<(OsString, PathBuf)>, HarvestError> {
    let list =
        || fs::read_dir(directory)?.map(|it| it.map(|it| (it.file_name(), it.path()))).collect();
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(failed("list", directory)),
    }
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> HarvestError + use<> {
    let path = path.to_owned();
    move |source| HarvestError::Io { step, path, source }
}

/// A directory as git lists several: in quotes, or else a colon would end it.
fn listed(path: &Path) -> OsString {
    let mut bytes = vec![b'"'];
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'"' | b'\\' => bytes.extend([b'\\', *byte]),
            b'\n' => bytes.extend(b"\\n"),
            _ => bytes.push(*byte),
        }
    }
    bytes.push(b'"');
    OsString::from_vec(bytes)
}

/// All references in a git directory that was looked through and steered by us, or what
/// git says if they cannot be read.
pub(super) fn references(
    git_dir: &Path,
) -> Result<Result<Vec<(String, Oid)>, Complaint>, GitError> {
    let words = ["for-each-ref", "--format=%(objectname)%09%(refname)"];
    let answer = Call::plain(git_dir).words(&words).run()?;
    // No git gives such a name: what is behind it would go unseen.
    let hidden = String::from_utf8_lossy(&answer.stderr).contains("with broken name");
    if answer.status.success() && !hidden {
        read(&answer).map(Ok)
    } else {
        Ok(Err(Complaint::of(&answer)))
    }
}

/// Reads `<oid>\t<reference>` lines.
fn read(answer: &Answer) -> Result<Vec<(String, Oid)>, GitError> {
    let lines = answer.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let text = String::from_utf8_lossy(line);
            let (oid, name) = text.split_once('\t').ok_or_else(|| answer.strange(line))?;
            let oid = Oid::new(oid).map_err(|_| answer.strange(line))?;
            Ok((name.to_owned(), oid))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_directory_can_be_listed() {
        assert_eq!(listed(Path::new("/a b:ü\"\\\n/x")), "\"/a b:ü\\\"\\\\\\n/x\"");
    }
}

//! Bringing objects into the person's repository from one that is not to be trusted.
//!
//! Git is not run in that repository: it has no say in what is done, neither by its
//! configuration nor by what it lists. Its objects are packed by a git of ours that sees
//! the person's objects first, and every one of them is checked before it comes in, so no
//! tree with entries like `.git` or `..` does, and nothing that lacks what it refers to.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;

use super::Workspaces;
use super::git_dir::Looked;
use crate::git::{Answer, Call, GitError};

/// Where objects come from: a git directory that was looked through.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub git_dir: &'a Path,
    pub looked: &'a Looked,
}

/// Objects that came over. Until this goes, nobody tidies them away: a reference has to
/// keep them by then.
#[derive(Debug)]
pub(super) struct Brought {
    keep: Option<PathBuf>,
}

impl Drop for Brought {
    fn drop(&mut self) {
        if let Some(keep) = &self.keep {
            // One that stays takes room and does no harm.
            let _ = fs::remove_file(keep);
        }
    }
}

/// Why objects did not come over.
#[derive(Debug)]
pub(super) struct NotBrought {
    packing: Answer,
    taking_in: Answer,
}

impl Workspaces {
    /// Brings a commit with all that it needs and that is not needed by another, which the
    /// person has.
    pub(super) fn bring(
        &self,
        commit: &Oid,
        have: &Oid,
        from: Source<'_>,
    ) -> Result<Result<Brought, NotBrought>, GitError> {
        let packing = self
            .plain
            .git()
            .variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(&from.git_dir.join("objects")))
            // What says more of objects than they do themselves is not believed.
            .setting("core.commitGraph=false")
            .setting("core.multiPackIndex=false")
            .words(&["pack-objects", "--revs", "--stdout", "--quiet", "--no-use-bitmap-index"])
            .input(format!("{commit}\n^{have}\n"));
        let taking_in = self.person();
        let taking_in = if from.looked.has_many_objects() {
            taking_in.words(&["index-pack", "--stdin", "--strict", "--keep=on its way"])
        } else {
            taking_in.words(&["unpack-objects", "-q", "--strict"])
        };
        let [packing, taking_in] = packing.run_into(taking_in)?;
        if !packing.status.success() || !taking_in.status.success() {
            return Ok(Err(NotBrought { packing, taking_in }));
        }
        let said = String::from_utf8_lossy(&taking_in.stdout).into_owned();
        let keep = said
            .trim_end()
            .strip_prefix("keep\t")
            .map(|name| self.plain.objects().join("pack").join(format!("pack-{name}.keep")));
        Ok(Ok(Brought { keep }))
    }
}

/// What git said when it would not do something.
#[derive(Debug)]
pub(super) struct Complaint {
    pub message: String,
    /// Whether somebody ended it.
    pub cut_off: bool,
}

impl Complaint {
    fn of(answer: &Answer) -> Complaint {
        let message = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
        Complaint { message, cut_off: answer.status.code().is_none() }
    }
}

impl NotBrought {
    /// What both of them said.
    pub(super) fn complaint(&self) -> Complaint {
        let [packing, taking_in] = [&self.packing, &self.taking_in].map(Complaint::of);
        // Nobody listens to the first any more once the second has refused something.
        let unheard = self.packing.status.signal() == Some(libc::SIGPIPE);
        Complaint {
            message: format!("{}\n{}", packing.message, taking_in.message).trim().to_owned(),
            cut_off: taking_in.cut_off || (packing.cut_off && !unheard),
        }
    }

    /// As the failure of the one that failed first.
    pub(super) fn failure(self) -> GitError {
        if self.packing.status.code().is_some_and(|code| code != 0) {
            self.packing.failure()
        } else {
            self.taking_in.failure()
        }
    }
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

//! Fetching into the person's repository from one that is not to be trusted.
//!
//! Nothing is run that the other repository configures. Every object is
//! checked before it comes in, so no tree with entries like `.git` or `..` does.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::PoisonError;

use blueflame_core::ids::Oid;

use super::Workspaces;
use crate::git::{Answer, Call, GitError};

impl Workspaces {
    /// Brings `what`, a reference or an object, into a reference of ours.
    pub(super) fn fetch(
        &self,
        from: &Path,
        what: &str,
        reference: &str,
        have: &Oid,
    ) -> Result<Answer, GitError> {
        let _alone = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        self.person()
            .setting("transfer.fsckObjects=true")
            .setting("fetch.fsckObjects=true")
            .setting("fetch.writeCommitGraph=false")
            .setting("protocol.file.allow=always")
            .words(&["fetch", "--quiet", "--no-tags", "--no-prune", "--no-auto-maintenance"])
            .words(&["--no-recurse-submodules", "--no-write-fetch-head"])
            .word(format!("--negotiation-tip={have}"))
            .word(url(from))
            .word(format!("+{what}:{reference}"))
            .run()
    }
}

/// All references in a git directory that was looked through and steered by us, or what
/// git says if they cannot be read.
pub(super) fn references(git_dir: &Path) -> Result<Result<Vec<(String, Oid)>, Answer>, GitError> {
    let words = ["for-each-ref", "--format=%(objectname)%09%(refname)"];
    let answer = Call::plain(git_dir).words(&words).run()?;
    // No git gives such a name: what is behind it would go unseen.
    let hidden = String::from_utf8_lossy(&answer.stderr).contains("with broken name");
    if answer.status.success() && !hidden { listed(&answer).map(Ok) } else { Ok(Err(answer)) }
}

/// Reads `<oid>\t<reference>` lines.
fn listed(answer: &Answer) -> Result<Vec<(String, Oid)>, GitError> {
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

/// The address of a directory. Git decodes it.
fn url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            url.push(char::from(*byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_has_an_address() {
        assert_eq!(url(Path::new("/a b/ü%41#")), "file:///a%20b/%C3%BC%2541%23");
    }
}

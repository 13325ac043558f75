//! A clean checkout of one commit, to be thrown away.
//!
//! It is a repository of its own that borrows the objects of the person's: no
//! work tree is registered there, no index and no ref is touched, and nothing
//! of the person's or the system's configuration, hooks and templates is used.
//! It holds what the commit holds and nothing else, so what passes here passes
//! for everyone. Submodules stay empty.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blueflame_core::ids::Oid;

use crate::git::GitError;
use crate::git::isolated;
use crate::git::objects::Bounded;

/// No step takes longer, or it is given up.
const DEADLINE: Duration = Duration::from_secs(600);

/// git has little to say here.
const MOST_ANSWER: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    #[error("no checkout could be made in `{}`: {source}", place.display())]
    Place { place: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A directory with the files of a commit; it is removed when this is dropped.
#[derive(Debug)]
pub struct CleanCheckout {
    directory: PathBuf,
}

impl CleanCheckout {
    /// Checks a commit of the repository out into a new directory in `place`,
    /// which is made if need be.
    pub async fn of(
        repo_common_dir: &Path,
        commit: &Oid,
        place: &Path,
    ) -> Result<CleanCheckout, CheckoutError> {
        let failed = |source| CheckoutError::Place { place: place.to_owned(), source };
        let objects = repo_common_dir.join("objects").canonicalize().map_err(failed)?;
        fs::create_dir_all(place).map_err(failed)?;
        let place = place.canonicalize().map_err(failed)?;
        let directory =
            tempfile::Builder::new().prefix("checkout-").tempdir_in(&place).map_err(failed)?;
        // From here on whatever fails leaves nothing behind.
        let checkout = CleanCheckout { directory: directory.keep() };
        let git_dir = checkout.directory.join(".git");
        let format = if commit.as_str().len() == 64 { "sha256" } else { "sha1" };
        checkout
            .git(&[
                "init",
                "--quiet",
                "--template=",
                "--initial-branch=none",
                &format!("--object-format={format}"),
            ])
            .await?;
        let info = git_dir.join("objects/info");
        fs::create_dir_all(&info).map_err(failed)?;
        let mut alternates = objects.into_os_string().into_encoded_bytes();
        alternates.push(b'\n');
        fs::write(info.join("alternates"), alternates).map_err(failed)?;
        let hooks = "core.hooksPath=/dev/null";
        checkout
            .git(&["-c", hooks, "checkout", "--quiet", "--force", "--detach", commit.as_str()])
            .await?;
        Ok(checkout)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes it, and says whether that worked.
    pub fn remove(self) -> io::Result<()> {
        remove(&self.directory)
    }

    async fn git(&self, arguments: &[&str]) -> Result<(), GitError> {
        let mut command = isolated::command(&self.directory.join(".git"), arguments);
        command.current_dir(&self.directory).env("GIT_WORK_TREE", &self.directory);
        match isolated::ask(command, MOST_ANSWER, DEADLINE).await? {
            Bounded::Whole(_) => Ok(()),
            Bounded::TooMuch => Err(GitError::Strange {
                command: arguments.join(" "),
                answer: "it does not stop talking".to_owned(),
            }),
        }
    }
}

impl Drop for CleanCheckout {
    fn drop(&mut self) {
        // What cannot be removed now is left for `blueflame cleanup`.
        let _ = remove(&self.directory);
    }
}

/// Removes a directory, also if somebody made parts of it read-only.
fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(directory)?;
            fs::remove_dir_all(directory)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Makes directories writable for us; links are not followed.
fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

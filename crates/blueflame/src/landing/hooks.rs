//! The one hook that takes part: the person's `reference-transaction`.
//!
//! It can refuse that a branch moves, and that is respected. No other hook runs
//! when work is published: `post-merge` may do anything, for any length of time,
//! and hooks that are part of the work tree may have been written by the very
//! change that is published. For the same reason the hook counts only if it lies
//! outside of all work trees.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{Landing, LandingError};

const NAME: &str = "reference-transaction";
const NONE: &str = "/dev/null";

impl Landing {
    /// A directory of hooks with that hook in it, or nothing.
    pub(super) fn veto_hooks(&self) -> Result<PathBuf, LandingError> {
        let configured = self.setting("core.hooksPath", &["--path"])?;
        let beside = self.common_dir.parent().unwrap_or(&self.common_dir);
        let theirs = configured.map_or(self.common_dir.join("hooks"), |path| beside.join(path));
        let Ok(hook) = theirs.join(NAME).canonicalize() else { return Ok(NONE.into()) };
        let runs = fs::metadata(&hook).is_ok_and(|hook| hook.permissions().mode() & 0o111 != 0);
        if !runs || self.is_in_a_work_tree(&hook)? {
            return Ok(NONE.into());
        }
        let ours = self.common_dir.join("blueflame/hooks");
        let link = ours.join(NAME);
        let put = || {
            fs::create_dir_all(&ours)?;
            match fs::remove_file(&link) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => symlink(&hook, &link),
            }
        };
        put().map_err(|source| LandingError::File { step: "make", path: link.clone(), source })?;
        Ok(ours)
    }

    fn is_in_a_work_tree(&self, path: &Path) -> Result<bool, LandingError> {
        let is_below = |dir: &Path| dir.canonicalize().is_ok_and(|dir| path.starts_with(dir));
        if is_below(&self.common_dir) {
            return Ok(false);
        }
        Ok(self.git.worktrees()?.iter().any(|worktree| is_below(&worktree.path)))
    }
}

//! Why a workspace cannot be made, or its work cannot be taken over.

use std::io;
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;

use crate::atomic_file::AtomicError;
use crate::exclude::ExcludeError;
use crate::failure::{Failure, Kind};
use crate::git::GitError;

#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Replace(#[from] AtomicError),
    #[error(transparent)]
    Exclude(#[from] ExcludeError),
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error("`{}` exists already", path.display())]
    Exists { path: PathBuf },
    #[error("there is no commit `{0}` to start from")]
    NoSuchStart(Oid),
    #[error(
        "not enough room for a workspace in `{}`: it needs {need_mb} MB, {spare_mb} MB must stay free, and there are {free_mb} MB",
        path.display()
    )]
    NoSpace { path: PathBuf, need_mb: u64, spare_mb: u64, free_mb: u64 },
    #[error("the unfinished work cannot be put back: {0}")]
    Restore(HarvestError),
    /// The way to a copied or shared file leads out of the checkout or the
    /// workspace.
    #[error("`{path}` leads out of `{}` by a symbolic link", root.display())]
    LeadsOut { path: String, root: PathBuf },
}

/// Repositories that workspaces cannot be made for.
#[derive(Debug, thiserror::Error)]
pub enum Unsupported {
    #[error("the repository's work tree is elsewhere: `core.worktree` is `{}`", path.display())]
    CoreWorktree { path: PathBuf },
    #[error("the repository is a partial clone, and agents could not fetch what it lacks")]
    PartialClone,
    #[error("there is a line break in the repository's path: `{}`", path.display())]
    LineBreak { path: PathBuf },
}

#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Replace(#[from] AtomicError),
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    /// The git directory of the workspace is not as it should be.
    #[error("`{}` was tampered with: it is {what}", path.display())]
    Tampered { path: PathBuf, what: &'static str },
    #[error("the branch `{branch}` is gone from the workspace")]
    BranchGone { branch: String },
    /// Git would not have what the branch points to.
    #[error("the branch `{branch}` was refused: {message}")]
    Refused { branch: String, message: String },
    /// The machine let git down.
    #[error("the branch `{branch}` could not be taken over: {message}")]
    NotTaken { branch: String, message: String },
    #[error("the branch `{branch}` points to `{target}`, which is no commit")]
    NotACommit { branch: String, target: Oid },
    /// The work does not stand on what it was started from.
    #[error("`{head}` does not continue `{start}`, from which the work was started")]
    Rewound { start: Oid, head: Oid },
    /// More was done in the workspace than committing to its branch.
    #[error("{}", violations.join("; "))]
    OutOfBounds { violations: Vec<String> },
    #[error("there are more than {most} new commits")]
    TooMany { most: usize },
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Failure {
        let (kind, hint) = match &error {
            WorkspaceError::NoSpace { .. } => {
                (Kind::Missing, Some("make room on the disk, or run fewer agents at once"))
            }
            WorkspaceError::Unsupported(Unsupported::CoreWorktree { .. }) => {
                (Kind::Missing, Some("work in an ordinary clone of it"))
            }
            WorkspaceError::Unsupported(Unsupported::PartialClone) => {
                (Kind::Missing, Some("work in a full clone: `git clone` without `--filter`"))
            }
            WorkspaceError::Unsupported(Unsupported::LineBreak { .. }) => {
                (Kind::Missing, Some("give its directory another name"))
            }
            WorkspaceError::LeadsOut { .. } => {
                (Kind::Usage, Some("take it out of `worktree`, or put a real file in its place"))
            }
            WorkspaceError::Git(_)
            | WorkspaceError::Replace(_)
            | WorkspaceError::Exclude(_)
            | WorkspaceError::Io { .. }
            | WorkspaceError::Exists { .. }
            | WorkspaceError::NoSuchStart(_)
            | WorkspaceError::Restore(_) => (Kind::Internal, None),
        };
        let failure = Failure::new(kind, &error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl HarvestError {
    /// What the work is accused of, each thing by itself.
    pub fn violations(self) -> Vec<String> {
        match self {
            HarvestError::OutOfBounds { violations } => violations,
            other => vec![format!("changes.history: {other}")],
        }
    }

    /// Whether it is the work that is at fault, and not git, the disk or us: then
    /// it is no use to try again.
    pub fn is_the_agents(&self) -> bool {
        match self {
            HarvestError::Tampered { .. }
            | HarvestError::BranchGone { .. }
            | HarvestError::Refused { .. }
            | HarvestError::NotACommit { .. }
            | HarvestError::Rewound { .. }
            | HarvestError::OutOfBounds { .. }
            | HarvestError::TooMany { .. } => true,
            HarvestError::Git(_)
            | HarvestError::Replace(_)
            | HarvestError::Io { .. }
            | HarvestError::NotTaken { .. } => false,
        }
    }
}

impl WorkspaceError {
    /// Whether it lies in what the workspace is made from, and not in the disk, in
    /// git or in the repository: then others can still be made.
    pub fn is_of_the_work(&self) -> bool {
        match self {
            WorkspaceError::NoSuchStart(_) => true,
            WorkspaceError::Restore(error) => error.is_the_agents(),
            WorkspaceError::Git(_)
            | WorkspaceError::Replace(_)
            | WorkspaceError::Exclude(_)
            | WorkspaceError::Io { .. }
            | WorkspaceError::Unsupported(_)
            | WorkspaceError::Exists { .. }
            | WorkspaceError::NoSpace { .. }
            | WorkspaceError::LeadsOut { .. } => false,
        }
    }

    pub(super) fn io(step: &'static str, path: &Path, source: io::Error) -> Self {
        WorkspaceError::Io { step, path: path.to_owned(), source }
    }
}

pub(super) fn failed(
    step: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> WorkspaceError + use<> {
    let path = path.to_owned();
    move |source| WorkspaceError::Io { step, path, source }
}

//! Taking over what an agent committed.
//!
//! Nobody may still be at work in the workspace. The branch is fetched into the
//! person's repository under `refs/blueflame/` and looked at there.

use blueflame_core::ids::Oid;
use blueflame_core::outcome::LeftBehind;

use super::error::HarvestError;
use super::starting_point::contains;
use super::{HarvestedCommit, Workspace, Workspaces, commits, git_dir, uncommitted};
use crate::git::Answer;

/// What git says when the machine lets it down. Whatever else keeps it from
/// fetching is in what the agent left: one that ruins its own repository must not
/// bring the session to a halt.
const OF_THE_MACHINE: [&str; 9] = [
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Read-only file system",
    "Too many open files",
    "Cannot allocate memory",
    "Resource temporarily unavailable",
    "unable to fork",
    "unable to create thread",
];

/// What was found in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harvest {
    pub start: Oid,
    pub head: Oid,
    /// All commits that are in `head` and not in `start`, parents first.
    pub commits: Vec<HarvestedCommit>,
    /// Whether `head` has other files than `start`.
    pub tree_changed: bool,
    /// Paths that differ from `head` in the work tree.
    pub uncommitted: Vec<String>,
}

impl Harvest {
    /// What it comes to for the agent run, which was allowed to commit what
    /// `may_commit` says.
    pub fn left_behind(&self, may_commit: impl Fn(&str) -> bool) -> LeftBehind {
        LeftBehind {
            head: self.head.clone(),
            commits: self.commits.len(),
            tree_changed: self.tree_changed,
            uncommitted: !self.uncommitted.is_empty(),
            forgotten: self.uncommitted.iter().any(|path| may_commit(path)),
        }
    }
}

impl Workspaces {
    /// Brings the work into the person's repository, under
    /// [`attempt_ref`](Self::attempt_ref). Work that does not continue its start,
    /// or came with more than work, is kept there too, for people to look at.
    pub fn harvest(&self, workspace: &Workspace) -> Result<Harvest, HarvestError> {
        git_dir::inspect(workspace)?;
        let mut violations = self.steered(workspace);
        git_dir::write(&workspace.git_dir(), workspace, &self.plain)?;
        let start = workspace.start.clone();
        let head = self.take_branch(workspace)?;
        if !contains(&self.plain, &head, &start)? {
            return Err(HarvestError::Rewound { start, head });
        }
        violations.extend(self.elsewhere(workspace, &head)?);
        if !violations.is_empty() {
            return Err(HarvestError::OutOfBounds { violations });
        }
        let tree = |commit: &Oid| {
            let tree = format!("{commit}^{{tree}}");
            self.plain.git().words(&["rev-parse", "--verify", &tree]).oid()
        };
        Ok(Harvest {
            commits: commits::between(&self.plain, &start, &head)?,
            tree_changed: tree(&start)? != tree(&head)?,
            uncommitted: uncommitted::find(&self.plain, workspace, &head)?,
            start,
            head,
        })
    }

    /// Fetches the branch, and gives the commit that it ends with.
    fn take_branch(&self, workspace: &Workspace) -> Result<Oid, HarvestError> {
        let branch = workspace.branch.clone();
        let source = format!("refs/heads/{branch}");
        let failed = |answer: Answer| {
            let message = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
            let branch = branch.clone();
            let killed = answer.status.code().is_none();
            if killed || OF_THE_MACHINE.iter().any(|words| message.contains(words)) {
                HarvestError::NotFetched { branch, message }
            } else {
                HarvestError::Refused { branch, message }
            }
        };
        let target = match self.remote_ref(&workspace.repository(), &source)? {
            Ok(Some(target)) => target,
            Ok(None) => return Err(HarvestError::BranchGone { branch }),
            Err(answer) => return Err(failed(answer)),
        };
        let reference = self.attempt_ref(&workspace.name);
        let answer = self.fetch(&workspace.repository(), &source, &reference, &workspace.start)?;
        if !answer.status.success() {
            return Err(failed(answer));
        }
        let words = ["rev-parse", "--verify", &reference];
        let head = self.person().words(&words).oid()?;
        let kind = self.plain.git().words(&["cat-file", "-t", head.as_str()]).line()?;
        // One who is still writing is not to be trusted either.
        if kind == "commit" && head == target {
            Ok(head)
        } else {
            Err(HarvestError::NotACommit { branch, target })
        }
    }
}

//! Taking over what an agent committed.
//!
//! Nobody may still be at work in the workspace. The branch is brought into the
//! person's repository under `refs/blueflame/` and looked at there.

use blueflame_core::ids::Oid;
use blueflame_core::outcome::LeftBehind;

use super::bring::Source;
use super::complaint::Complaint;
use super::error::HarvestError;
use super::git_dir::Looked;
use super::starting_point::contains;
use super::{Workspace, Workspaces, as_committed, bring, git_dir, uncommitted};

/// More commits than anyone would look at.
const MOST: usize = 10_000;

/// What was found in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harvest {
    pub start: Oid,
    pub head: Oid,
    /// How many commits are in `head` and not in `start`.
    pub commits: usize,
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
            commits: self.commits,
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
        let looked = git_dir::inspect(workspace)?;
        let mut violations = self.steered(workspace);
        git_dir::write_again(workspace, &self.plain)?;
        let start = workspace.start.clone();
        let refs = if let Some(commit) = looked.only_branch(workspace) {
            vec![(git_dir::reference(workspace), commit)]
        } else {
            git_dir::complete(workspace, &self.plain)?;
            bring::references(&workspace.git_dir())?
                .map_err(|complaint| complaint.about(&workspace.branch))?
        };
        let Taken { head, tree_changed } = self.take_branch(workspace, &refs, &looked)?;
        let commits = self.commits(&start, &head)?;
        violations.extend(self.elsewhere(workspace, &head, &refs, &looked)?);
        if !violations.is_empty() {
            return Err(HarvestError::OutOfBounds { violations });
        }
        let uncommitted = if as_committed::holds(&self.objects, workspace, &head) {
            Vec::new()
        } else {
            uncommitted::find(&self.plain, workspace, &head)?
        };
        Ok(Harvest { start, head, commits, tree_changed, uncommitted })
    }

    /// Takes the branch over.
    fn take_branch(
        &self,
        workspace: &Workspace,
        refs: &[(String, Oid)],
        looked: &Looked,
    ) -> Result<Taken, HarvestError> {
        let branch = workspace.branch.clone();
        let source = git_dir::reference(workspace);
        let Some((_, target)) = refs.iter().find(|(name, _)| *name == source) else {
            return Err(HarvestError::BranchGone { branch });
        };
        let reference = self.attempt_ref(&workspace.name);
        let start = &workspace.start;
        if target == start {
            self.refs.set(&reference, target.as_str())?;
            return Ok(Taken { head: target.clone(), tree_changed: false });
        }
        // What the start stands on is there.
        let known = self.kind(target)?.is_some_and(|kind| kind == "commit");
        if !known || !contains(&self.plain, start, target)? {
            let git_dir = &workspace.git_dir();
            self.bring(target, start, Source { git_dir, looked, branch: &branch })?;
        }
        match self.kind(target)?.as_deref() {
            Some("commit") => {
                self.refs.set(&reference, target.as_str())?;
                let [before, after] = self.objects.trees_of([start, target])?;
                Ok(Taken { head: target.clone(), tree_changed: before != after })
            }
            Some(_) => Err(HarvestError::NotACommit { branch, target: target.clone() }),
            // Something else came over, which had its name.
            None => Err(Complaint::new(format!("there is no `{target}`")).about(&branch)),
        }
    }

    /// How many commits are in `head` and not in `start`, which it has to contain.
    fn commits(&self, start: &Oid, head: &Oid) -> Result<usize, HarvestError> {
        if let Some(line) = self.objects.line(start, head)? {
            return Ok(line.len());
        }
        let most = format!("--max-count={}", MOST + 1);
        let range = format!("{start}..{head}");
        let listed = self.plain.git().words(&["rev-list", "--parents", &most, &range]).line()?;
        let commits = listed.lines().count();
        if commits > MOST {
            return Err(HarvestError::TooMany { most: MOST });
        }
        // Every way from `head` to the start ends with one of them.
        let has_start = |line: &str| line.split(' ').skip(1).any(|parent| parent == start.as_str());
        if head == start || listed.lines().any(has_start) {
            Ok(commits)
        } else {
            Err(HarvestError::Rewound { start: start.clone(), head: head.clone() })
        }
    }
}

/// What was taken over.
struct Taken {
    head: Oid,
    tree_changed: bool,
}

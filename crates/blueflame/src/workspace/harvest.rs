//! Taking over what an agent committed.
//!
//! Nobody may still be at work in the workspace. The branch is brought into the
//! person's repository under `refs/blueflame/` and looked at there.

use blueflame_core::ids::Oid;
use blueflame_core::outcome::LeftBehind;

use super::bring::{Complaint, Source};
use super::error::HarvestError;
use super::git_dir::Looked;
use super::{Workspace, Workspaces, as_committed, bring, git_dir, uncommitted};
use crate::git::GitError;

/// More commits than anyone would look at.
const MOST: usize = 10_000;

/// What git says when the machine lets it down. Whatever else keeps it from
/// taking it over is in what the agent left: one that ruins its own repository must not
/// bring the session to a halt.
const OF_THE_MACHINE: [&str; 7] = [
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Read-only file system",
    "Too many open files",
    "Cannot allocate memory",
    "Resource temporarily unavailable",
];

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
        let refs = match looked.only_branch(workspace) {
            Some(commit) => vec![(git_dir::reference(workspace), commit)],
            None => {
                git_dir::complete(workspace, &self.plain)?;
                bring::references(&workspace.git_dir())?
                    .map_err(|complaint| not_taken(&workspace.branch, complaint))?
            }
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
        if *target == workspace.start {
            self.refs.set(&reference, target.as_str())?;
            return Ok(Taken { head: target.clone(), tree_changed: false });
        }
        let from = Source { git_dir: &workspace.git_dir(), looked };
        let _brought = match self.bring(target, &workspace.start, from)? {
            Ok(brought) => brought,
            Err(why) => return Err(not_taken(&branch, why.complaint())),
        };
        match &self.objects.about(&[target.to_string()])?[..] {
            [Some(brought)] if brought.kind == "commit" => {
                self.refs.set(&reference, target.as_str())?;
                let [before, after] = self.objects.trees_of([&workspace.start, target])?;
                Ok(Taken { head: target.clone(), tree_changed: before != after })
            }
            // It came over just now: that it is not there is not the agent's doing.
            [None] | [] => {
                let (command, answer) = ("pack-objects".to_owned(), format!("no `{target}`"));
                Err(GitError::Strange { command, answer }.into())
            }
            _ => Err(HarvestError::NotACommit { branch, target: target.clone() }),
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

/// Whether a line of git tells that the machine let it down. The agent's own words may be
/// in it as well: lines of its files, and names that it made up.
fn is_of_the_machine(line: &str) -> bool {
    let serious = line.starts_with("fatal: ") || line.starts_with("error: ");
    let quotes = ["unexpected line in ", "unterminated line in ", "broken name "];
    let quotes = quotes.iter().any(|words| line.contains(words));
    serious && !quotes && OF_THE_MACHINE.iter().any(|words| line.ends_with(words))
}

/// What becomes of a branch that git complains about.
fn not_taken(branch: &str, complaint: Complaint) -> HarvestError {
    let branch = branch.to_owned();
    let Complaint { message, cut_off } = complaint;
    if cut_off || message.lines().any(is_of_the_machine) {
        HarvestError::NotTaken { branch, message }
    } else {
        HarvestError::Refused { branch, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_machine_are_told_from_words_of_the_agent() {
        for (line, of_the_machine) in [
            ("fatal: write error: No space left on device", true),
            ("fatal: unable to create thread: Resource temporarily unavailable", true),
            ("error: unable to write file .git/objects/aa/bb: Disk quota exceeded", true),
            ("error: cannot fork() for index-pack: Cannot allocate memory", true),
            ("fatal: unexpected line in .git/packed-refs: No space left on device", false),
            ("fatal: unterminated line in .git/packed-refs: Input/output error", false),
            ("warning: ignoring ref with broken name refs/x: No space left on device", false),
            ("fatal: bad object HEAD", false),
        ] {
            assert_eq!(is_of_the_machine(line), of_the_machine, "{line}");
        }
    }
}

//! What an agent did in its repository besides committing to its branch.
//!
//! None of it comes over: its configuration has no say, and one branch is taken. But
//! whoever tries to steer git, or works where nobody looks, has not done the task.

use std::fs;
use std::path::Path;

use blueflame_core::ids::Oid;

use super::bring::Source;
use super::error::HarvestError;
use super::git_dir::Looked;
use super::{Workspace, Workspaces, git_dir, left_file};

/// More branches than anybody would look at.
const MOST_KEPT: usize = 20;

/// Files by which git is steered, and that a workspace never has.
const STEERING: [&str; 5] = [
    "config.worktree",
    "info/attributes",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/http-alternates",
];

/// What was changed in the git directory that git goes by. To be asked before
/// ours is written there again.
pub(super) fn steered(workspace: &Workspace, expected: &[(&str, Vec<u8>)]) -> Vec<String> {
    let git_dir = workspace.git_dir();
    let told = |name: &str| {
        format!("changes.git: `.git/{name}` was changed. Leave what git goes by as it is.")
    };
    let mut found = Vec::new();
    for (name, bytes) in expected {
        let there = workspace.file(&Path::new(".git").join(name));
        let left = there.and_then(|path| left_file::read(&path, bytes.len() as u64));
        if left.is_none_or(|left| left.bytes != *bytes) {
            found.push(told(name));
        }
    }
    found.extend(STEERING.iter().filter(|it| git_dir.join(it).exists()).map(|it| told(it)));
    let mut hooks: Vec<String> = names(&git_dir.join("hooks"));
    hooks.retain(|name| !name.ends_with(".sample"));
    hooks.sort();
    found.extend(hooks.iter().map(|name| told(&format!("hooks/{name}"))));
    found
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

impl Workspaces {
    /// The same for a workspace of ours.
    pub(super) fn steered(&self, workspace: &Workspace) -> Vec<String> {
        steered(workspace, &git_dir::steering(&workspace.author, &self.plain))
    }

    /// Commits on other branches, and objects that are to stand for others. The
    /// branches are kept for people to look at.
    pub(super) fn elsewhere(
        &self,
        workspace: &Workspace,
        head: &Oid,
        refs: &[(String, Oid)],
        looked: &Looked,
    ) -> Result<Vec<String>, HarvestError> {
        let own = git_dir::reference(workspace);
        let mut found = Vec::new();
        let mut kept = 0;
        for (reference, oid) in refs {
            if reference.starts_with("refs/replace/") {
                found.push(format!(
                    "changes.history: `{reference}` was to stand for another object. Leave the \
                     history as it is and add to it."
                ));
            }
            let Some(branch) = reference.strip_prefix("refs/heads/") else { continue };
            if *reference == own || self.knows(oid)? {
                continue;
            }
            kept += 1;
            let keep = self.elsewhere_ref(&workspace.name, kept);
            let from = Source { git_dir: &workspace.git_dir(), looked, branch };
            let place = if kept <= MOST_KEPT && self.keep(oid, head, from, &keep)? {
                format!(" It is kept as `{keep}`.")
            } else {
                String::new()
            };
            found.push(format!(
                "changes.branches: there are commits on the branch `{branch}`. Commit to \
                 `{}` alone.{place}",
                workspace.branch
            ));
        }
        Ok(found)
    }

    /// Brings an object over and keeps it, if that can be done.
    fn keep(
        &self,
        oid: &Oid,
        have: &Oid,
        from: Source<'_>,
        reference: &str,
    ) -> Result<bool, HarvestError> {
        match self.bring(oid, have, from) {
            // What came over may be something else, which had its name.
            Ok(()) if self.knows(oid)? => self.refs.set(reference, oid.as_str())?,
            Err(error) if !error.is_the_agents() => return Err(error),
            Ok(()) | Err(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the person's repository has an object.
    fn knows(&self, oid: &Oid) -> Result<bool, HarvestError> {
        Ok(self.kind(oid)?.is_some())
    }

    /// What an object of the person's repository is, if it has it.
    pub(super) fn kind(&self, oid: &Oid) -> Result<Option<String>, HarvestError> {
        let about = self.objects.about(&[oid.to_string()])?.into_iter().next();
        Ok(about.flatten().map(|it| it.kind))
    }

    /// Where what an agent committed can be looked at, as a sentence.
    pub fn kept(&self, workspace: &Workspace) -> String {
        let reference = self.attempt_ref(&workspace.name);
        let known = self.person().words(&["rev-parse", "--quiet", "--verify", &reference]).run();
        if known.is_ok_and(|answer| answer.status.success()) {
            format!(
                "kept: the work is in `{reference}`; look at it with `git log -p {}..{reference}`",
                short(&workspace.start)
            )
        } else {
            // Whoever looks there with git is not to end up in a repository around it.
            let _ = git_dir::complete(workspace, &self.plain);
            format!("kept: the work is in `{}`", workspace.repository().display())
        }
    }
}

fn short(oid: &Oid) -> &str {
    &oid.as_str()[..12]
}

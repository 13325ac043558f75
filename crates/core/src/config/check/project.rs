//! The repository and the working copies in it.

use super::super::{Project, Worktree, file};
use super::values::Check;
use crate::yaml::Problem;

pub(super) fn project(check: Check<'_>, file: &file::Project) -> Option<Project> {
    check.no_strange_characters("project.name", &file.name);
    if file.repo.trim().is_empty() {
        let hint = "write `.` for the directory of this file";
        check.error("project.repo", &file.repo, "is empty", hint);
    }
    check.no_strange_characters("project.repo", &file.repo);
    if let Some(why) = bad_branch(&file.base_branch) {
        let message = format!("is not a branch name: {why}, got `{}`", file.base_branch.value);
        check.error("project.base_branch", &file.base_branch, message, "write it like `main`");
    }
    let worktree_dir = check.inside("project.worktree_dir", &file.worktree_dir);
    let tasks_file = check.inside("project.tasks_file", &file.tasks_file);
    if file.tasks_file.trim_end().ends_with('/') {
        let message = format!("must be a file, got `{}`", file.tasks_file.value);
        check.error("project.tasks_file", &file.tasks_file, message, "write a file name behind it");
    }
    if let (Some(dir), Some(tasks)) = (&worktree_dir, &tasks_file)
        && dir.overlaps(tasks)
    {
        check.problems.push(
            Problem::error("project.tasks_file", "lies in the directory for working copies")
                .also(file.tasks_file.span, "the task list")
                .also(file.worktree_dir.span, "the working copies")
                .hint("keep them apart: working copies are removed when they are done with"),
        );
    }
    Some(Project {
        name: Some(file.name.trim().to_owned()).filter(|name| !name.is_empty()),
        repo: file.repo.value.clone(),
        base_branch: file.base_branch.value.clone(),
        worktree_dir: worktree_dir?,
        tasks_file: tasks_file?,
    })
}

/// What git would not take as a branch, or would take as an option.
fn bad_branch(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if name.starts_with('-') {
        Some("it starts with `-`")
    } else if name.contains(char::is_whitespace) || name.chars().any(char::is_control) {
        Some("it contains a blank")
    } else if name.contains(['~', '^', ':', '?', '*', '[', '\\']) || name.contains("@{") {
        Some("it contains a character that git does not allow")
    } else if name.contains("..") || name.contains("//") || name.starts_with('/') {
        Some("it contains `..` or an empty part")
    } else if name.ends_with(['/', '.']) || name.split('/').any(bad_part) || name == "@" {
        Some("a part of it starts with `.` or ends with `.`, `/` or `.lock`")
    } else {
        None
    }
}

fn bad_part(part: &str) -> bool {
    part.starts_with('.') || part.strip_suffix(".lock").is_some()
}

pub(super) fn worktree(check: Check<'_>, file: &file::Worktree) -> Worktree {
    let worktree = Worktree {
        prepare: check.commands("worktree.prepare", &file.prepare),
        copy: check.all_inside("worktree.copy", &file.copy),
        share: check.all_inside("worktree.share", &file.share),
        scratch: check.all_inside("worktree.scratch", &file.scratch),
        layers: file.layers,
    };
    for (index, scratch) in file.scratch.iter().enumerate() {
        let both = file.share.iter().find(|share| share.value == scratch.value);
        if let Some(share) = both {
            check.problems.push(
                Problem::error(format!("worktree.scratch[{index}]"), "is shared as well")
                    .at(scratch.span, "writable for agents")
                    .also(share.span, "not writable for agents")
                    .hint("keep one of the two"),
            );
        }
    }
    worktree
}

#[cfg(test)]
mod tests {
    use super::bad_branch;

    #[test]
    fn branch_names_that_git_takes_are_taken() {
        for good in ["main", "feature/x", "release-1.2", "a@b", "Übung"] {
            assert_eq!(bad_branch(good), None, "{good}");
        }
        for bad in [
            "", "-x", "a b", "a..b", "a~1", "a:b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock",
            "a.", "@", "a@{1}", "a\\b", "a\tb",
        ] {
            assert!(bad_branch(bad).is_some(), "{bad} was accepted");
        }
    }
}

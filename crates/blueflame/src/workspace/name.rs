//! Names of workspaces and of the branches in them. They follow from the work,
//! so that recovery finds what an interrupted step left.

use std::fmt;

use blueflame_core::event::Work;
use blueflame_core::ids::{BadName, SessionId};

/// The name of a workspace: its directory, and the end of its references.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceName(String);

impl WorkspaceName {
    /// The place for a piece of work.
    pub fn of(work: &Work) -> Self {
        WorkspaceName(match work {
            Work::Plan => "plan".to_owned(),
            Work::Develop { task, attempt } => format!("{task}.a{attempt}"),
            Work::Validate { task, attempt } => format!("{task}.v{attempt}"),
            Work::Resolve { changeset } => changeset.to_string(),
        })
    }

    pub fn new(text: &str) -> Result<Self, BadName> {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if text.len() <= 100
            && text.bytes().all(good)
            && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && !text.contains("..")
            && !text.ends_with('.')
            && text.strip_suffix(".lock").is_none()
        {
            return Ok(WorkspaceName(text.to_owned()));
        }
        Err(BadName {
            what: "workspace name",
            text: text.to_owned(),
            rule: "it looks like task-001.a1",
        })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The branch that a piece of work is done on.
pub fn branch(session: &SessionId, work: &Work) -> String {
    match work {
        Work::Plan => format!("blueflame/{session}/plan"),
        Work::Develop { task, attempt } => format!("blueflame/{session}/{task}/a{attempt}"),
        Work::Validate { task, attempt } => format!("blueflame/{session}/{task}/v{attempt}"),
        Work::Resolve { changeset } => format!("blueflame/{session}/{changeset}"),
    }
}

#[cfg(test)]
mod tests {
    use blueflame_core::ids::{ChangesetId, TaskId};

    use super::*;

    #[test]
    fn every_work_has_a_name_of_its_own_that_reads_back() {
        let task = TaskId::new("task-001").unwrap();
        let session = SessionId::new("ses-20260206-143022").unwrap();
        let rows = [
            (Work::Plan, "plan", "plan"),
            (Work::Develop { task: task.clone(), attempt: 2 }, "task-001.a2", "task-001/a2"),
            (Work::Validate { task, attempt: 2 }, "task-001.v2", "task-001/v2"),
            (
                Work::Resolve { changeset: ChangesetId::new("auth.c1").unwrap() },
                "auth.c1",
                "auth.c1",
            ),
        ];
        for (work, name, end) in rows {
            let found = WorkspaceName::of(&work);
            assert_eq!(found.as_str(), name);
            assert_eq!(WorkspaceName::new(name), Ok(found));
            assert_eq!(branch(&session, &work), format!("blueflame/{session}/{end}"));
        }
    }

    #[test]
    fn names_that_would_hurt_in_a_path_or_a_reference_are_refused() {
        for bad in ["", ".", "..", ".a", "a..b", "a.", "a.lock", "a/b", "a b", "é", "-a"] {
            assert!(WorkspaceName::new(bad).is_err(), "{bad:?}");
        }
    }
}

//! What the person is shown of the work that a question is about: the change as
//! git has it, and what was recorded of it.

use blueflame_core::event::VerifyResult;
use blueflame_core::gate::Gate;
use blueflame_core::state::State;
use blueflame_core::state::merging::Checked;
use blueflame_core::state::task::{Judge, Phase, Task};

use super::brief::{Spending, fold_of, tasks_of};
use super::checking::remarks;
use super::prepare::start_of;
use super::site::Site;
use crate::people::{ChangesetPage, FileStat};

/// What a review of a changeset shows; `None` for other questions.
pub fn page(site: &Site, state: &State, gate: &Gate) -> Option<ChangesetPage> {
    let Gate::Changeset(id) = gate else { return None };
    let changeset = state.merging.get(id)?;
    let tasks = tasks_of(state, changeset);
    let fold = fold_of(changeset)?;
    // The base may have moved since: what it was folded onto is what counts.
    let row = site.landing.folded_row(site.session.id(), id, &fold.commit, tasks.len()).ok()?;
    let view = site.landing.changeset_view(&row.onto, &fold.commit).ok()?;
    let all = &state.merging.changesets;
    let number = all.iter().position(|other| other.planned.id == *id)? + 1;
    let mut notes = Vec::new();
    let missing = changeset.planned.tasks.len() - changeset.tasks.len();
    if missing > 0 {
        notes.push(format!("the group is incomplete: {missing} of its tasks are not in here"));
    }
    for task in tasks.iter().filter(|task| passed_by_hand(task)) {
        notes.push(format!("{}: no validator could judge it; passed by hand", task.spec.id));
    }
    for task in &tasks {
        notes.extend(remarks(site, task).into_iter().map(|it| format!("{}: {it}", task.spec.id)));
    }
    notes.extend(site.sandbox.boundary().weaknesses().map(|it| format!("made with {it}")));
    Some(ChangesetPage {
        number,
        of: all.len(),
        group: changeset.planned.group.clone(),
        tasks: tasks.iter().map(|it| (it.spec.id.clone(), it.spec.title.clone())).collect(),
        files: view
            .files
            .iter()
            .map(|file| FileStat {
                path: file.path.to_string_lossy().into_owned(),
                insertions: file.lines.map_or(0, |(added, _)| added.into()),
                deletions: file.lines.map_or(0, |(_, removed)| removed.into()),
                binary: file.lines.is_none(),
            })
            .collect(),
        insertions: view.insertions.into(),
        deletions: view.deletions.into(),
        commits: view.commits,
        checks: evidence(changeset.checked.as_ref()),
        cost: Spending::of(state, changeset).total(),
        notes,
        diff: view.diff,
    })
}

/// What is known about the tree before it is asked for: what was run, and not
/// what the configuration says by now.
fn evidence(checked: Option<&Checked>) -> String {
    let Some(Checked { result, commands }) = checked else {
        return "nothing is recorded of a check of this tree".to_owned();
    };
    let commands = match commands.as_slice() {
        [] => "its check".to_owned(),
        commands => commands.join("; "),
    };
    match result {
        VerifyResult::NotConfigured => {
            "no check is configured (merge.verify): nothing was run on this tree".to_owned()
        }
        VerifyResult::Passed => format!("passed on exactly this tree: {commands}"),
        VerifyResult::PassedOnRerun => {
            format!("failed, and passed when run again on exactly this tree: {commands}")
        }
        VerifyResult::Failed { .. } => format!("failed on exactly this tree: {commands}"),
    }
}

/// Whether the person took the work because no validator could judge it.
pub fn passed_by_hand(task: &Task) -> bool {
    matches!(task.phase, Phase::Validated { by: Judge::Person, .. })
}

/// The diff of the task that a question is about, if it is about one.
pub fn task_diff(site: &Site, state: &State, gate: &Gate) -> Option<String> {
    let (Gate::ValidationFailed(id) | Gate::ValidatorFailed(id)) = gate else { return None };
    let task = state.board.get(id)?;
    let start = start_of(site, task).ok()?;
    site.landing.diff(&start, task.phase.commit()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_what_was_run_and_what_came_of_it() {
        let says = |result, commands: &[&str]| {
            let commands = commands.iter().map(|&it| it.to_owned()).collect();
            evidence(Some(&Checked { result, commands }))
        };
        let passed = says(VerifyResult::Passed, &["make", "make test"]);
        assert_eq!(passed, "passed on exactly this tree: make; make test");
        let again = says(VerifyResult::PassedOnRerun, &["make"]);
        assert_eq!(again, "failed, and passed when run again on exactly this tree: make");
        assert!(says(VerifyResult::NotConfigured, &[]).contains("nothing was run"));
        // A journal of an earlier version does not have the commands.
        assert_eq!(says(VerifyResult::Passed, &[]), "passed on exactly this tree: its check");
        assert!(evidence(None).contains("nothing is recorded"));
    }
}

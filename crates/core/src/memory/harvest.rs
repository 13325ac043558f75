//! What a session leaves to know, from its journal and nothing else: the same
//! journal always gives the same notes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;

use super::note::{Figure, Kind, Note, Standing};
use super::pattern;
use super::wording::{count, first_line, line};
use crate::event::{End, Event};
use crate::gate::{
    Answer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer, ValidationAnswer, ValidatorAnswer,
};
use crate::ids::{ChangesetId, ExecutorName, Role, TaskId};
use crate::lock_path::LockPath;
use crate::money::Usd;
use crate::plan::Plan;
use crate::state::crew::PastAgent;
use crate::state::task::{Dropped, HistoryEntry, HistoryResult, Phase, Step, Task};
use crate::state::{PlanStep, State};

/// Whether notes on failures say what went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasons {
    Kept,
    LeftOut,
}

/// Reads along while a journal is folded.
#[derive(Clone, Debug, Default)]
pub struct Harvest {
    decisions: Vec<Decision>,
    ended_at: Option<Timestamp>,
}

/// Something that the person said.
#[derive(Clone, Debug)]
struct Decision {
    at: Timestamp,
    title: String,
    text: String,
    task: Option<TaskId>,
    paths: Vec<LockPath>,
}

impl Harvest {
    /// Looks at one event on its way into the state.
    pub fn see(&mut self, at: Timestamp, event: &Event, before: &State) {
        match event {
            Event::GateAnswered { gate, answer } => {
                self.decisions.extend(decision(at, gate, answer, before));
            }
            Event::RevertRequested { undoes, .. } => {
                let tasks = landed_in(before, undoes);
                self.decisions.push(Decision {
                    at,
                    title: format!("took changeset {undoes} back after it had landed"),
                    text: titles(&tasks),
                    task: None,
                    paths: paths(&tasks),
                });
            }
            Event::SessionEnded { .. } => self.ended_at = Some(at),
            _ => {}
        }
    }

    /// The notes of a session that stands like this.
    pub fn finish(self, state: &State, reasons: Reasons) -> Vec<Note> {
        let at = self.ended_at.unwrap_or(state.last_at);
        let mut notes: Vec<Note> = Vec::new();
        for task in state.board.tasks() {
            notes.extend(failure(state, task, at, reasons));
            notes.extend(result(state, task, at));
        }
        for (place, decision) in self.decisions.into_iter().enumerate() {
            let subject = format!("decision-{}", place + 1);
            let Decision { at, title, text, task, paths } = decision;
            let note = Note::new(&state.session, &subject, Kind::Decision, at, &title);
            notes.push(Note { task, paths, ..note.saying(&text) });
        }
        if let Some(end) = state.ended() {
            notes.extend(planning_failure(state, end, at, reasons));
            notes.push(session(state, end, at));
            notes.extend(cost(state, at));
        }
        notes
    }
}

fn decision(at: Timestamp, gate: &Gate, answer: &Answer, before: &State) -> Option<Decision> {
    let plain = |title: String, text: &str| Decision {
        at,
        title,
        text: text.to_owned(),
        task: None,
        paths: Vec::new(),
    };
    let on_task = |task: &TaskId, what: &str, text: &str| {
        let spec = &before.board.get(task)?.spec;
        Some(Decision {
            task: Some(task.clone()),
            paths: spec.file_locks.clone(),
            ..plain(format!("{what} {task}: {}", first_line(&spec.title)), text)
        })
    };
    match (gate, answer) {
        (Gate::Plan, Answer::Plan(answer)) => {
            let PlanStep::Proposed(proposed) = &before.planning.step else { return None };
            match answer {
                PlanAnswer::Approve => None,
                PlanAnswer::Quit => Some(plain("did not want the plan".into(), &planned(proposed))),
                PlanAnswer::Replan { notes } => {
                    let text = format!("{notes}\nthe plan was:\n{}", planned(proposed));
                    Some(plain(format!("sent a plan back: {}", line(notes, 160)), &text))
                }
                PlanAnswer::Edit { plan } => {
                    Some(plain("changed the plan by hand".into(), &edited(proposed, plan)))
                }
            }
        }
        (Gate::Changeset(id), Answer::Changeset(ChangesetAnswer::Reject { reason })) => {
            let changeset = before.merging.get(id)?;
            let of = |id: &TaskId| before.board.get(id);
            let tasks: Vec<&Task> = changeset.tasks.iter().filter_map(of).collect();
            Some(Decision {
                paths: paths(&tasks),
                ..plain(
                    format!("rejected changeset {id}: {}", line(reason, 160)),
                    &format!("{reason}\nit held:\n{}", titles(&tasks)),
                )
            })
        }
        (Gate::ValidationFailed(task), Answer::ValidationFailed(answer)) => match answer {
            ValidationAnswer::Requeue { notes } if notes.trim().is_empty() => None,
            ValidationAnswer::Requeue { notes } => on_task(task, "sent back", notes),
            ValidationAnswer::Edit { description, .. } => {
                on_task(task, "changed", description.as_deref().unwrap_or_default())
            }
            ValidationAnswer::Drop => on_task(task, "dropped", ""),
        },
        (Gate::ValidatorFailed(task), Answer::ValidatorFailed(ValidatorAnswer::ManualPass)) => {
            on_task(task, "took without a validator's word", "")
        }
        (Gate::Session, Answer::Session(SessionAnswer::Replan { notes })) => {
            Some(plain(format!("asked for another plan: {}", line(notes, 160)), notes))
        }
        _ => None,
    }
}

/// A task that failed, or that did not come off at once.
fn failure(state: &State, task: &Task, at: Timestamp, reasons: Reasons) -> Option<Note> {
    let went_wrong = |entry: &&HistoryEntry| entry.result != HistoryResult::Superseded;
    let history: Vec<&HistoryEntry> = task.history.entries().iter().filter(went_wrong).collect();
    let over = state.ended().is_some();
    let (standing, how) = match &task.phase {
        Phase::Merged { changeset, .. } if !history.is_empty() => {
            let landed = format!("landed with attempt {}", task.attempts);
            match state.reverted_by(changeset) {
                None => (Standing::Resolved, landed),
                Some(_) => (Standing::Unresolved, format!("{landed}, and was taken back")),
            }
        }
        Phase::Failed { reason } => (Standing::Unresolved, format!("failed: {reason}")),
        Phase::Dropped { why: Dropped::ByPerson } if over => {
            (Standing::Unresolved, "dropped by the person".to_owned())
        }
        Phase::Disputed { notes, .. } if over => {
            (Standing::Unresolved, format!("failed validation: {notes}"))
        }
        Phase::Merged { .. } | Phase::Blocked { .. } | Phase::Dropped { .. } => return None,
        _ if over && !history.is_empty() => {
            (Standing::Unresolved, "left undone after attempts that failed".to_owned())
        }
        _ => return None,
    };
    let id = &task.spec.id;
    let title = format!("{id}: {}", first_line(&task.spec.title));
    let mut note = Note::new(&state.session, id.as_str(), Kind::Failure, at, &title);
    if reasons == Reasons::Kept {
        let mut text = how;
        for entry in &history {
            let HistoryEntry { attempt, notes, .. } = entry;
            // Writing to a string cannot fail.
            let _ = write!(text, "\nattempt {attempt} {}: {notes}", told(entry.result));
        }
        let blocked = blocked_by(state, id);
        if !blocked.is_empty() {
            let _ = write!(text, "\nblocked by it: {}", blocked.join(", "));
        }
        note = note.saying(&text);
        let mut causes: Vec<String> =
            history.iter().map(|entry| pattern::cause(told(entry.result), &entry.notes)).collect();
        causes.sort();
        causes.dedup();
        note.causes = causes;
    }
    Some(Note {
        task: Some(id.clone()),
        group: Some(task.spec.group.clone()),
        paths: task.spec.file_locks.clone(),
        standing: Some(standing),
        resolved_by: (standing == Standing::Resolved).then(|| state.session.clone()),
        ..note
    })
}

fn told(result: HistoryResult) -> &'static str {
    match result {
        HistoryResult::Failed => "did not finish",
        HistoryResult::Superseded => "was sound",
        HistoryResult::AcceptanceFailed => "failed its acceptance commands",
        HistoryResult::ValidationFailed => "was failed by the validator",
        HistoryResult::VerifyFailed => "broke the checks of the merged tree",
        HistoryResult::Conflicted => "conflicted with other work",
        HistoryResult::Rejected => "was rejected by the person",
    }
}

fn blocked_by<'s>(state: &'s State, task: &TaskId) -> Vec<&'s str> {
    let blocked = |other: &&Task| matches!(&other.phase, Phase::Blocked { by } if by == task);
    state.board.tasks().iter().filter(blocked).map(|other| other.spec.id.as_str()).collect()
}

/// A task that landed, and stayed landed.
fn result(state: &State, task: &Task, at: Timestamp) -> Option<Note> {
    let Phase::Merged { changeset, .. } = &task.phase else { return None };
    if state.reverted_by(changeset).is_some() {
        return None;
    }
    let id = &task.spec.id;
    let title = format!("{id}: {}", first_line(&task.spec.title));
    let note = Note::new(&state.session, id.as_str(), Kind::Result, at, &title);
    let spent = state.crew.spent_on(|work| work.task() == Some(id));
    let text = format!(
        "landed in {changeset} with attempt {}, for {}\n{}",
        task.attempts,
        spent.cost,
        task.spec.description.trim()
    );
    Some(Note {
        task: Some(id.clone()),
        group: Some(task.spec.group.clone()),
        paths: task.spec.file_locks.clone(),
        ..note.saying(&text)
    })
}

fn planning_failure(state: &State, end: End, at: Timestamp, reasons: Reasons) -> Option<Note> {
    if end != End::PlanningFailed {
        return None;
    }
    let title = format!("planning: {}", first_line(&state.goal));
    let note = Note::new(&state.session, "planning", Kind::Failure, at, &title);
    let note = match reasons {
        Reasons::Kept => note.saying(&state.planning.notes.join("\n")),
        Reasons::LeftOut => note,
    };
    Some(Note { standing: Some(Standing::Unresolved), ..note })
}

fn session(state: &State, end: End, at: Timestamp) -> Note {
    let ending = match end {
        End::Complete => "everything landed",
        End::NothingToDo => "there was nothing to do",
        End::Incomplete => "some tasks did not land",
        End::PlanningFailed => "no usable plan came about",
        End::PlanDeclined => "the person did not want the plan",
        End::PlanRejectedTooOften => "every plan was sent back",
        End::Stopped => "the person stopped with work left",
        End::Budget => "the budget was spent",
        End::CycleLimit => "the last cycle ended with work left",
    };
    let tasks: Vec<&Task> =
        state.board.tasks().iter().filter(|task| task.step() != Step::Replaced).collect();
    let (landed, left): (Vec<&Task>, Vec<&Task>) =
        tasks.iter().partition(|task| task.step() == Step::Merged);
    let seconds = at.duration_since(state.started_at).as_secs();
    let mut text = format!(
        "{} of {} landed in {}, {seconds} s and {}",
        landed.len(),
        count(tasks.len(), "task"),
        count(state.cycle as usize, "cycle"),
        state.crew.spent().cost
    );
    if !left.is_empty() {
        let _ = write!(text, "\nnot landed:\n{}", titles(&left));
    }
    let title = format!("{}: {ending}", line(first_line(&state.goal), 160));
    Note::new(&state.session, "session", Kind::Session, at, &title).saying(&text)
}

/// What the agents took; nothing if none ran.
fn cost(state: &State, at: Timestamp) -> Option<Note> {
    let mut runs: BTreeMap<(Role, &ExecutorName), Vec<&PastAgent>> = BTreeMap::new();
    for past in state.crew.past() {
        runs.entry((past.work.role(), &past.executor)).or_default().push(past);
    }
    let figures: Vec<Figure> =
        runs.into_iter().map(|((role, executor), runs)| figure(role, executor, &runs)).collect();
    if figures.is_empty() {
        return None;
    }
    let total = state.crew.spent();
    let title = format!("{} for {}", total.cost, count(state.crew.past().len(), "agent run"));
    let note = Note::new(&state.session, "session", Kind::Cost, at, &title);
    let lines: Vec<String> = figures.iter().map(told_figure).collect();
    Some(Note { figures, ..note.saying(&lines.join("\n")) })
}

fn told_figure(figure: &Figure) -> String {
    let Figure { role, executor, finished, all_runs, seconds, micro_usd, .. } = figure;
    let cost = Usd::from_micros(*micro_usd);
    let role = role.name();
    format!("{role} by {executor}: {finished} of {all_runs} finished, {seconds} s and {cost} each")
}

fn figure(role: Role, executor: &ExecutorName, runs: &[&PastAgent]) -> Figure {
    let finished: Vec<&&PastAgent> = runs.iter().filter(|run| run.outcome == "finished").collect();
    let took = |run: &&&PastAgent| {
        let seconds = run.ended_at.duration_since(run.claimed_at).as_secs();
        u64::try_from(seconds).unwrap_or(0)
    };
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let all = runs.iter().fold(crate::money::Spend::default(), |sum, run| sum.plus(run.spend));
    Figure {
        role,
        executor: executor.clone(),
        finished: count(finished.len()),
        seconds: super::learned::median(finished.iter().map(took)),
        micro_usd: super::learned::median(finished.iter().map(|run| run.spend.cost.micros())),
        all_runs: count(runs.len()),
        all_micro_usd: all.cost.micros(),
        all_tokens: all.usage.total(),
    }
}

fn landed_in<'s>(state: &'s State, id: &ChangesetId) -> Vec<&'s Task> {
    let inside =
        |task: &&Task| matches!(&task.phase, Phase::Merged { changeset, .. } if changeset == id);
    state.board.tasks().iter().filter(inside).collect()
}

fn titles(tasks: &[&Task]) -> String {
    let line = |task: &&Task| format!("{}: {}", task.spec.id, first_line(&task.spec.title));
    tasks.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn planned(plan: &Plan) -> String {
    let lines = plan.tasks.iter().map(|task| format!("{}: {}", task.id, first_line(&task.title)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a person changed in a plan.
fn edited(before: &Plan, after: &Plan) -> String {
    let in_plan = |plan: &Plan, id: &TaskId| plan.tasks.iter().find(|task| task.id == *id).cloned();
    let mut lines = Vec::new();
    for task in &after.tasks {
        let what = match in_plan(before, &task.id) {
            None => "added",
            Some(old) if old != *task => "changed",
            Some(_) => continue,
        };
        lines.push(format!("{what} {}: {}", task.id, first_line(&task.title)));
    }
    for task in &before.tasks {
        if in_plan(after, &task.id).is_none() {
            lines.push(format!("took out {}: {}", task.id, first_line(&task.title)));
        }
    }
    lines.join("\n")
}

fn paths(tasks: &[&Task]) -> Vec<LockPath> {
    let mut paths: Vec<LockPath> =
        tasks.iter().flat_map(|task| task.spec.file_locks.iter().cloned()).collect();
    paths.sort();
    paths.dedup();
    paths
}

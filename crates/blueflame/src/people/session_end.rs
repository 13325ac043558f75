//! The session gate: a cycle is over and work remains. Go on?

use blueflame_core::gate::SessionAnswer;
use blueflame_core::ids::TaskId;
use blueflame_core::state::State;
use blueflame_core::state::task::{Phase, Step, Task};

use super::budget_raise;
use super::sheet::{Sheet, count};
use super::talk::{Choice, Talk};
use super::{Occasion, Unanswered};
use crate::narrate::plain;

const CHOICES: [Choice; 3] = [
    Choice::with_text('c', "continue", "begin the next cycle"),
    Choice::with_text('r', "replan", "have a new plan made for what is left"),
    Choice::alone('s', "stop", "end the session here"),
];

pub(super) fn ask(
    talk: &mut Talk<'_>,
    occasion: &Occasion<'_>,
) -> Result<SessionAnswer, Unanswered> {
    let state = occasion.state;
    let retriable = retriable(state);
    let mut sheet = talk.sheet();
    draw(&mut sheet, state, &retriable);
    talk.show(&sheet.finish());
    loop {
        match talk.choose(&CHOICES)? {
            ('c', which) => {
                let which = match which.as_str() {
                    "" if !retriable.is_empty() => talk.ask_line(
                        "Which of the numbered tasks get another chance? (1,2 or all; Enter for \
                         none) > ",
                    )?,
                    _ => which,
                };
                match pick(&which, &retriable) {
                    Ok(retry) => return Ok(SessionAnswer::Continue { retry }),
                    Err(why) => talk.say(&why),
                }
            }
            ('r', notes) => {
                let notes = match notes.as_str() {
                    "" => talk.ask_text(
                        "What should the new plan do? An empty line ends your notes.\n> ",
                    )?,
                    _ => notes,
                };
                return Ok(SessionAnswer::Replan { notes });
            }
            _ => return Ok(SessionAnswer::Stop),
        }
    }
}

/// Failed and dropped tasks, which only a person can bring back.
fn retriable(state: &State) -> Vec<&Task> {
    state.board.queue(Step::Failed).chain(state.board.queue(Step::Dropped)).collect()
}

/// The tasks that a line like `1,3` or `all` names.
fn pick(line: &str, tasks: &[&Task]) -> Result<Vec<TaskId>, String> {
    let line = line.trim().to_lowercase();
    if line == "all" {
        return Ok(tasks.iter().map(|task| task.spec.id.clone()).collect());
    }
    let mut picked: Vec<TaskId> = Vec::new();
    let words = line.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
    for word in words.filter(|word| *word != "none") {
        let by_number = word.parse::<usize>().ok().and_then(|at| tasks.get(at.checked_sub(1)?));
        let by_name = || tasks.iter().find(|task| task.spec.id.as_str().eq_ignore_ascii_case(word));
        let Some(task) = by_number.or_else(by_name) else {
            return Err(format!("There is no such task to bring back: `{}`.", plain(word)));
        };
        if !picked.contains(&task.spec.id) {
            picked.push(task.spec.id.clone());
        }
    }
    Ok(picked)
}

fn draw(sheet: &mut Sheet, state: &State, retriable: &[&Task]) {
    sheet.title(&format!("Cycle {} of {} is over", state.cycle, state.rules.max_wave_cycles));
    sheet.field("session", state.session.as_str());
    for (label, steps) in [
        ("landed", &[Step::Merged][..]),
        ("open", &[Step::Waiting, Step::Ready, Step::Done, Step::Accepted, Step::Validated]),
        ("requeued", &[Step::Requeued]),
        ("blocked", &[Step::Blocked]),
    ] {
        let tasks: Vec<&Task> = steps.iter().flat_map(|step| state.board.queue(*step)).collect();
        sheet.field(label, &listed(&tasks));
    }
    sheet.field("spent", &budget_raise::line(state));
    let mut label = "failed";
    if retriable.is_empty() {
        sheet.field(label, "0 tasks");
    }
    for (number, task) in retriable.iter().enumerate() {
        let why = match &task.phase {
            Phase::Failed { reason } => reason.lines().next().unwrap_or_default(),
            _ => "dropped by you",
        };
        sheet.field(label, &format!("{}. {}: {why}", number + 1, task.spec.id));
        label = "";
    }
}

fn listed(tasks: &[&Task]) -> String {
    let names: Vec<&str> = tasks.iter().map(|task| task.spec.id.as_str()).collect();
    match names.as_slice() {
        [] => "0 tasks".to_owned(),
        names => format!("{} ({})", count(names.len(), "task"), names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::samples::{Sample, page};

    #[test]
    fn the_end_of_a_cycle_is_counted() {
        let sample = Sample::session();
        let tasks = retriable(&sample.state);
        insta::assert_snapshot!(page(80, |sheet| draw(sheet, &sample.state, &tasks)));
    }

    #[test]
    fn tasks_are_picked_by_number_and_by_name() {
        let sample = Sample::session();
        let tasks = retriable(&sample.state);
        let names = |line: &str| {
            pick(line, &tasks).map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        for (line, ids) in [
            ("", Ok(vec![])),
            ("none", Ok(vec![])),
            ("1", Ok(vec!["task-003"])),
            ("all", Ok(vec!["task-003"])),
            ("task-003, 1", Ok(vec!["task-003"])),
            ("2", Err("There is no such task to bring back: `2`.")),
            ("0", Err("There is no such task to bring back: `0`.")),
            ("task-001", Err("There is no such task to bring back: `task-001`.")),
        ] {
            let ids = ids.map(|ids: Vec<&str>| ids.iter().map(ToString::to_string).collect());
            assert_eq!(names(line), ids.map_err(str::to_owned), "{line:?}");
        }
    }
}

//! The two gates about one task: its work failed validation, or nobody could
//! validate it.

use blueflame_core::gate::{ValidationAnswer, ValidatorAnswer};
use blueflame_core::ids::TaskId;
use blueflame_core::lock_path::LockPath;
use blueflame_core::state::task::{Phase, Task};

use super::sheet::{Sheet, count};
use super::talk::{Choice, Talk};
use super::{Occasion, Unanswered, diff_view, task_edit};

const ABOUT_WORK: [Choice; 4] = [
    Choice::with_text('r', "requeue", "have it done again, with notes of yours if you like"),
    Choice::alone('e', "edit", "change its description or files, and have it done again"),
    Choice::alone('d', "drop", "go on without this task"),
    Choice::alone('v', "view", "read its diff"),
];

const ABOUT_VALIDATOR: [Choice; 4] = [
    Choice::alone('m', "manual-pass", "you have looked at the diff and take it"),
    Choice::alone('s', "skip", "the task counts as failed"),
    Choice::alone('r', "retry", "let another validator try"),
    Choice::alone('v', "view", "read its diff"),
];

pub(super) fn ask_about_work(
    talk: &mut Talk<'_>,
    occasion: &Occasion<'_>,
    id: &TaskId,
) -> Result<ValidationAnswer, Unanswered> {
    let troubled = occasion.state.board.get(id);
    let mut sheet = talk.sheet();
    draw(&mut sheet, &format!("{id} failed validation"), occasion, troubled);
    talk.show(&sheet.finish());
    loop {
        match talk.choose(&ABOUT_WORK)? {
            ('r', notes) => {
                let notes = match notes.as_str() {
                    "" => talk.ask_text(
                        "Notes for the next agent, besides what is above? An empty line ends \
                         them.\n> ",
                    )?,
                    _ => notes,
                };
                return Ok(ValidationAnswer::Requeue { notes });
            }
            ('e', _) => {
                let edited = match troubled {
                    Some(troubled) => task_edit::edit(talk, occasion, &troubled.spec)?,
                    None => None,
                };
                if let Some(answer) = edited {
                    return Ok(answer);
                }
            }
            ('v', _) => view(talk, occasion)?,
            _ => return Ok(ValidationAnswer::Drop),
        }
    }
}

pub(super) fn ask_about_validator(
    talk: &mut Talk<'_>,
    occasion: &Occasion<'_>,
    id: &TaskId,
) -> Result<ValidatorAnswer, Unanswered> {
    let troubled = occasion.state.board.get(id);
    let mut sheet = talk.sheet();
    draw(&mut sheet, &format!("No validator could judge {id}"), occasion, troubled);
    talk.show(&sheet.finish());
    loop {
        match talk.choose(&ABOUT_VALIDATOR)? {
            ('m', _) => return Ok(ValidatorAnswer::ManualPass),
            ('r', _) => return Ok(ValidatorAnswer::Retry),
            ('v', _) => view(talk, occasion)?,
            _ => return Ok(ValidatorAnswer::Skip),
        }
    }
}

fn view(talk: &mut Talk<'_>, occasion: &Occasion<'_>) -> Result<(), Unanswered> {
    if let Some(diff) = occasion.diff {
        talk.page(&diff_view::coloured(diff))
    } else {
        talk.say("The diff is not at hand.");
        Ok(())
    }
}

pub(super) fn draw(sheet: &mut Sheet, title: &str, occasion: &Occasion<'_>, task: Option<&Task>) {
    sheet.title(title);
    sheet.field("session", occasion.state.session.as_str());
    let Some(task) = task else { return };
    let spec = &task.spec;
    sheet.field("task", spec.title.lines().next().unwrap_or_default());
    sheet.field("group", spec.group.as_str());
    let locks: Vec<&str> = spec.file_locks.iter().map(LockPath::as_str).collect();
    sheet.field("files", &locks.join(", "));
    sheet.field("attempts", &task.attempts.to_string());
    if let Some((agent, spend)) = &task.last_worker {
        sheet.field("worker", &format!("{agent}, {}", spend.cost));
    }
    let others = occasion.state.board.tasks().iter();
    let waiting = others.filter(|other| other.spec.dependencies.contains(&spec.id)).count();
    if waiting > 0 {
        sheet.field("needed by", &count(waiting, "task"));
    }
    match &task.phase {
        Phase::Disputed { notes, .. } => {
            sheet.blank();
            sheet.paragraph(0, "What was found:");
            sheet.paragraph(2, notes);
        }
        Phase::Unjudged { .. } => {
            sheet.blank();
            sheet.paragraph(
                0,
                "The validators themselves failed on it, more than once. The work is there and \
                 nobody has judged it.",
            );
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::samples::{Sample, page};

    #[test]
    fn failed_validation_is_shown_with_what_was_found() {
        let sample = Sample::disputed();
        let occasion = sample.occasion();
        let task = sample.task("task-001");
        insta::assert_snapshot!(page(80, |sheet| draw(
            sheet,
            "task-001 failed validation",
            &occasion,
            Some(task)
        )));
    }

    #[test]
    fn a_task_that_nobody_judged_is_shown() {
        let sample = Sample::unjudged();
        let occasion = sample.occasion();
        let task = sample.task("task-001");
        insta::assert_snapshot!(page(80, |sheet| draw(
            sheet,
            "No validator could judge task-001",
            &occasion,
            Some(task)
        )));
    }
}

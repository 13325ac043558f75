//! The plan gate: is this the right plan?

use std::fmt::Write as _;

use blueflame_core::gate::PlanAnswer;
use blueflame_core::ids::{GroupName, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::plan::{Plan, Risk, TaskSpec};
use blueflame_core::state::task::Step;
use blueflame_core::state::{PLAN_REJECTIONS, PlanStep};

use super::plan_edit::{self, OnDisk};
use super::sheet::{Keep, STRONG, Sheet, WARNING, count, cut};
use super::talk::{Choice, Talk};
use super::{Occasion, Unanswered};
use crate::narrate::plain;

const CHOICES: [Choice; 5] = [
    Choice::alone('a', "approve", "begin with this plan"),
    Choice::alone('e', "edit", "change the plan in your editor"),
    Choice::with_text('r', "replan", "have another plan made, with your notes"),
    Choice::alone('v', "view", "read what each agent will be told"),
    Choice::alone('q', "quit", "end the session; nothing is changed"),
];

pub(super) fn ask(talk: &mut Talk<'_>, occasion: &Occasion<'_>) -> Result<PlanAnswer, Unanswered> {
    let nothing = Plan::default();
    let plan = match &occasion.state.planning.step {
        PlanStep::Proposed(plan) => plan,
        PlanStep::Wanted | PlanStep::Running | PlanStep::Approved => &nothing,
    };
    let mut sheet = talk.sheet();
    draw(&mut sheet, plan, occasion);
    talk.show(&sheet.finish());
    let mut warned = false;
    loop {
        match talk.choose(&CHOICES)? {
            ('a', _) => match plan_edit::on_disk(plan, occasion) {
                OnDisk::Changed if !warned => {
                    warned = true;
                    talk.say(&format!(
                        "`{}` was changed and is not the plan above. Take the changes over \
                         with `e`, or approve the plan above with `a`.",
                        occasion.tasks_file.display()
                    ));
                }
                OnDisk::Changed | OnDisk::Same => return Ok(PlanAnswer::Approve),
            },
            ('e', _) => {
                if let Some(plan) = plan_edit::edit(talk, plan, occasion)? {
                    return Ok(PlanAnswer::Edit { plan });
                }
            }
            ('r', notes) => {
                let last = occasion.state.planning.rejections + 1 >= PLAN_REJECTIONS;
                let notes = match notes.as_str() {
                    "" => {
                        if last {
                            talk.say(
                                "This would be the last plan sent back: the session ends then. \
                                 With `e` you can write the plan yourself.",
                            );
                        }
                        talk.ask_text(
                            "What should be different? An empty line ends your notes.\n> ",
                        )?
                    }
                    _ => notes,
                };
                if !notes.is_empty() {
                    return Ok(PlanAnswer::Replan { notes });
                }
                talk.say("Without notes the next plan would be the same. Nothing was decided.");
            }
            ('v', _) => {
                let mut sheet = talk.sheet();
                descriptions(&mut sheet, plan);
                talk.page(&sheet.finish())?;
            }
            _ => return Ok(PlanAnswer::Quit),
        }
    }
}

pub(super) fn draw(sheet: &mut Sheet, plan: &Plan, occasion: &Occasion<'_>) {
    let state = occasion.state;
    sheet.title("Plan review");
    sheet.field("session", state.session.as_str());
    sheet.field("goal", &beginning(&state.goal));
    sheet.field("tasks", &totals(plan));
    if let Some(forecast) = occasion.forecast {
        let mut range = format!("{} to {}, with all retries", forecast.least, forecast.most);
        if let Some(percent) = forecast.off_percent {
            // Writing to a string cannot fail.
            let _ = write!(range, "; learned, and off by {percent} % so far");
        }
        sheet.field("forecast", &range);
    }
    let landed = state.board.count(Step::Merged);
    if landed > 0 {
        sheet.field("landed", &format!("{} of earlier plans", count(landed, "task")));
    }
    if plan.tasks.is_empty() {
        sheet.blank();
        sheet.paragraph(0, "The plan has no tasks: there would be nothing left to do.");
    }
    for (number, at) in plan.order().into_iter().enumerate() {
        sheet.blank();
        task(sheet, number + 1, &plan.tasks[at]);
    }
    let sent_back = usize::try_from(state.planning.rejections).unwrap_or(usize::MAX);
    if sent_back > 0 {
        sheet.blank();
        let sent_back = count(sent_back, "plan");
        sheet.warning(&format!(
            "{sent_back} sent back so far; at {PLAN_REJECTIONS} the session ends"
        ));
    }
}

/// The first line of a text, marked when there is more of it.
fn beginning(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\n') {
        Some((first, _)) => format!("{} [...]", first.trim_end()),
        None => text.to_owned(),
    }
}

fn totals(plan: &Plan) -> String {
    let groups = plan.group_order();
    let names: Vec<&str> = groups.iter().map(GroupName::as_str).collect();
    let risky = plan.tasks.iter().filter(|task| task.risk == Some(Risk::High)).count();
    let number = plan.tasks.len();
    let grouped = match names.len() {
        0 => String::new(),
        groups => format!(" in {}: {}", count(groups, "group"), names.join(", ")),
    };
    let risky = match risky {
        0 => String::new(),
        risky => format!("; {} at high risk", count(risky, "task")),
    };
    format!("{number}{grouped}{risky}")
}

fn task(sheet: &mut Sheet, number: usize, task: &TaskSpec) {
    let title = format!("{number}. {}  {}", task.id, task.title.lines().next().unwrap_or_default());
    let title = cut(&plain(&title), sheet.width(), Keep::Start);
    sheet.styled(STRONG, &title);
    let risk = match task.risk {
        Some(Risk::Low) => ", low risk",
        Some(Risk::Mid) => ", medium risk",
        Some(Risk::High) => ", high risk",
        None => "",
    };
    let about = format!("   group {}, priority {}{risk}", task.group, task.priority);
    let style = if task.risk == Some(Risk::High) { WARNING } else { anstyle::Style::new() };
    sheet.styled(style, &about);
    let locks: Vec<&str> = task.file_locks.iter().map(LockPath::as_str).collect();
    sheet.field_at(3, "files", &locks.join(", "));
    let needs: Vec<&str> = task.dependencies.iter().map(TaskId::as_str).collect();
    let after = if needs.is_empty() { "nothing".to_owned() } else { needs.join(", ") };
    sheet.field_at(3, "after", &after);
    for command in &task.acceptance {
        sheet.field_at(3, "check", command);
    }
    let model = task.model.as_deref().map(|model| format!("model {model}"));
    let executor = task.executor.as_ref().map(|executor| format!("executor {executor}"));
    let choices: Vec<String> = executor.into_iter().chain(model).collect();
    if !choices.is_empty() {
        sheet.field_at(3, "with", &choices.join(", "));
    }
}

/// The plan with all that agents are told.
fn descriptions(sheet: &mut Sheet, plan: &Plan) {
    for (number, at) in plan.order().into_iter().enumerate() {
        task(sheet, number + 1, &plan.tasks[at]);
        sheet.blank();
        sheet.paragraph(3, &plan.tasks[at].description);
        sheet.blank();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::samples::{self, Sample, page};

    #[test]
    fn a_plan_is_shown_in_the_order_of_the_work() {
        let sample = Sample::plan();
        let occasion = sample.occasion();
        insta::assert_snapshot!(page(80, |sheet| draw(sheet, &samples::plan(), &occasion)));
    }

    #[test]
    fn a_plan_on_a_narrow_terminal_after_one_was_sent_back() {
        let mut sample = Sample::plan();
        sample.send_plan_back();
        let mut occasion = sample.occasion();
        occasion.forecast = None;
        insta::assert_snapshot!(page(40, |sheet| draw(sheet, &samples::plan(), &occasion)));
    }

    #[test]
    fn the_whole_plan_can_be_read() {
        insta::assert_snapshot!(page(80, |sheet| descriptions(sheet, &samples::plan())));
    }

    #[test]
    fn an_empty_plan_says_so() {
        let sample = Sample::plan();
        let text = page(80, |sheet| draw(sheet, &Plan::default(), &sample.occasion()));
        assert!(text.contains("there would be nothing left to do"), "{text}");
    }
}

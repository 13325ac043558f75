//! The state of a session as a page of text.

use std::fmt::Write as _;

use blueflame_core::money::Budget;
use blueflame_core::projection::{self, StageView};
use blueflame_core::state::State;
use blueflame_core::state::merging::Publishing;
use blueflame_core::state::task::{Phase, Step, Task};

use crate::narrate::{self, plain};

/// Everything a person wants to know at a glance, and no more.
pub fn page(state: &State) -> String {
    let mut page = String::new();
    let mut line = |label: &str, text: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{label:<9} {}", plain(&text));
    };
    line("session", format!("{}, {}", state.session, stage(state)));
    line("goal", first_line(&state.goal).to_owned());
    line("cycle", format!("{} of {}", state.cycle, state.rules.max_wave_cycles));
    let spent = state.crew.spent();
    let budget = match state.crew.session_budget() {
        Budget::Unlimited => String::new(),
        limit => format!(" of {limit}"),
    };
    line("spent", format!("{} and {} tokens{budget}", spent.cost, spent.usage.total()));
    if let Some(lost) = state.crew.written_off() {
        line("note", format!("{lost} more count as spent: the shares of agents that were lost"));
    }
    if state.crew.is_nearly_spent(state.rules.warn_percent) {
        line("note", format!("{} percent of the budget are used", state.rules.warn_percent));
    }
    if let Some(gate) = &state.gate {
        line(
            "waiting",
            narrate::sentence(&blueflame_core::event::Event::GateOpened { gate: gate.clone() }),
        );
    }
    if let Some(until) = state.paused_until {
        line("paused", format!("until {until}, by the provider"));
    }
    if state.config_drifted {
        line("note", "the configuration file has changed since the session began".into());
    }
    match &state.publishing {
        Publishing::Waiting { reason, .. } => {
            line("note", format!("landed, not yet published: {reason}"));
        }
        Publishing::Nothing
        | Publishing::Wanted { .. }
        | Publishing::Running { .. }
        | Publishing::Published { .. } => {}
    }
    for (id, agent) in state.crew.live() {
        let task = agent.work.task().map(ToString::to_string).unwrap_or_default();
        line("agent", format!("{id} {task} {}", agent.spend.cost));
    }
    let tasks: Vec<&Task> =
        state.board.tasks().iter().filter(|task| task.step() != Step::Replaced).collect();
    let width = tasks.iter().map(|task| task.spec.id.as_str().len()).max().unwrap_or(0);
    for task in tasks {
        let attempts = match task.attempts {
            0 => String::new(),
            1 => ", 1 attempt".into(),
            more => format!(", {more} attempts"),
        };
        let _ = writeln!(
            page,
            "  {:<width$}  {:<9} [{}] {}{attempts}{}",
            task.spec.id,
            projection::status_word(task.step()),
            task.spec.group,
            plain(first_line(&task.spec.title)),
            plain(&remark(task))
        );
    }
    page
}

fn stage(state: &State) -> String {
    match projection::stage(state) {
        StageView::Planning => "planning".into(),
        StageView::BetweenCycles => "between two cycles".into(),
        StageView::Development => "developing".into(),
        StageView::Validation => "validating".into(),
        StageView::Merge => "merging".into(),
        StageView::Stopping => "stopping".into(),
        StageView::Suspended => "suspended, can be resumed".into(),
        StageView::Ended(end) => format!("ended: {}", narrate::ending(end)),
    }
}

fn remark(task: &Task) -> String {
    match &task.phase {
        Phase::Failed { reason } => format!(": {}", first_line(reason)),
        Phase::Blocked { by } => format!(": needs {by}"),
        Phase::Disputed { notes, .. } => format!(": failed validation: {}", first_line(notes)),
        Phase::Unjudged { .. } => ": no validator could judge it".into(),
        _ => String::new(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

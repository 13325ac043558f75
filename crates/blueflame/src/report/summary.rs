//! What a session came to: what landed, what did not and why, what it took, and
//! what to do next. Made from the journal alone, so that it can be shown at any
//! time and by anyone.

mod clock;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use blueflame_core::event::{Event, LandResult, Work};
use blueflame_core::forecast::Forecast;
use blueflame_core::hook::HookResult;
use blueflame_core::ids::{ChangesetId, Role, TaskId};
use blueflame_core::money::{Budget, Spend, Usd};
use blueflame_core::plan::Plan;
use blueflame_core::state::State;
use blueflame_core::state::hooks::HookStands;
use blueflame_core::state::merging::Publishing;
use blueflame_core::state::task::{Phase, Step};

use self::clock::Clock;
use super::{first_line, proven, rows, stage};
use crate::amounts;
use crate::columns::{self, Side, Table};
use crate::history::{self, HistoryError};
use crate::narrate::{plain, short};
use crate::people::sheet::{Sheet, count};

const WIDTH: usize = 80;

/// The summary of a session as a page, from its journal.
pub fn page(journal: &Path) -> Result<String, HistoryError> {
    let mut clock = Clock::default();
    let mut order: Vec<ChangesetId> = Vec::new();
    let state = history::fold(journal, None, |moment| {
        clock.tick(moment);
        if let Event::LandFinished { changeset, result: LandResult::Landed } = moment.event {
            order.push(changeset.clone());
        }
    })?
    .state;
    let mut sheet = Sheet::new(WIDTH);
    sheet.blank();
    sheet.ready(&format!("== Summary of {} ==", state.session));
    sheet.blank();
    head(&mut sheet, &state, &clock);
    landed(&mut sheet, &state, &order);
    left(&mut sheet, &state);
    tasks(&mut sheet, &state);
    roles(&mut sheet, &state);
    hooks(&mut sheet, &state);
    if !state.weaker.is_empty() {
        heading(&mut sheet, "Weaker settings that were in force");
        for setting in &state.weaker {
            sheet.behind("  - ", setting);
        }
    }
    heading(&mut sheet, "What was proven of the boundaries");
    sheet.behind("  - ", &proven(&state));
    next(&mut sheet, &state);
    Ok(sheet.finish())
}

fn head(sheet: &mut Sheet, state: &State, clock: &Clock) {
    sheet.field("goal", first_line(&state.goal));
    sheet.field("session", &stage(state));
    let cycles = count(state.cycle as usize, "cycle");
    let whole = amounts::between(state.started_at, state.last_at);
    let mut time = format!("{} in {cycles}", amounts::time(whole));
    for (length, what) in [(clock.asked(), "waiting for you"), (clock.away(), "left alone")] {
        if length >= Duration::from_secs(1) {
            // Writing to a string cannot fail.
            let _ = write!(time, ", {} of it {what}", amounts::time(length));
        }
    }
    sheet.field("time", &time);
    let forecast = Forecast::of(&state.rules, &plan_of(state));
    let line = forecast.as_ref().and_then(|forecast| Some((forecast, forecast.configured()?)));
    if let Some((forecast, line)) = line {
        let by_planner = state.crew.past().iter().any(|past| past.work == Work::Plan);
        let planner = &state.rules.estimates.planner;
        let (more, cost) =
            if by_planner { (planner.seconds, planner.cost) } else { (0, Usd::ZERO) };
        let worked = whole.saturating_sub(clock.asked()).saturating_sub(clock.away());
        let text = format!(
            "{} at work, {} forecast with {}",
            amounts::time(worked),
            amounts::time(Duration::from_secs(line.seconds + more)),
            count(line.workers as usize, "worker")
        );
        sheet.field("", &text);
        sheet.field("cost", &amounts::spent(&state.crew));
        let plus = |amount: Usd| Usd::from_micros(amount.micros().saturating_add(cost.micros()));
        let range = forecast.cost;
        let text =
            format!("{} forecast, {} with every retry", plus(range.once), plus(range.with_retries));
        sheet.field("", &text);
        if let Some(learned) = &state.rules.estimates.learned {
            let seconds = off(worked.as_secs(), line.seconds + more);
            let spent = state.crew.spent().cost.micros();
            let dollars = off(spent, plus(range.once).micros());
            sheet.field("forecast", &format!("off by {seconds} in time and {dollars} in cost"));
            for line in super::learned(learned) {
                sheet.field("", &line);
            }
        }
    } else {
        sheet.field("cost", &amounts::spent(&state.crew));
    }
    if let Some(lost) = state.crew.written_off() {
        sheet.field("", &format!("{lost} more count as spent: agents that were lost"));
    }
}

/// How far a forecast was off what came of it.
fn off(actual: u64, forecast: u64) -> String {
    match actual {
        0 => "an unknown part".to_owned(),
        actual => format!("{} %", actual.abs_diff(forecast).saturating_mul(100) / actual),
    }
}

/// The tasks of all plans, as they were carried out.
fn plan_of(state: &State) -> Plan {
    let tasks = state.board.tasks().iter().filter(|task| task.step() != Step::Replaced);
    Plan { tasks: tasks.map(|task| task.spec.clone()).collect() }
}

/// Changesets in the order in which they landed, with the tasks in them.
fn landed(sheet: &mut Sheet, state: &State, order: &[ChangesetId]) {
    heading(sheet, "Landed");
    if order.is_empty() {
        sheet.paragraph(2, "Nothing.");
        return;
    }
    for landed in order {
        let mut at = "";
        let mut tasks = Vec::new();
        for task in state.board.tasks() {
            if let Phase::Merged { changeset, commit } = &task.phase
                && changeset == landed
            {
                at = short(commit.as_str());
                tasks.push(format!("{} {}", task.spec.id, first_line(&task.spec.title)));
            }
        }
        sheet.behind(&format!("  {landed} as {at}: "), &tasks.join("; "));
    }
    match &state.publishing {
        Publishing::Published { commit } => {
            sheet.paragraph(
                2,
                &format!("All of it is on the base branch, at {}.", short(commit.as_str())),
            );
        }
        Publishing::Waiting { reason, .. } => {
            sheet.paragraph(2, &format!("Not yet on the base branch: {reason}"));
        }
        Publishing::Wanted { .. }
        | Publishing::Joined { .. }
        | Publishing::Checking { .. }
        | Publishing::Running { .. } => {
            sheet.paragraph(2, "Not yet on the base branch: the session stopped before.");
        }
        Publishing::Nothing => {
            sheet.paragraph(2, "It stays on a branch of its own (merge.target: branch).");
        }
    }
}

fn left(sheet: &mut Sheet, state: &State) {
    let open: Vec<_> =
        rows::tasks(state).into_iter().filter(|row| row.phase != Some(Step::Merged)).collect();
    if open.is_empty() {
        return;
    }
    heading(sheet, "Did not land");
    for row in open {
        let remark = row.remark.as_deref().map(first_line);
        let why = remark.map(|remark| format!(": {remark}")).unwrap_or_default();
        let text = format!("{}{why}", rows::phase_word(row.phase));
        sheet.behind(&format!("  {}  ", row.id), &text);
    }
}

/// How the attempts at each task ended.
fn tasks(sheet: &mut Sheet, state: &State) {
    let rows = rows::tasks(state);
    if rows.is_empty() {
        return;
    }
    heading(sheet, "Tasks");
    let mut table = Table::new([
        ("  task", Side::Left),
        ("now", Side::Left),
        ("cost", Side::Right),
        ("its workers", Side::Left),
        ("its validators", Side::Left),
    ]);
    for row in rows {
        table.row([
            format!("  {}", row.id),
            rows::phase_word(row.phase).to_owned(),
            amounts::exact(row.spend.cost),
            ends(state, row.id, Role::Worker),
            ends(state, row.id, Role::Validator),
        ]);
    }
    lines(sheet, &table);
}

fn ends(state: &State, task: &TaskId, role: Role) -> String {
    let past = state.crew.past().iter();
    let mine = past.filter(|past| past.work.task() == Some(task) && past.work.role() == role);
    let ends: Vec<&str> = mine.map(|past| past.outcome).collect();
    if ends.is_empty() { "-".to_owned() } else { ends.join(", ") }
}

fn roles(sheet: &mut Sheet, state: &State) {
    if state.crew.past().is_empty() {
        return;
    }
    heading(sheet, "Spent by role");
    let mut table = Table::new([
        ("  role", Side::Left),
        ("runs", Side::Right),
        ("tokens", Side::Right),
        ("cost", Side::Right),
    ]);
    let mut row = |name: &str, runs: usize, spend: Spend| {
        let tokens = spend.usage.total().to_string();
        table.row([format!("  {name}"), runs.to_string(), tokens, amounts::exact(spend.cost)]);
    };
    for role in Role::ALL {
        let runs = || state.crew.past().iter().filter(|past| past.work.role() == role);
        if runs().next().is_some() {
            let spend = runs().fold(Spend::default(), |sum, past| sum.plus(past.spend));
            row(role.name(), runs().count(), spend);
        }
    }
    row("total", state.crew.past().len(), state.crew.spent());
    lines(sheet, &table);
}

fn hooks(sheet: &mut Sheet, state: &State) {
    let mut failed = Vec::new();
    for (number, run) in state.hooks.runs().iter().enumerate() {
        let name = format!("{:03}-{}", number + 1, run.occasion.hook().name());
        match &run.stands {
            HookStands::Ended(HookResult::Failed { reason }) => {
                failed.push(format!("{name} {reason}"));
            }
            HookStands::Ended(HookResult::CutShort) => {
                failed.push(format!("{name} was cut short, and is not run again"));
            }
            HookStands::Due | HookStands::Running | HookStands::Ended(HookResult::Passed) => {}
        }
    }
    if failed.is_empty() {
        return;
    }
    heading(sheet, "Hooks that did not succeed");
    for text in failed {
        sheet.behind("  - ", &text);
    }
}

fn next(sheet: &mut Sheet, state: &State) {
    let mut steps = Vec::new();
    let id = &state.session;
    if state.ended().is_none() {
        steps.push(format!("`blueflame resume {id}` goes on where it stands"));
    }
    if let Publishing::Waiting { .. } = state.publishing {
        steps.push(format!(
            "`blueflame publish {id}` brings what landed to the base branch, when nothing is in \
             its way any more"
        ));
    }
    let lost = |task: &&blueflame_core::state::task::Task| {
        !matches!(task.step(), Step::Merged | Step::Replaced)
    };
    if state.ended().is_some()
        && let Some(task) = state.board.tasks().iter().find(lost)
    {
        steps.push(format!(
            "`blueflame log {id} --task {}` tells what became of a task; its last attempts are \
             still there to look at, until `blueflame cleanup`",
            task.spec.id
        ));
    }
    if matches!(state.crew.session_budget(), Budget::Usd(_) | Budget::Tokens(_))
        && state.crew.is_closed()
    {
        steps.push("raise limits.max_session_cost_usd for the next session".to_owned());
    }
    steps.push(format!("`blueflame cost {id}` has every agent run"));
    heading(sheet, "Next");
    for step in steps {
        sheet.behind("  - ", &step);
    }
}

fn heading(sheet: &mut Sheet, text: &str) {
    sheet.blank();
    sheet.ready(text);
}

fn lines(sheet: &mut Sheet, table: &Table) {
    for line in table.lines() {
        sheet.ready(&columns::clip(&plain(&line), WIDTH));
    }
}

//! Where a session stands, as a page of text and as a document.
//!
//! Both are made from the same rows, so they cannot disagree. `replay` shows
//! the page of any moment, `status` that of this one.

mod document;
mod rows;
pub mod summary;

use std::fmt::Write as _;

use blueflame_core::gate::Gate;
use blueflame_core::ids::{SessionId, TaskId};
use blueflame_core::memory::learned::{Learned, LearnedRole};
use blueflame_core::projection::{self, StageView};
use blueflame_core::state::merging::Publishing;
use blueflame_core::state::{Proven, State};
use jiff::Timestamp;

use crate::amounts;
use crate::columns::{Side, Table};
use crate::narrate::{self, plain};
use crate::repo_lock::{Holder, Presence};

pub use document::document;
use rows::{AgentRow, ChangesetRow, TaskRow, phase_word};
pub use rows::{changesets as changeset_rows, does};

/// What the journal does not tell: how late it is, and who is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    pub now: Timestamp,
    pub orchestrator: Orchestrator,
}

/// Whether somebody works on the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Orchestrator {
    /// Nobody looked: the page is about a moment of the past.
    NotAsked,
    Gone,
    /// Who, is not known in the moment before they say so.
    Here(Option<Holder>),
    /// The repository is held by one that works on another session.
    Elsewhere(Holder),
}

impl Scene {
    /// The moment of the last event.
    pub fn of_the_past(state: &State) -> Self {
        Scene { now: state.last_at, orchestrator: Orchestrator::NotAsked }
    }

    /// This moment, for one session.
    pub fn of_now(now: Timestamp, presence: Presence, session: &SessionId) -> Self {
        let orchestrator = match presence {
            Presence::Nobody => Orchestrator::Gone,
            Presence::Somebody(Some(holder)) if holder.session != *session => {
                Orchestrator::Elsewhere(holder)
            }
            Presence::Somebody(holder) => Orchestrator::Here(holder),
        };
        Scene { now, orchestrator }
    }

    /// The moment up to which agents are known to have been at work: without an
    /// orchestrator, that of the last event.
    fn seen(&self, state: &State) -> Timestamp {
        match self.orchestrator {
            Orchestrator::Here(_) => self.now,
            Orchestrator::NotAsked | Orchestrator::Gone | Orchestrator::Elsewhere(_) => {
                state.last_at
            }
        }
    }
}

/// Everything a person wants to know at a glance, and no more.
pub fn page(state: &State, scene: &Scene) -> String {
    let mut page = String::new();
    for (label, text) in facts(state, scene) {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{label:<9} {}", plain(&text));
    }
    for table in [agents(state, scene), tasks(state), changesets(state)] {
        if !table.is_empty() {
            page.push('\n');
        }
        for line in table {
            let _ = writeln!(page, "{line}");
        }
    }
    page
}

fn facts(state: &State, scene: &Scene) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("session", format!("{}, {}", state.session, stage(state))),
        ("goal", first_line(&state.goal).to_owned()),
        ("cycle", format!("{} of {}", state.cycle, state.rules.max_wave_cycles)),
    ];
    facts.extend(orchestrator(state, scene));
    facts.push(("spent", amounts::spent(&state.crew)));
    if let Some(held) = state.crew.held() {
        facts.push(("held", format!("{held} more by agents at work, until they end")));
    }
    if let Some(lost) = state.crew.written_off() {
        let text = format!("{lost} more count as spent: the shares of agents that were lost");
        facts.push(("note", text));
    }
    if state.crew.is_nearly_spent(state.rules.warn_percent) {
        facts
            .push(("note", format!("{} percent of the budget are used", state.rules.warn_percent)));
    }
    facts.extend(state.weaker.iter().map(|setting| ("weaker", setting.clone())));
    facts.push(("proven", proven(state)));
    for (role, skills) in state.crew.skills() {
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        facts.push(("skills", format!("{role}: {}", names.join(", "))));
    }
    if let Some(gate) = &state.gate {
        facts.push(("waiting", format!("for the person, {}", narrate::question(gate))));
        facts.push(("answer", format!("{}{}", choices(gate), where_to_answer(state, scene))));
    }
    for (account, until) in state.pauses.iter() {
        let left = match amounts::between(scene.now, until) {
            left if left.is_zero() => String::new(),
            left => format!(", for {}", amounts::time(left)),
        };
        let whose = narrate::of_account(account);
        facts.push((
            "paused",
            format!("{whose} until {until:.0}{left}, by the provider").trim_start().to_owned(),
        ));
    }
    for (back_off, until) in state.back_offs.waiting() {
        let work = narrate::job(&back_off.work);
        let left = amounts::time(amounts::between(scene.now, until));
        let whose = narrate::of_account(&back_off.account);
        let text = format!("to {work}, for {left}: the provider{whose} was overloaded");
        facts.push(("waits", text));
    }
    if state.config_drifted {
        let text = "the configuration file has changed since the session began";
        facts.push(("note", text.into()));
    }
    match &state.publishing {
        Publishing::Waiting { reason, .. } => {
            facts.push(("note", format!("landed, not yet published: {reason}")));
        }
        Publishing::Nothing
        | Publishing::Wanted { .. }
        | Publishing::Joined { .. }
        | Publishing::Checking { .. }
        | Publishing::Running { .. }
        | Publishing::Published { .. } => {}
    }
    for revert in state.reverts.iter().filter(|it| it.has_landed()) {
        let text = format!("{} was taken back, by {}", revert.undoes, revert.changeset);
        facts.push(("note", text));
    }
    if let Some(counts) = counts(state) {
        facts.push(("tasks", counts));
    }
    facts
}

/// What is known of the boundaries that hold the agents.
fn proven(state: &State) -> String {
    let Some(Proven { proof, outdated }) = &state.proven else {
        return "no; `blueflame doctor --prove` shows what holds here".to_owned();
    };
    let age = amounts::time(amounts::between(proof.at, state.started_at));
    format!("{age} before it began: {}", narrate::proven(proof, outdated))
}

/// Who works on the session, or how to go on with it.
fn orchestrator(state: &State, scene: &Scene) -> Option<(&'static str, String)> {
    if state.ended().is_some() {
        return None;
    }
    let resume = format!("go on with `blueflame resume {}`", state.session);
    match &scene.orchestrator {
        Orchestrator::NotAsked => None,
        Orchestrator::Here(Some(Holder { host, pid, since, .. })) => {
            Some(("running", format!("in process {pid} on `{host}`, since {since:.0}")))
        }
        Orchestrator::Here(None) => Some(("running", "in a process that is just starting".into())),
        Orchestrator::Gone if state.suspended => Some(("resume", resume)),
        Orchestrator::Gone => Some(("left", format!("nobody is working on it; {resume}"))),
        Orchestrator::Elsewhere(Holder { session, pid, .. }) => {
            let text = format!("process {pid} works on {session} now; when that is done, {resume}");
            Some(("left", text))
        }
    }
}

fn choices(gate: &Gate) -> &'static str {
    match gate {
        Gate::Plan => "approve, edit, plan again or quit",
        Gate::ValidationFailed(_) => "do it again, edit or drop it",
        Gate::ValidatorFailed(_) => "pass it by hand, give it up or validate again",
        Gate::Changeset(_) => "approve, reject or skip it",
        Gate::Budget => "raise it or stop",
        Gate::Session => "go on, plan again or stop",
    }
}

fn where_to_answer(state: &State, scene: &Scene) -> String {
    match scene.orchestrator {
        Orchestrator::NotAsked => String::new(),
        Orchestrator::Here(_) => ", in the terminal where the session runs".into(),
        Orchestrator::Gone | Orchestrator::Elsewhere(_) => {
            format!("; `blueflame resume {}` asks again", state.session)
        }
    }
}

/// How many tasks stand where.
fn counts(state: &State) -> Option<String> {
    let mut steps: Vec<(&str, usize)> = Vec::new();
    let rows = rows::tasks(state);
    for row in &rows {
        let word = phase_word(row.phase);
        match steps.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => steps.push((word, 1)),
        }
    }
    let steps: Vec<String> = steps.iter().map(|(word, count)| format!("{count} {word}")).collect();
    (!rows.is_empty()).then(|| format!("{}: {}", rows.len(), steps.join(", ")))
}

fn agents(state: &State, scene: &Scene) -> Vec<String> {
    let mut table = Table::new([
        ("agent", Side::Left),
        ("does", Side::Left),
        ("with", Side::Left),
        ("for", Side::Right),
        ("tokens", Side::Right),
        ("cost", Side::Right),
        ("", Side::Left),
    ]);
    let rows = rows::agents(state, scene.seen(state));
    for AgentRow { id, does, executor, seconds, spend, remark, .. } in &rows {
        let time = amounts::time(std::time::Duration::from_secs(*seconds));
        let tokens = spend.usage.total().to_string();
        table.row([
            id.to_string(),
            does.clone(),
            executor.to_string(),
            time,
            tokens,
            spend.cost.to_string(),
            (*remark).to_owned(),
        ]);
    }
    if rows.is_empty() { Vec::new() } else { table.lines() }
}

fn tasks(state: &State) -> Vec<String> {
    let rows = rows::tasks(state);
    let mut table = Table::new([
        ("task", Side::Left),
        ("group", Side::Left),
        ("phase", Side::Left),
        ("attempt", Side::Right),
        ("agent", Side::Left),
        ("cost", Side::Right),
        ("title", Side::Left),
    ]);
    for row in &rows {
        let TaskRow { id, group, phase, attempts, agent, spend, title, .. } = row;
        table.row([
            id.to_string(),
            group.to_string(),
            phase_word(*phase).to_owned(),
            attempts.to_string(),
            agent.map_or_else(|| "-".to_owned(), ToString::to_string),
            spend.cost.to_string(),
            plain(first_line(title)).into_owned(),
        ]);
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = table.lines().into_iter();
    let mut all: Vec<String> = lines.next().into_iter().collect();
    for (line, row) in lines.zip(&rows) {
        all.push(line);
        let remark = row.remark.as_deref().map(first_line);
        all.extend(remark.map(|remark| format!("    {}", plain(remark))));
    }
    all
}

fn changesets(state: &State) -> Vec<String> {
    let rows = rows::changesets(state);
    let mut table =
        Table::new([("changeset", Side::Left), ("tasks", Side::Left), ("stands", Side::Left)]);
    for ChangesetRow { id, tasks, stands, .. } in &rows {
        let tasks: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
        table.row([id.to_string(), tasks.join(" "), plain(first_line(stands)).into_owned()]);
    }
    if rows.is_empty() { Vec::new() } else { table.lines() }
}

/// The part of the session that it is in, in words.
pub fn stage(state: &State) -> String {
    match projection::stage(state) {
        StageView::Planning => "planning".into(),
        StageView::BetweenCycles => "between two cycles".into(),
        StageView::Development => "developing".into(),
        StageView::Validation => "validating".into(),
        StageView::Merge => "merging".into(),
        StageView::Stopping => "stopping".into(),
        StageView::Suspended => match &state.obstacle {
            Some(why) => format!("suspended, because {}", narrate::plain(why)),
            None => "suspended, can be resumed".into(),
        },
        StageView::Ended(end) => format!("ended: {}", narrate::ending(end)),
    }
}

/// What a forecast was learned from, and how far off such forecasts were: a line
/// for each role.
pub(crate) fn learned(learned: &Learned) -> Vec<String> {
    let told = |role: &LearnedRole| {
        let LearnedRole { role, executor, runs, time_off_percent, cost_off_percent, .. } = role;
        let off = match (time_off_percent, cost_off_percent) {
            (Some(time), Some(cost)) => {
                format!("such a forecast was off by {time} % in time and {cost} % in cost so far")
            }
            (Some(time), None) => format!("such a forecast was off by {time} % in time so far"),
            _ => "how far off that is cannot be told yet".to_owned(),
        };
        format!("a {role} by {executor}: learned from {runs} runs of earlier sessions; {off}")
    };
    learned.roles.iter().map(told).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

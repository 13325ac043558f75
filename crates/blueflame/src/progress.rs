//! Live progress while a session runs, on standard error.
//!
//! [`lines`] says what the block at the bottom of the terminal shows; it is a
//! plain function of what it is given. [`Painter`] puts it there. [`Progress`]
//! has both: events become lines above the block, and where there is no
//! terminal those lines are all there is.

pub mod painter;

use std::io::{self, Stderr, Write};
use std::time::{Duration, Instant};

use blueflame_core::event::{Event, Wave, Work};
use blueflame_core::ids::AgentId;
use blueflame_core::money::{Budget, Spend};
use blueflame_core::state::task::Step;
use blueflame_core::state::{Stage, State};
use jiff::Timestamp;

use crate::amounts;
use crate::columns::{self, Side, Table};
use crate::narrate::{self, plain};
use crate::report;

pub use painter::{Painter, Size};

/// What is known of an agent while it works.
#[derive(Clone, Copy, Debug)]
pub struct AgentLine<'a> {
    pub agent: &'a AgentId,
    pub work: &'a Work,
    pub elapsed: Duration,
    pub spend: Spend,
    /// What it did last, in its own words or ours.
    pub last: &'a str,
}

/// Shows how a session goes on.
#[derive(Debug)]
pub struct Progress<W> {
    painter: Painter<W>,
    /// The terminal's, unless it is fixed.
    size: Option<Size>,
}

impl Progress<Stderr> {
    /// On standard error, which may be a terminal or not, and may be resized.
    pub fn stderr() -> Self {
        Progress { painter: Painter::stderr(), size: None }
    }
}

impl<W: Write> Progress<W> {
    /// On something of a fixed size.
    pub fn new(out: W, terminal: bool, size: Size) -> Self {
        Progress { painter: Painter::new(out, terminal), size: Some(size) }
    }

    /// Tells what happened, if it is worth a line.
    pub fn event(&mut self, at: Timestamp, event: &Event) -> io::Result<()> {
        if !is_news(event) {
            return Ok(());
        }
        let time = at.strftime("%H:%M:%SZ");
        self.say(&format!("{time}  {}", narrate::sentence(event)))
    }

    /// Prints a line above the block. What others wrote has to go through
    /// `narrate::plain` before.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        let size = self.size();
        self.painter.say(line, size)
    }

    /// Paints the block anew. It can be called as often as one likes.
    pub fn show(
        &mut self,
        state: &State,
        agents: &[AgentLine<'_>],
        now: Timestamp,
    ) -> io::Result<()> {
        let instant = Instant::now();
        if !self.painter.is_due(instant) {
            return Ok(());
        }
        let size = self.size();
        self.painter.paint(&lines(state, agents, now, size), instant, size)
    }

    /// Leaves the screen to a question; nothing is written until
    /// [`Progress::go_on`].
    pub fn pause(&mut self) -> io::Result<()> {
        let size = self.size();
        self.painter.hold(size)
    }

    pub fn go_on(&mut self) -> io::Result<()> {
        let size = self.size();
        self.painter.release(size)
    }

    /// Takes the block off the screen, as at the end of a session.
    pub fn clear(&mut self) -> io::Result<()> {
        let size = self.size();
        self.painter.clear(size)
    }

    fn size(&self) -> Size {
        self.size.unwrap_or_else(|| Size::of(io::stderr()))
    }
}

/// Whether a person who looks on wants a line about it. Running figures are in
/// the block and in the journal.
fn is_news(event: &Event) -> bool {
    !matches!(
        event,
        Event::UsageReported { .. }
            | Event::MemorySampled { .. }
            | Event::GrantWanted { .. }
            | Event::Granted { .. }
            | Event::SnapshotTaken { .. }
            | Event::AgentStarted { .. }
    )
}

/// From this width on, agents are named.
const WIDE: usize = 100;
/// From this width on, there is room for what they do and their tokens.
const MEDIUM: usize = 60;

/// The block: where the session stands, one line for each agent, and what all
/// of it has cost. Agents for which there is no line are counted.
pub fn lines(state: &State, agents: &[AgentLine<'_>], now: Timestamp, size: Size) -> Vec<String> {
    // A line each for the head, the sums, the rest and the cursor.
    let most = size.height.saturating_sub(4).max(1);
    // Nobody is served by a line that says that there is one more.
    let shown = if agents.len() <= most + 1 { agents.len() } else { most };
    let mut lines = vec![head(state)];
    lines.extend(agent_lines(&agents[..shown], size.width));
    if agents.len() > shown {
        lines.push(format!("  and {} more at work", agents.len() - shown));
    }
    lines.push(sums(state, agents, now));
    lines.iter().map(|line| columns::clip(line, size.width)).collect()
}

fn head(state: &State) -> String {
    let stage = report::stage(state);
    let cycle = match state.cycle {
        0 => String::new(),
        cycle => format!(", cycle {cycle} of {}", state.rules.max_wave_cycles),
    };
    let mut head = format!("{stage}{cycle}");
    let total = state.board.tasks().len() - state.board.count(Step::Replaced);
    if total > 0 {
        let done = state.board.tasks().iter().filter(|task| is_done(state, task.step())).count();
        head.push_str(&format!(": {done} of {} done", narrate::tasks(total)));
    }
    let lost = state.board.count(Step::Failed) + state.board.count(Step::Blocked);
    if lost > 0 {
        head.push_str(&format!(", {lost} failed or blocked"));
    }
    if let Some(until) = state.paused_until {
        head.push_str(&format!("; paused until {}", until.strftime("%H:%M:%SZ")));
    }
    head
}

/// Whether a task has come to where this wave wants to bring it.
fn is_done(state: &State, step: Step) -> bool {
    let wave = match state.stage {
        Stage::Wave(wave) => wave,
        // Before the first wave nothing is done; afterwards, what landed.
        Stage::Planning | Stage::CycleDue | Stage::Closing(_) | Stage::Ended(_) => Wave::Merge,
    };
    match step {
        Step::Waiting
        | Step::Ready
        | Step::Requeued
        | Step::Working
        | Step::Built
        | Step::Inspecting
        | Step::Failed
        | Step::Blocked
        | Step::Dropped
        | Step::Replaced => false,
        Step::Done
        | Step::Accepting
        | Step::Accepted
        | Step::Validating
        | Step::Disputed
        | Step::Unjudged => wave == Wave::Development,
        Step::Validated => wave != Wave::Merge,
        Step::Merged => true,
    }
}

fn agent_lines(agents: &[AgentLine<'_>], width: usize) -> Vec<String> {
    // Names may be long; what an agent does last needs room as well.
    let longest = (width / 3).max(8);
    let mut table = Table::with([
        ("", Side::Left),
        ("", Side::Left),
        ("", Side::Left),
        ("", Side::Right),
        ("", Side::Right),
        ("", Side::Right),
        ("", Side::Left),
    ]);
    let from = |narrowest: usize, text: String| {
        if width >= narrowest { text } else { String::new() }
    };
    for AgentLine { agent, work, elapsed, spend, last } in agents {
        table.row([
            from(WIDE, agent.to_string()),
            columns::clip(&subject(work), longest),
            from(MEDIUM, verb(work).to_owned()),
            amounts::time(*elapsed),
            from(MEDIUM, format!("{} tok", amounts::short(spend.usage.total()))),
            spend.cost.to_string(),
            plain(last).into_owned(),
        ]);
    }
    table.lines().into_iter().skip(1).map(|line| format!("  {line}")).collect()
}

fn subject(work: &Work) -> String {
    match work {
        Work::Plan => "plan".into(),
        // As its directory and its branch are called.
        Work::Develop { task, attempt } | Work::Validate { task, attempt } => {
            format!("{task}.a{attempt}")
        }
        Work::Resolve { changeset } => changeset.to_string(),
    }
}

fn verb(work: &Work) -> &'static str {
    match work {
        Work::Plan => "planning",
        Work::Develop { .. } => "working",
        Work::Validate { .. } => "validating",
        Work::Resolve { .. } => "resolving",
    }
}

/// What was spent, the living by what they say themselves: that is newer than
/// what was recorded.
fn sums(state: &State, agents: &[AgentLine<'_>], now: Timestamp) -> String {
    let past = state.crew.past().iter().map(|past| past.spend);
    let live = state.crew.live().iter().map(|(id, agent)| {
        let said = agents.iter().find(|line| line.agent == id).map(|line| line.spend);
        agent.spend.at_least(said.unwrap_or_default())
    });
    let spent = past.chain(live).fold(Spend::default(), Spend::plus);
    let tokens = amounts::short(spent.usage.total());
    let spent = match state.crew.session_budget() {
        Budget::Unlimited => format!("{}, {tokens} tokens", spent.cost),
        Budget::Usd(limit) => format!("{} of {limit}, {tokens} tokens", spent.cost),
        Budget::Tokens(limit) => {
            format!("{tokens} of {} tokens, {}", amounts::short(limit), spent.cost)
        }
    };
    format!("{spent}, {}", amounts::time(amounts::between(state.started_at, now)))
}

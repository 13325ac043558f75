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

    /// Whether there is a block that has to be kept up to date.
    pub fn paints(&self) -> bool {
        self.painter.paints()
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
    let mut lines = vec![head(state, now)];
    lines.extend(agent_lines(&agents[..shown], size.width));
    if agents.len() > shown {
        lines.push(format!("  and {} more at work", agents.len() - shown));
    }
    lines.push(sums(state, agents, now));
    lines.iter().map(|line| columns::clip(line, size.width)).collect()
}

fn head(state: &State, now: Timestamp) -> String {
    let mut parts = Vec::new();
    let total = state.board.tasks().len() - state.board.count(Step::Replaced);
    if total > 0 {
        let done = state.board.tasks().iter().filter(|task| is_done(state, task.step())).count();
        parts.push(format!("{done} of {} done", narrate::tasks(total)));
    }
    let lost = state.board.count(Step::Failed) + state.board.count(Step::Blocked);
    if lost > 0 {
        parts.push(format!("{lost} failed or blocked"));
    }
    for (account, until) in state.pauses.iter().filter(|(_, until)| *until > now) {
        let left = amounts::time(amounts::between(now, until));
        parts.push(format!("{}paused for {left}", narrate::of_account(account)));
    }
    let waiting = state.back_offs.waiting().filter(|(_, until)| *until > now);
    if let Some((first, count)) = waiting.map(|(_, until)| (until, 1)).reduce(first_and_count) {
        let left = amounts::time(amounts::between(now, first));
        parts.push(format!("provider overloaded: {count} to try again, the first in {left}"));
    }
    if state.cycle > 0 {
        parts.push(format!("cycle {} of {}", state.cycle, state.rules.max_wave_cycles));
    }
    let now = report::stage(state);
    if parts.is_empty() { now } else { format!("{now}: {}", parts.join(", ")) }
}

fn first_and_count(one: (Timestamp, u32), other: (Timestamp, u32)) -> (Timestamp, u32) {
    (one.0.min(other.0), one.1 + other.1)
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
    let longest = (width / 4).clamp(12, 24);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use blueflame_core::ids::TaskId;
    use blueflame_core::money::{Usage, Usd};

    use super::*;
    use crate::history;

    /// A session in its development wave, with three agents at work.
    fn session() -> State {
        let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals/v1");
        let journal = Path::new(samples).join("seed-5926.jsonl");
        history::fold(&journal, Some(60), |_| {}).unwrap().state
    }

    fn crowd(count: u32) -> Vec<(AgentId, Work, Duration, Spend, String)> {
        let actions = [
            "Edit src/auth/token.rs",
            "Bash cargo test --workspace -- --nocapture auth::token::refresh",
            "\u{1b}[2Jforged\nline",
            "Read 日本語の説明.md",
            "",
        ];
        let mut last = actions.into_iter().cycle();
        (0..count)
            .map(|place| {
                let task = match place {
                    3 => TaskId::new("a-task-with-a-name-that-somebody-made-rather-long").unwrap(),
                    place => TaskId::new(format!("task-{place:03}")).unwrap(),
                };
                let work = match place % 4 {
                    2 => Work::Validate { task, attempt: 1 },
                    _ => Work::Develop { task, attempt: 1 + place % 3 },
                };
                let usage = Usage { input: u64::from(place) * 12_345, ..Usage::default() };
                let cost = Usd::from_micros(u64::from(place) * 123_456);
                (
                    AgentId::new(format!("{}-{place:08x}", work.role())).unwrap(),
                    work,
                    Duration::from_secs(u64::from(place) * 47),
                    Spend { usage, cost },
                    last.next().unwrap().to_owned(),
                )
            })
            .collect()
    }

    fn shown(state: &State, count: u32, size: Size) -> Vec<String> {
        let crowd = crowd(count);
        let agents: Vec<AgentLine<'_>> = crowd
            .iter()
            .map(|(agent, work, elapsed, spend, last)| AgentLine {
                agent,
                work,
                elapsed: *elapsed,
                spend: *spend,
                last,
            })
            .collect();
        let now = state.started_at + Duration::from_secs(3_723);
        lines(state, &agents, now, size)
    }

    #[test]
    fn every_width_and_every_number_of_agents_fits() {
        let state = session();
        for width in [40, 80, 120] {
            let size = Size { width, height: 24 };
            let mut all = String::new();
            for count in [0, 1, 8, 30] {
                let lines = shown(&state, count, size);
                assert!(lines.len() < size.height, "{} lines", lines.len());
                for line in &lines {
                    assert!(columns::width(line) <= width, "{line}");
                    assert!(!line.contains(char::is_control), "{line:?}");
                }
                all.extend([format!("-- {count} agents\n"), lines.join("\n"), "\n".to_owned()]);
            }
            insta::assert_snapshot!(format!("width_{width}"), all);
        }
    }

    /// However small the screen, there is something to see, and nobody who is
    /// not shown goes uncounted.
    #[test]
    fn no_size_is_too_small_and_everyone_is_counted() {
        let state = session();
        for width in (0..60).step_by(3) {
            for height in (0..40).step_by(3) {
                for count in [0, 1, 2, 30] {
                    let lines = shown(&state, count, Size { width, height });
                    assert!(lines.len() >= 2 && lines.iter().all(|it| columns::width(it) <= width));
                    let rest = lines.iter().find_map(|line| {
                        line.trim().strip_prefix("and ")?.split(' ').next()?.parse().ok()
                    });
                    if width >= 30 {
                        let shown = lines.len() - 2 - usize::from(rest.is_some());
                        assert_eq!(shown + rest.unwrap_or(0), count as usize, "{lines:#?}");
                    }
                }
            }
        }
    }

    #[test]
    fn without_a_terminal_events_are_lines_and_figures_are_not() {
        let state = session();
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, false, Size::USUAL);
        let at = state.started_at;
        progress.event(at, &Event::ValidationStarted).unwrap();
        progress.event(at, &Event::MemorySampled { free_mb: 5 }).unwrap();
        progress.show(&state, &[], at).unwrap();
        progress.pause().unwrap();
        progress.event(at, &Event::StopRequested).unwrap();
        progress.go_on().unwrap();
        progress.clear().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "02:40:00Z  validation began\n02:40:00Z  the session is to stop\n"
        );
    }

    #[test]
    fn what_agents_report_is_newer_than_what_was_recorded() {
        let state = session();
        let (id, agent) = state.crew.live().iter().next().unwrap();
        let more = agent.spend.plus(Spend { cost: Usd::from_micros(5_000_000), ..agent.spend });
        let line = |spend| AgentLine {
            agent: id,
            work: &agent.work,
            elapsed: Duration::ZERO,
            spend,
            last: "",
        };
        let recorded = state.crew.spent().cost.to_string();
        let sum = |agents: &[AgentLine<'_>]| sums(&state, agents, state.started_at);
        assert!(sum(&[]).starts_with(&recorded));
        assert!(sum(&[line(Spend::default())]).starts_with(&recorded));
        assert!(sum(&[line(more)]).starts_with("$5.01"), "{}", sum(&[line(more)]));
    }
}

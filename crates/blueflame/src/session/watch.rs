//! What people see while a session runs: a live picture at a terminal, lines
//! everywhere else, events as JSON for programs.

use std::collections::BTreeMap;
use std::io::Stderr;
use std::time::Instant;

use blueflame_core::event::{Event, VerifyResult, Work};
use blueflame_core::ids::AgentId;
use blueflame_core::money::Spend;
use blueflame_core::state::State;
use jiff::Timestamp;

use crate::narrate;
use crate::progress::{AgentLine, Progress};
use crate::stdout;

/// Where an event stands in the journal.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub seq: u64,
    pub at: Timestamp,
    pub epoch: u32,
}

/// What is known of an agent besides the state.
#[derive(Debug)]
struct Seen {
    work: Work,
    since: Instant,
    last: String,
}

/// Everything here is for people: a screen that cannot be written to is no
/// reason to stop.
#[derive(Debug)]
pub struct Watch {
    progress: Progress<Stderr>,
    agents: BTreeMap<AgentId, Seen>,
    /// Events go to standard output, one a line.
    json: bool,
    /// Whoever asked tells how it ended, in more words.
    end_is_told: bool,
    /// Only agents that come and go are worth a line: whoever runs the session
    /// tells the rest.
    brief: bool,
}

impl Watch {
    pub fn new(json: bool) -> Watch {
        Watch {
            progress: Progress::stderr(),
            agents: BTreeMap::new(),
            json,
            end_is_told: false,
            brief: false,
        }
    }

    /// For a session that is a means to something else.
    pub fn brief() -> Watch {
        Watch { brief: true, ..Watch::new(false) }
    }

    /// For a command that says itself what came of it.
    pub fn of_errand() -> Watch {
        Watch { end_is_told: true, ..Watch::new(false) }
    }

    /// An event that has just been recorded.
    pub fn event(&mut self, entry: Entry, event: &Event, state: &State) {
        self.data(entry, event);
        if matches!(event, Event::GateAnswered { .. } | Event::GateWithdrawn { .. }) {
            let _ = self.progress.go_on();
        }
        let told = (self.end_is_told && is_end(event)) || (self.brief && !is_about_agents(event));
        if !told {
            let _ = self.progress.event(entry.at, event);
        }
        self.tick(state);
    }

    /// The record for programs, in the form that `log --json` has.
    pub fn data(&self, entry: Entry, event: &Event) {
        if !self.json {
            return;
        }
        if let Ok(event) = serde_json::to_string(event) {
            let Entry { seq, at, epoch } = entry;
            let members = event.trim_start_matches('{');
            let line = format!("{{\"q\":{seq},\"ts\":\"{at}\",\"e\":{epoch},{members}\n");
            let _ = stdout::write_on(&line);
        }
    }

    pub fn started(&mut self, agent: &AgentId, work: &Work) {
        let seen = Seen { work: work.clone(), since: Instant::now(), last: String::new() };
        self.agents.insert(agent.clone(), seen);
    }

    pub fn seen(&mut self, agent: &AgentId, what: &str) {
        if let Some(seen) = self.agents.get_mut(agent) {
            seen.last = narrate::plain(what.lines().next().unwrap_or_default()).into_owned();
            // What was not allowed is worth a line that stays.
            if what.starts_with("denied") && !self.brief {
                let _ = self.progress.say(&format!("{agent}: {}", seen.last));
            }
        }
    }

    pub fn gone(&mut self, agent: &AgentId) {
        self.agents.remove(agent);
    }

    /// Whether there is a picture that has to be painted anew now and then.
    pub fn paints(&self) -> bool {
        self.progress.paints()
    }

    /// Paints the picture anew.
    pub fn tick(&mut self, state: &State) {
        let spend_of = |agent: &AgentId| {
            state.crew.live().get(agent).map_or_else(Spend::default, |it| it.spend)
        };
        let lines: Vec<AgentLine<'_>> = self
            .agents
            .iter()
            .map(|(agent, seen)| AgentLine {
                agent,
                work: &seen.work,
                elapsed: seen.since.elapsed(),
                spend: spend_of(agent),
                last: &seen.last,
            })
            .collect();
        let _ = self.progress.show(state, &lines, Timestamp::now());
    }

    /// Leaves the screen to a question, until it is answered.
    pub fn pause(&mut self) {
        let _ = self.progress.pause();
    }

    pub fn go_on(&mut self) {
        let _ = self.progress.go_on();
    }

    pub fn say(&mut self, text: &str) {
        let _ = self.progress.say(text);
    }

    pub fn warn(&mut self, text: &str) {
        if self.brief {
            return;
        }
        self.say(&format!("warning: {}", narrate::plain(text)));
    }

    pub fn finish(&mut self) {
        let _ = self.progress.go_on();
        let _ = self.progress.clear();
    }
}

fn is_about_agents(event: &Event) -> bool {
    matches!(event, Event::AgentStarted { .. } | Event::AgentExited { .. })
}

/// Whether an errand is over with this.
fn is_end(event: &Event) -> bool {
    match event {
        Event::PublishFinished { .. } => true,
        Event::VerifyFinished { result, .. } | Event::JointVerifyFinished { result, .. } => {
            matches!(result, VerifyResult::Failed { .. })
        }
        _ => false,
    }
}

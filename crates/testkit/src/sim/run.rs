//! One simulated session, from its seed to its end, and what is left of it.

use blueflame_core::event::{End, Event};
use blueflame_core::state::State;
use jiff::Timestamp;

use super::orchestrator::Session;

/// A session that did what must never happen, or failed to do what must.
#[derive(Debug)]
pub struct Broken {
    pub seed: u64,
    pub finding: String,
    /// The journal up to there, a line for each event.
    pub journal: Vec<String>,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.journal.len().saturating_sub(12);
        for line in &self.journal[last..] {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "seed {}: {}", self.seed, self.finding)?;
        write!(
            f,
            "repeat it with: cargo run -p blueflame-testkit --example simulate -- --seed {}",
            self.seed
        )
    }
}

#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub end: End,
    pub crashes: u64,
    pub journal: Vec<(Timestamp, Event)>,
    pub state: State,
}

impl Report {
    /// The journal as text, a line for each event.
    pub fn lines(&self) -> Vec<String> {
        lines(&self.journal)
    }
}

fn lines(journal: &[(Timestamp, Event)]) -> Vec<String> {
    journal
        .iter()
        .map(|(at, event)| {
            let text = serde_json::to_string(event).unwrap_or_else(|error| error.to_string());
            format!("{at} {text}")
        })
        .collect()
}

/// Runs one session to its end.
pub fn run(seed: u64) -> Result<Report, Box<Broken>> {
    let mut session = Session::new(seed);
    let end = session.run_to_end();
    let journal = session.journal;
    match end {
        Ok(end) => {
            Ok(Report { seed, end, crashes: session.crashes, journal, state: session.state })
        }
        Err(finding) => Err(Box::new(Broken { seed, finding, journal: lines(&journal) })),
    }
}

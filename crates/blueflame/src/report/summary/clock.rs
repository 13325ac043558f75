//! How much of a session nobody could work: the person was asked while no agent
//! was busy, or no orchestrator was there.

use std::time::Duration;

use blueflame_core::event::Event;
use jiff::Timestamp;

use crate::amounts;
use crate::history::Moment;

#[derive(Debug, Default)]
pub struct Clock {
    last: Option<Timestamp>,
    asked: Duration,
    away: Duration,
}

impl Clock {
    /// What passed before an event belongs to how things stood then.
    pub fn tick(&mut self, moment: &Moment<'_>) {
        let now = moment.record.at;
        let passed = self.last.map_or(Duration::ZERO, |last| amounts::between(last, now));
        self.last = Some(now);
        let Some(before) = moment.before else { return };
        if matches!(moment.event, Event::SessionResumed { .. }) {
            self.away += passed;
        } else if before.gate.is_some() && before.crew.live().is_empty() {
            self.asked += passed;
        }
    }

    pub fn asked(&self) -> Duration {
        self.asked
    }

    pub fn away(&self) -> Duration {
        self.away
    }
}

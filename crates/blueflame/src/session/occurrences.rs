//! What becomes of each thing that a session is told of.

use std::mem;

use blueflame_core::event::Event;

use super::post::Occurrence;
use super::recording::Unrecorded;
use super::{Session, tidy};
use crate::failure::{Failure, Kind};

impl Session {
    /// Facts that arrived one after the other are recorded together.
    pub(super) fn happened(
        &mut self,
        occurrences: impl IntoIterator<Item = Occurrence>,
    ) -> Result<(), Failure> {
        let mut facts = Vec::new();
        for occurrence in occurrences {
            match occurrence {
                Occurrence::Fact(event) => {
                    // A question may have answered itself by what came before.
                    if matches!(event, Event::GateAnswered { .. }) && !facts.is_empty() {
                        self.record_facts(mem::take(&mut facts))?;
                        self.act()?;
                    }
                    facts.push(event);
                }
                other => {
                    self.record_facts(mem::take(&mut facts))?;
                    self.was_told(other)?;
                }
            }
        }
        self.record_facts(facts)
    }

    fn record_facts(&mut self, facts: Vec<Event>) -> Result<(), Failure> {
        let mut recorded = Vec::new();
        for event in facts {
            let live = self.state.crew.live();
            let work = match &event {
                // The last one comes twice: as a report, and with the result.
                Event::SnapshotTaken { agent, commit }
                    if live.get(agent).and_then(|it| it.snapshot.as_ref()) == Some(commit) =>
                {
                    continue;
                }
                Event::AgentExited { agent, .. } => live.get(agent).map(|it| it.work.clone()),
                _ => None,
            };
            match self.take(event) {
                Ok(taken) => recorded.push((taken, work)),
                // It was overtaken by something else, such as an answer to a
                // question that was taken back.
                Err(Unrecorded::Illegal(_)) => {}
                Err(unrecorded) => return Err(unrecorded.into()),
            }
        }
        self.write(recorded.iter().map(|(taken, _)| taken))?;
        for (taken, work) in recorded {
            if let (Some(work), Event::AgentExited { outcome, .. }) = (&work, &taken.event) {
                tidy::after_work(&self.site, work, outcome);
            }
            if let Event::AgentExited { agent, .. }
            | Event::AgentLost { agent, .. }
            | Event::AgentStartFailed { agent, .. } = &taken.event
            {
                self.agents.remove(agent);
                self.desk.take_back(agent, None);
                self.watch.gone(agent);
            }
        }
        Ok(())
    }

    fn was_told(&mut self, occurrence: Occurrence) -> Result<(), Failure> {
        match occurrence {
            Occurrence::Fact(event) => self.record_facts(vec![event]),
            Occurrence::Seen { agent, what } => {
                self.watch.seen(&agent, &what);
                Ok(())
            }
            Occurrence::Asked { agent, ticket, questions } => {
                if let Some(commands) = self.agents.get(&agent) {
                    self.watch.pause();
                    let commands = commands.clone();
                    self.desk.put_questions(agent, ticket, questions, commands);
                }
                Ok(())
            }
            Occurrence::Answered => {
                self.watch.go_on();
                Ok(())
            }
            Occurrence::TakenBack { agent, ticket } => {
                self.desk.take_back(&agent, Some(&ticket));
                self.watch.go_on();
                Ok(())
            }
            Occurrence::Unanswered(why) => {
                self.unanswered = Some(why);
                let _ = self.stop.send(true);
                Ok(self.record(Event::StopRequested)?)
            }
            Occurrence::NotTaken { agent, reason } => {
                self.not_taken.insert(agent, reason);
                let _ = self.stop.send(true);
                if self.state.stopping {
                    return Ok(());
                }
                Ok(self.record(Event::StopRequested)?)
            }
            Occurrence::Obstructed(reason) if self.state.errand.is_some() => {
                Err(Failure::new(Kind::Missing, reason)
                    .hint("put that right; the same command once more goes on"))
            }
            Occurrence::Obstructed(reason) => {
                let _ = self.stop.send(true);
                Ok(self.record(Event::SessionObstructed { reason })?)
            }
            Occurrence::Warning(text) => {
                self.watch.warn(&text);
                Ok(())
            }
            Occurrence::Broken(why) => {
                let on = if self.state.errand.is_some() {
                    "the same command once more goes on"
                } else {
                    "what was recorded is safe; `blueflame resume` goes on"
                };
                Err(Failure::new(Kind::Internal, why).hint(on))
            }
        }
    }
}

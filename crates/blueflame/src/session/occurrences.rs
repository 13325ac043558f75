//! What becomes of each thing that a session is told of.

use blueflame_core::event::Event;

use super::post::Occurrence;
use super::{Session, Unrecorded, tidy};
use crate::failure::{Failure, Kind};

impl Session {
    pub(super) fn happened(&mut self, occurrence: Occurrence) -> Result<(), Failure> {
        match occurrence {
            // The last one comes twice: as a report, and with the result.
            Occurrence::Fact(Event::SnapshotTaken { agent, commit })
                if self.state.crew.live().get(&agent).and_then(|it| it.snapshot.as_ref())
                    == Some(&commit) =>
            {
                Ok(())
            }
            Occurrence::Fact(event) => {
                let work = match &event {
                    Event::AgentExited { agent, .. } => {
                        self.state.crew.live().get(agent).map(|it| it.work.clone())
                    }
                    _ => None,
                };
                match self.record(&event) {
                    Ok(()) => {
                        if let (Some(work), Event::AgentExited { outcome, .. }) = (&work, &event) {
                            tidy::after_work(&self.site, work, outcome);
                        }
                        if let Event::AgentExited { agent, .. }
                        | Event::AgentLost { agent, .. }
                        | Event::AgentStartFailed { agent, .. } = &event
                        {
                            self.agents.remove(agent);
                            self.desk.take_back(agent, None);
                            self.watch.gone(agent);
                        }
                        Ok(())
                    }
                    // It was overtaken by something else, such as an answer to a
                    // question that was taken back.
                    Err(Unrecorded::Illegal(_)) => Ok(()),
                    Err(unrecorded) => Err(unrecorded.into()),
                }
            }
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
                Ok(self.record(&Event::StopRequested)?)
            }
            Occurrence::NotTaken { agent, reason } => {
                self.not_taken.insert(agent, reason);
                let _ = self.stop.send(true);
                if self.state.stopping {
                    return Ok(());
                }
                Ok(self.record(&Event::StopRequested)?)
            }
            Occurrence::Obstructed(reason) if self.state.errand.is_some() => {
                Err(Failure::new(Kind::Missing, reason)
                    .hint("put that right; the same command once more goes on"))
            }
            Occurrence::Obstructed(reason) => {
                let _ = self.stop.send(true);
                Ok(self.record(&Event::SessionObstructed { reason })?)
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

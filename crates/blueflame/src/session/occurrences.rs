//! What becomes of each thing that a session is told of.

use blueflame_core::event::Event;

use super::Session;
use super::post::Occurrence;
use super::recording::Unrecorded;
use crate::failure::{Failure, Kind};

impl Session {
    /// Facts that arrived one after the other are recorded together, and with what is
    /// decided then.
    pub(super) fn happened(
        &mut self,
        occurrences: impl IntoIterator<Item = Occurrence>,
    ) -> Result<(), Failure> {
        let mut undecided = false;
        for occurrence in occurrences {
            match occurrence {
                Occurrence::Fact(event) => {
                    // A question may have answered itself by what came before.
                    if undecided && matches!(event, Event::GateAnswered { .. }) {
                        self.act()?;
                    }
                    self.take_fact(event)?;
                    undecided = true;
                }
                // What is only shown does not wait for the disk.
                shown @ (Occurrence::Seen { .. } | Occurrence::Warning(_)) => {
                    self.was_told(shown)?;
                }
                other => {
                    self.write()?;
                    self.was_told(other)?;
                }
            }
        }
        Ok(())
    }

    fn take_fact(&mut self, event: Event) -> Result<(), Failure> {
        // The last one comes twice: as a report, and with the result.
        if let Event::SnapshotTaken { agent, commit } = &event
            && let Some(live) = self.state.crew.live().get(agent)
            && live.snapshot.as_ref() == Some(commit)
        {
            return Ok(());
        }
        match self.take(event) {
            // It was overtaken by something else, such as an answer to a question that
            // was taken back.
            Ok(()) | Err(Unrecorded::Illegal(_)) => Ok(()),
            Err(unrecorded) => Err(unrecorded.into()),
        }
    }

    fn was_told(&mut self, occurrence: Occurrence) -> Result<(), Failure> {
        match occurrence {
            Occurrence::Fact(event) => self.take_fact(event),
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

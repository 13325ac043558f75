//! How a session is left: stopped by the person, at its end, or because nothing more
//! can happen.

use blueflame_core::event::Event;

use super::views::Views;
use super::{KILL_PATIENCE, Session};
use crate::failure::{Failure, Kind};
use crate::process_tree;

impl Session {
    /// The first time: an orderly stop. The second time: everything at once.
    pub(super) fn stop(&mut self, times: u32) -> Result<(), Failure> {
        let _ = self.stop.send(true);
        self.desk.withdraw_all();
        self.watch.go_on();
        if times == 1 {
            self.watch.say(if self.state.crew.live().is_empty() {
                "stopping"
            } else {
                "stopping: agents save their work; once more to kill them"
            });
            if self.state.stopping {
                return Ok(());
            }
            return Ok(self.record(Event::StopRequested)?);
        }
        for (id, agent) in self.state.crew.live() {
            if let Some(process) = &agent.process {
                // Until it is gone, what it leaves behind is still its own affair.
                let _ = process_tree::kill_and_wait(process, KILL_PATIENCE);
            }
            let directory = self.site.attempt(&agent.work, id);
            if let Err(error) = directory.end_leftovers() {
                self.watch.warn(&format!("something of {id} may still run: {error}"));
            }
        }
        Err(Failure::new(Kind::Interrupted, "killed; nothing that was recorded is lost")
            .hint("`blueflame resume` goes on"))
    }

    /// Why nothing more can happen: of all agents, only those are left whose work
    /// cannot be taken over. The next orchestrator finds it as it is.
    pub(super) fn waits_in_vain(&self) -> Option<String> {
        let mut live = self.state.crew.live().keys();
        let all = live.all(|agent| self.not_taken.contains_key(agent));
        let reasons: Vec<&str> = self.not_taken.values().map(String::as_str).collect();
        (all && !reasons.is_empty()).then(|| reasons.join("; "))
    }

    pub(super) fn leave(&mut self) -> Result<(), Failure> {
        self.watch.finish();
        self.write_views(Views::conclude);
        let _ = self.stop.send(true);
        let unused = self.desk.close();
        if self.state.ended().is_some() && !unused.is_empty() {
            self.watch.warn(&format!("prepared answers nobody asked for: {}", unused.join(", ")));
        }
        match self.lock.take() {
            Some(lock) => lock.release().map_err(Failure::from),
            None => Ok(()),
        }
    }
}

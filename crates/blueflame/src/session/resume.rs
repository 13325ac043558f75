//! Taking a session over: every agent of the one before is accounted for.

use std::fs;
use std::time::Duration;

use blueflame_core::event::Event;
use blueflame_core::ids::AgentId;
use blueflame_core::money::Spend;
use blueflame_core::skill::Handed;
use blueflame_core::state::crew::Agent;
use tokio::time::Instant;

use super::agents::{self, Run};
use super::brief::Brief;
use super::prepare::Job;
use super::{Session, internal};
use crate::attempt::directory::{Directory, DirectoryError, Standing};
use crate::attempt::messages::Command;
use crate::failure::Failure;

/// How long an attempt process takes to be reachable at most.
const PATIENCE: Duration = Duration::from_secs(30);

impl Session {
    /// Records that another orchestrator has the session now, and finds out what
    /// became of everyone at work. What the one before did itself and did not
    /// finish is decided anew.
    pub async fn take_over(&mut self, repaired_bytes: Option<u64>) -> Result<(), Failure> {
        let verify = Some(self.site.config.merge.verify.clone());
        self.record(Event::SessionResumed { repaired_bytes, verify })?;
        let live = self.state.crew.live().clone();
        for (id, agent) in live {
            self.account_for(id, agent).await?;
        }
        Ok(())
    }

    async fn account_for(&mut self, id: AgentId, agent: Agent) -> Result<(), Failure> {
        let Agent { work, executor, cap, grant, process, .. } = agent;
        let (agent, known) = (id, process.is_some());
        let directory = self.site.attempt(&work, &agent);
        let standing = settled(&directory).await.map_err(internal)?;
        let Some(brief) = Brief::of(&self.state, &work) else {
            return self.lost(agent, None);
        };
        let account = self.state.rules.account_of(&executor).clone();
        let run = Run { agent: agent.clone(), work, brief, account };
        match standing {
            // It was decided and never done, so it is done now. Nothing was spent.
            Standing::NotStarted => {
                let Run { agent, work, brief, account } = run;
                self.spawn(Job { agent, work, executor, account, cap, grant, brief });
                Ok(())
            }
            Standing::Lost { spend } => {
                agents::end_leftovers(&self.site.attempt(&run.work, &agent), &self.post);
                self.lost(agent, spend)
            }
            Standing::Running(None) => {
                self.watch.warn(&format!("{agent} cannot be reached, and is given up"));
                self.lost(agent, None)
            }
            Standing::Running(Some(registered)) => {
                if !known {
                    let process = registered.process.clone();
                    let (agent, skills) = (agent.clone(), handed(&directory));
                    self.record(Event::AgentStarted { agent, process, skills })?;
                }
                self.adopt(run, registered);
                // What it was granted may never have reached it.
                self.tell(&agent, Command::Grant { grant });
                Ok(())
            }
            Standing::Ended(sealed) => {
                if !known {
                    // Its process is gone, and its result is there.
                    let process = blueflame_core::event::Process {
                        pid: 0,
                        start_time: 0,
                        boot_id: String::new(),
                    };
                    let skills = handed(&directory);
                    self.record(Event::AgentStarted { agent, process, skills })?;
                }
                let (site, post) = self.parts();
                agents::collect(&site, run, *sealed, &post).await;
                Ok(())
            }
        }
    }

    fn lost(&mut self, agent: AgentId, spend: Option<Spend>) -> Result<(), Failure> {
        Ok(self.record(Event::AgentLost { agent, spend })?)
    }
}

/// The skills that an attempt was begun with.
fn handed(directory: &Directory) -> Vec<Handed> {
    directory.spec().map(|spec| spec.order.handed()).unwrap_or_default()
}

/// How an attempt stands once it stands somewhere. One that was about to begin
/// when its orchestrator died either can be reached soon, or never begins.
async fn settled(directory: &Directory) -> Result<Standing, DirectoryError> {
    if !directory.root().exists() {
        return Ok(Standing::NotStarted);
    }
    let begun = Instant::now();
    loop {
        match directory.standing()? {
            Standing::Running(None) if begun.elapsed() < PATIENCE => {}
            Standing::NotStarted => {
                // A process that is on its way finds no spec and gives up.
                if let Ok(_kept_out) = directory.take_up() {
                    let _ = fs::remove_file(directory.spec_file());
                    return Ok(Standing::NotStarted);
                }
            }
            standing => return Ok(standing),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

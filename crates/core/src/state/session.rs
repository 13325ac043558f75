//! The session's own course: cycles, waves, pauses, stop, resume, end.

use jiff::{SignedDuration, Timestamp};

use crate::event::{End, Wave};
use crate::ids::AccountName;
use crate::proof::Proof;
use crate::rules::WaveMode;

use super::errands::{Revert, RevertPhase};
use super::merging::{Changeset, ChangesetPhase, Publishing};
use super::task::{Phase, Step};
use super::{Proven, Refusal, Stage, State, ensure};

/// A weekly limit that was reached at its very start.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(7 * 24);

impl State {
    /// Whether a branch of the person's may be moving right now.
    pub fn is_landing(&self) -> bool {
        let landing =
            |changeset: &Changeset| matches!(changeset.phase, ChangesetPhase::Landing { .. });
        let reverting = |revert: &Revert| matches!(revert.phase, RevertPhase::Landing { .. });
        self.merging.changesets.iter().any(landing)
            || self.reverts.iter().any(reverting)
            || matches!(self.publishing, Publishing::Running { .. })
    }

    /// What was found out before the session is known from its start on, so that
    /// everything in its journal can be read in that light.
    pub(super) fn prove(&mut self, proof: &Proof, outdated: &[String]) -> Result<(), Refusal> {
        ensure!(self.events == 1, "a proof is known when the session begins, or not at all");
        ensure!(proof.stopped <= proof.tried, "more was stopped than was tried");
        self.proven = Some(Proven { proof: proof.clone(), outdated: outdated.to_vec() });
        Ok(())
    }

    /// Another process goes on where one left off. What the orchestrator did
    /// itself is to be done again; agents are accounted for one by one.
    pub(super) fn resume(&mut self, at: Timestamp, verify: Option<&[String]>) {
        self.suspended = false;
        self.obstacle = None;
        self.stopping = false;
        self.memory_holds = None;
        // If the provider still wants a pause, the next request will tell.
        self.pauses.forget();
        self.back_offs.forget();
        // An unanswered question is asked again.
        self.gate = None;
        for agent in self.crew.all_live_mut() {
            agent.stop_sent = false;
        }
        for place in 0..self.board.tasks().len() {
            let again = match &self.board.task(place).phase {
                Phase::Inspecting { commit } => Phase::Built { commit: commit.clone() },
                Phase::Accepting { commit } => Phase::Done { commit: commit.clone() },
                _ => continue,
            };
            self.board.set_phase(place, again, at);
        }
        for changeset in &mut self.merging.changesets {
            let otherwise = verify.is_some_and(|now| !changeset.was_checked_by(now));
            changeset.phase = match changeset.phase.clone() {
                // The person is shown what the check of today says.
                ChangesetPhase::Verified { fold } if otherwise => ChangesetPhase::Folded { fold },
                ChangesetPhase::Folding => ChangesetPhase::Planned,
                ChangesetPhase::Verifying { fold } => ChangesetPhase::Folded { fold },
                ChangesetPhase::Landing { fold } => ChangesetPhase::Approved { fold },
                other => other,
            };
        }
        self.give_up_running_hooks();
        self.errand = None;
        self.publishing = match self.publishing.clone() {
            Publishing::Running { commit } => Publishing::Wanted { commit },
            // Only the person asks for this, and may do so again.
            Publishing::Joined { commit } | Publishing::Checking { commit } => {
                let reason = "it was cut short; `blueflame publish` tries again".to_owned();
                Publishing::Waiting { commit, reason }
            }
            other => other,
        };
    }

    /// Stops for something that only the person can put right. What was about to
    /// land did not, and no branch is moving.
    pub(super) fn obstruct(&mut self, reason: &str) {
        self.stopping = true;
        self.obstacle = Some(reason.to_owned());
        for changeset in &mut self.merging.changesets {
            if let ChangesetPhase::Landing { fold } = changeset.phase.clone() {
                changeset.phase = ChangesetPhase::Approved { fold };
            }
        }
    }

    pub(super) fn suspend(&mut self) -> Result<(), Refusal> {
        ensure!(self.stopping, "nobody asked to stop");
        ensure!(!self.is_landing(), "a changeset is landing");
        ensure!(self.crew.live().is_empty(), "agents are still at work");
        ensure!(!self.hooks.is_any_running(), "a hook is still running");
        self.suspended = true;
        Ok(())
    }

    pub(super) fn end(&mut self, end: End) -> Result<(), Refusal> {
        ensure!(self.crew.live().is_empty(), "agents are still at work");
        ensure!(self.gate.is_none(), "a question is still open");
        ensure!(self.hooks.is_idle(), "a hook is due or still running");
        let open = self.board.tasks().iter().find(|task| {
            end == End::Complete && !matches!(task.step(), Step::Merged | Step::Replaced)
        });
        if let Some(task) = open {
            return Err(format!("`{}` has not landed", task.spec.id));
        }
        let in_flight = self.merging.changesets.iter().find(|changeset| {
            matches!(
                changeset.phase,
                ChangesetPhase::Approved { .. } | ChangesetPhase::Landing { .. }
            )
        });
        if let Some(changeset) = in_flight {
            return Err(format!(
                "changeset `{}` is approved but has not landed",
                changeset.planned.id
            ));
        }
        self.stage = Stage::Ended(end);
        Ok(())
    }

    pub(super) fn start_cycle(
        &mut self,
        at: Timestamp,
        cycle: u32,
        config: &str,
    ) -> Result<(), Refusal> {
        ensure!(self.stage == Stage::CycleDue, "no cycle is due");
        ensure!(cycle == self.cycle + 1, "the next cycle is {}, not {cycle}", self.cycle + 1);
        ensure!(
            cycle <= self.rules.max_wave_cycles,
            "only {} cycles are allowed",
            self.rules.max_wave_cycles
        );
        self.cycle = cycle;
        self.config_drifted = config != self.config;
        self.stage = Stage::Wave(Wave::Development);
        self.merging.changesets.clear();
        self.board.set_developing(true);
        self.board.readmit_requeued(at);
        Ok(())
    }

    pub(super) fn start_validation(&mut self) -> Result<(), Refusal> {
        ensure!(self.rules.waves == WaveMode::Strict, "waves overlap in this session");
        ensure!(self.stage == Stage::Wave(Wave::Development), "no development wave is under way");
        for step in [Step::Working, Step::Built, Step::Inspecting] {
            ensure!(self.board.is_empty(step), "development is still under way");
        }
        self.board.set_developing(false);
        self.stage = Stage::Wave(Wave::Validation);
        Ok(())
    }

    /// How many agents the memory holds. Before the first sample, only one is
    /// sure to fit.
    pub fn seats_in_memory(&self) -> u64 {
        match (self.rules.memory_per_agent_mb, self.memory_holds) {
            (None, _) => u64::MAX,
            (Some(_), None) => 1,
            (Some(_), Some(holds)) => holds.max(1),
        }
    }

    /// Memory that is free now comes on top of what the living already use.
    pub(super) fn sample_memory(&mut self, free_mb: u64) {
        self.memory_holds = self.rules.memory_per_agent_mb.map(|each| {
            let more = free_mb / each.max(1);
            (self.crew.live().len() as u64).saturating_add(more).max(1)
        });
    }

    /// When the first of those ends that wait for a provider.
    pub fn next_opening(&self) -> Option<Timestamp> {
        self.pauses.next_end().into_iter().chain(self.back_offs.next_end()).min()
    }

    /// A pause may have been prolonged while somebody waited for its end.
    pub(super) fn end_pauses(&mut self, at: Timestamp) -> Result<(), Refusal> {
        let Some(next) = self.next_opening() else { return Err("nothing is paused".into()) };
        ensure!(at >= next, "the pause lasts until {next}");
        self.pauses.end(at);
        self.back_offs.end(at);
        Ok(())
    }

    /// No pause is longer than the longest limit that providers have: a mistake in
    /// a header must not stop work for good.
    pub(super) fn pause(&mut self, at: Timestamp, until: Timestamp, account: &AccountName) {
        let longest = at.checked_add(LONGEST_PAUSE).unwrap_or(Timestamp::MAX);
        self.pauses.prolong(account, until.min(longest));
    }
}

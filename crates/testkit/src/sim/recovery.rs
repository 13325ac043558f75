//! After a kill: the world goes on, and another orchestrator takes over.

use blueflame_core::event::{Event, LandResult};
use blueflame_core::ids::AgentId;
use blueflame_core::money::Budget;
use blueflame_core::state::State;

use super::orchestrator::{Flow, Halt, Happening, Session, process};
use super::scenario;
use super::world::AgentStep;

impl Session {
    /// Killed: everything the orchestrator had in hand is gone. The world goes
    /// on for a while, then another one takes over from the journal.
    pub(super) fn come_back(&mut self) -> Result<(), String> {
        loop {
            self.crashes += 1;
            self.forget_own_doings();
            let back_at = self.now_ms + self.rng.between(10, 120_000);
            while let Some((&(at, _), _)) = self.agenda.first_key_value() {
                if at > back_at {
                    break;
                }
                let Some((_, Happening::Agent(agent))) = self.agenda.pop_first() else { continue };
                self.now_ms = self.now_ms.max(at);
                if let Some(AgentStep::Spent { next_in_ms }) =
                    self.world.step(&agent, self.now_ms, &mut self.rng)
                {
                    self.later(next_in_ms, Happening::Agent(agent));
                }
            }
            self.now_ms = back_at;
            if self.rng.percent(10) {
                self.world.reboot();
            }
            self.state = self.folded_anew()?;
            if self.state.ended().is_some() {
                return Ok(());
            }
            match self.resume() {
                Ok(()) => return Ok(()),
                Err(Halt::Crash) => {}
                Err(Halt::Broken(finding)) => return Err(finding),
            }
        }
    }

    pub(super) fn forget_own_doings(&mut self) {
        self.agenda.retain(|_, happening| matches!(happening, Happening::Agent(_)));
        self.waiting = false;
    }

    /// Takes the session over and accounts for every agent.
    pub(super) fn resume(&mut self) -> Flow {
        self.record(Event::SessionResumed { repaired_bytes: None, verify: None })?;
        self.plan_disturbances();
        let live: Vec<(AgentId, bool, bool, Budget)> = self
            .state
            .crew
            .live()
            .iter()
            .map(|(id, agent)| {
                (id.clone(), agent.process.is_some(), agent.wants_grant, agent.grant)
            })
            .collect();
        for (id, known_started, asked, grant) in live {
            let Some(agent) = self.world.agents.get(&id).cloned() else {
                self.record(Event::AgentLost { agent: id, spend: None })?;
                continue;
            };
            if !known_started {
                let process = process(self.sequence);
                self.record(Event::AgentStarted {
                    agent: id.clone(),
                    process,
                    skills: Vec::new(),
                })?;
            }
            if agent.sealed.is_some() {
                self.collect(&id, agent.spend)?;
                continue;
            }
            self.record(Event::UsageReported { agent: id.clone(), spend: agent.spend })?;
            if agent.grant != grant {
                self.world.give(&id, grant);
                self.later(1, Happening::Agent(id));
            } else if agent.waits_for_grant && !asked {
                self.record(Event::GrantWanted { agent: id })?;
            } else {
                self.later(1, Happening::Agent(id));
            }
        }
        Ok(())
    }

    /// The state from the journal as text: what a new process would see.
    fn folded_anew(&self) -> Result<State, String> {
        let mut parsed = Vec::with_capacity(self.journal.len());
        for (at, event) in &self.journal {
            let text = serde_json::to_string(event).map_err(|error| error.to_string())?;
            let again: Event = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            parsed.push((*at, again));
        }
        State::replay(parsed.iter().map(|(at, event)| (*at, event)))
            .map_err(|illegal| illegal.to_string())?
            .ok_or_else(|| "an empty journal".to_owned())
    }

    pub(super) fn check_replay(&self) -> Result<(), String> {
        let again = self.folded_anew()?;
        if again != self.state {
            return Err("a replay of the journal gives another state".into());
        }
        let text = |state: &State| serde_json::to_string(state).map_err(|error| error.to_string());
        if text(&again)? != text(&self.state)? {
            return Err("a replay of the journal prints differently".into());
        }
        self.check_true_spending()?;
        for (changeset, commit) in &self.world.landed {
            let recorded = self.journal.iter().any(|(_, event)| {
                matches!(event, Event::LandFinished { changeset: id, result: LandResult::Landed }
                    if id == changeset)
            });
            if !recorded {
                return Err(format!("{changeset} landed as {commit} and nobody recorded it"));
            }
        }
        Ok(())
    }

    /// What was really spent, whatever anyone recorded, stays within the
    /// budget but for one request for each agent at work.
    fn check_true_spending(&self) -> Result<(), String> {
        let spent = &self.world.true_spend;
        let (spent, limit) = match self.state.crew.session_budget() {
            Budget::Unlimited => return Ok(()),
            Budget::Usd(limit) => (spent.cost.micros(), limit.micros()),
            Budget::Tokens(limit) => (spent.usage.total(), limit),
        };
        let most_at_once = u64::from(self.state.rules.workers + self.state.rules.validators + 1);
        if spent <= limit + most_at_once * scenario::DEAREST_REQUEST {
            Ok(())
        } else {
            Err(format!("{spent} were really spent of {limit}"))
        }
    }
}

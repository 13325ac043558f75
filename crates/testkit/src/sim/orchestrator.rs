//! The orchestrator of a simulation: it does what the core decides, and dies
//! now and then.

use std::collections::{BTreeMap, BTreeSet};

use blueflame_core::decide::{Action, decide, was_decided};
use blueflame_core::event::{
    End, Event, FoldResult, LandResult, Process, PublishResult, StartFault, VerifyResult, Work,
};
use blueflame_core::gate::Gate;
use blueflame_core::hook::HookResult;
use blueflame_core::ids::{AccountName, AgentId, ChangesetId, Oid, SessionId, TaskId};
use blueflame_core::money::{Budget, Spend};
use blueflame_core::outcome::Product;
use blueflame_core::state::State;
use blueflame_core::state::merging::ChangesetPhase;
use jiff::Timestamp;

use super::audit::Auditor;
use super::people;
use super::rng::Rng;
use super::scenario::{self, Temper};
use super::world::{AgentStep, World, timestamp};

/// More events than any honest session of this size needs.
const TOO_MANY_EVENTS: usize = 20_000;

/// Why the orchestrator stops in the middle of what it does.
pub(super) enum Halt {
    /// It was killed.
    Crash,
    Broken(String),
}

pub(super) type Flow = Result<(), Halt>;

/// Something that happens by itself at its time.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    Agent(AgentId),
    /// Of the orchestrator's own making: gone when it is killed.
    Own(Own),
}

#[derive(Clone, Debug)]
pub(super) enum Own {
    Boot(AgentId, Work, Budget, Budget),
    Inspected(TaskId),
    Accepted(TaskId),
    Folded(ChangesetId, Vec<TaskId>),
    Verified(ChangesetId),
    Landed(ChangesetId),
    Published(Oid),
    Answer(Gate),
    HookEnded(u32),
    PauseOver,
    Memory,
    ProviderLimit,
    CtrlC,
}

pub(super) struct Session {
    pub(super) rng: Rng,
    pub(super) temper: Temper,
    pub(super) now_ms: u64,
    pub(super) sequence: u64,
    pub(super) agenda: BTreeMap<(u64, u64), Happening>,
    pub(super) world: World,
    pub(super) journal: Vec<(Timestamp, Event)>,
    pub(super) state: State,
    pub(super) auditor: Auditor,
    pub(super) crashes: u64,
    pub(super) taken_ids: BTreeSet<TaskId>,
    pub(super) waiting: bool,
}

impl Session {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let temper = Temper::draw(&mut rng);
        let rules = scenario::rules(&mut rng);
        let mut taken_ids = BTreeSet::new();
        let plan = rng.percent(30).then(|| scenario::plan(&mut rng, &[], &[], &mut taken_ids));
        let auditor = Auditor::new(&rules, plan.as_ref());
        let first = Event::SessionStarted {
            session: SessionId::new("ses-20260202-024000").expect("a well-formed id"),
            goal: format!("whatever seed {seed} asks for"),
            rules: Box::new(rules),
            config: "original".into(),
            plan,
            weaker: Vec::new(),
        };
        let at = timestamp(0);
        let state = State::begin(at, &first).expect("a plan that was made to fit");
        let mut session = Session {
            rng,
            temper,
            now_ms: 0,
            sequence: 0,
            agenda: BTreeMap::new(),
            world: World::default(),
            journal: vec![(at, first)],
            state,
            auditor,
            crashes: 0,
            taken_ids,
            waiting: false,
        };
        session.plan_disturbances();
        session
    }

    pub(super) fn run_to_end(&mut self) -> Result<End, String> {
        loop {
            match self.turn() {
                Ok(()) => {}
                Err(Halt::Crash) => self.come_back()?,
                Err(Halt::Broken(finding)) => return Err(finding),
            }
            if let Some(end) = self.state.ended() {
                self.check_replay()?;
                return Ok(end);
            }
            if self.journal.len() > TOO_MANY_EVENTS {
                return Err("the session never ends".into());
            }
        }
    }

    /// One round: do what is to be done, or let time pass. What is decided at once is
    /// recorded at once and then begun.
    fn turn(&mut self) -> Flow {
        if self.state.suspended {
            // The person comes back the next morning.
            self.forget_own_doings();
            self.now_ms += 1_000;
            return self.resume();
        }
        let mut decided = Vec::new();
        for action in decide(&self.state) {
            let number = u32::try_from(self.rng.draw() >> 32).unwrap_or(0);
            let config = if self.rng.percent(90) { "original" } else { "edited" };
            let intent = action.intent(number, config);
            if let Some(intent) = &intent {
                self.record(intent.clone())?;
            }
            decided.push((action, intent));
        }
        let acted = decided.iter().any(|(_, intent)| intent.is_some());
        for (action, intent) in decided {
            self.perform(action, intent.as_ref());
        }
        if acted {
            return Ok(());
        }
        if self.agenda.is_empty() {
            return Err(Halt::Broken("nothing is left to happen, and the session is open".into()));
        }
        // What arrives together is recorded without a decision in between.
        while let Some(((at, _), happening)) = self.agenda.pop_first() {
            self.now_ms = self.now_ms.max(at);
            match happening {
                Happening::Agent(agent) => self.agent_steps(&agent)?,
                Happening::Own(own) => self.own_doing(own)?,
            }
            if !self.rng.percent(self.temper.crowds) {
                break;
            }
        }
        Ok(())
    }

    /// Journal, then apply. The orchestrator may die before the line is
    /// durable, or right after.
    pub(super) fn record(&mut self, event: Event) -> Flow {
        let crash = self.rng.percent(self.temper.crash);
        if crash && self.rng.percent(40) {
            return Err(Halt::Crash);
        }
        let at = timestamp(self.now_ms);
        self.try_nonsense(at)?;
        self.auditor
            .observe(at, &event)
            .map_err(|finding| Halt::Broken(format!("{finding}, at {event:?}")))?;
        if !was_decided(&self.state, &event) {
            return Err(Halt::Broken(format!("a replay would not decide {event:?}")));
        }
        self.state.apply(at, &event).map_err(|illegal| Halt::Broken(illegal.to_string()))?;
        self.journal.push((at, event));
        if crash { Err(Halt::Crash) } else { Ok(()) }
    }

    /// Now and then an old event comes again: it must be refused without a
    /// trace, or make sense.
    fn try_nonsense(&mut self, at: Timestamp) -> Flow {
        if !self.rng.percent(3) {
            return Ok(());
        }
        let Some((_, old)) = self.rng.pick(&self.journal).cloned() else { return Ok(()) };
        let mut other = self.state.clone();
        let refused = other.apply(at, &old).is_err();
        let untouched = other == self.state;
        if refused && !untouched {
            return Err(Halt::Broken(format!("a refused event left a trace: {old:?}")));
        }
        let accepted_twice = matches!(
            old,
            Event::AgentExited { .. } | Event::AgentLost { .. } | Event::AgentClaimed { .. }
        );
        if accepted_twice && !refused {
            return Err(Halt::Broken(format!("accepted twice: {old:?}")));
        }
        Ok(())
    }

    pub(super) fn later(&mut self, in_ms: u64, happening: Happening) {
        self.sequence += 1;
        self.agenda.insert((self.now_ms + in_ms, self.sequence), happening);
    }

    fn later_own(&mut self, longest_ms: u64, own: Own) {
        let in_ms = self.rng.between(1, longest_ms);
        self.later(in_ms, Happening::Own(own));
    }

    pub(super) fn plan_disturbances(&mut self) {
        if self.state.rules.memory_per_agent_mb.is_some() && self.rng.percent(90) {
            self.later(1, Happening::Own(Own::Memory));
        }
        if self.rng.percent(self.temper.memory_changes) {
            self.later_own(400_000, Own::Memory);
        }
        if self.rng.percent(self.temper.provider_limits) {
            self.later_own(600_000, Own::ProviderLimit);
        }
        if self.rng.percent(self.temper.person_stops) {
            self.later_own(900_000, Own::CtrlC);
        }
    }

    fn perform(&mut self, action: Action, intent: Option<&Event>) {
        match action {
            Action::Spawn { work, cap, grant, .. } => {
                if let Some(Event::AgentClaimed { agent, .. }) = intent {
                    let agent = agent.clone();
                    self.later_own(2_000, Own::Boot(agent, work, cap, grant));
                }
            }
            Action::Grant { agent, grant } => {
                self.world.give(&agent, grant);
                self.later(1, Happening::Agent(agent));
            }
            Action::StopAgent { agent } => {
                self.world.stop(&agent);
                self.later(1, Happening::Agent(agent));
            }
            Action::Inspect { task } => self.later_own(500, Own::Inspected(task)),
            Action::Accept { task } => self.later_own(30_000, Own::Accepted(task)),
            Action::Fold { changeset, tasks } => {
                self.later_own(200, Own::Folded(changeset, tasks));
            }
            Action::Verify { changeset } => self.later_own(60_000, Own::Verified(changeset)),
            Action::Land { changeset } => self.land(changeset),
            Action::Publish { commit } => {
                self.world.published.insert(commit.clone());
                self.later_own(200, Own::Published(commit));
            }
            Action::Ask { gate } => self.later_own(60_000, Own::Answer(gate)),
            Action::RunHook { number, .. } => self.later_own(300_000, Own::HookEnded(number)),
            Action::WaitUntil { at } => {
                if !self.waiting {
                    self.waiting = true;
                    let wait = at.as_millisecond() - timestamp(self.now_ms).as_millisecond();
                    let in_ms = u64::try_from(wait).unwrap_or(0);
                    self.later(in_ms, Happening::Own(Own::PauseOver));
                }
            }
            Action::StartCycle { .. }
            | Action::StartValidation
            | Action::PlanMerge { .. }
            | Action::Defer { .. }
            | Action::Withdraw { .. }
            | Action::VerifyJoint { .. }
            | Action::Suspend
            | Action::End { .. } => {}
        }
    }

    /// The effect comes at once, the report of it later: in between the
    /// orchestrator may die.
    fn land(&mut self, changeset: ChangesetId) {
        let phase = self.state.merging.get(&changeset).map(|changeset| changeset.phase.clone());
        if let Some(ChangesetPhase::Landing { fold }) = phase {
            let landed_before = self.world.landed.contains_key(&changeset);
            if landed_before || !self.rng.percent(self.temper.base_moves) {
                self.world.land(&changeset, &fold.commit);
            }
        }
        self.later_own(200, Own::Landed(changeset));
    }

    fn agent_steps(&mut self, id: &AgentId) -> Flow {
        let Some(step) = self.world.step(id, self.now_ms, &mut self.rng) else { return Ok(()) };
        let spend = self.world.agents.get(id).map(|agent| agent.spend).unwrap_or_default();
        match step {
            AgentStep::Spent { next_in_ms } => {
                self.later(next_in_ms, Happening::Agent(id.clone()));
                self.record(Event::UsageReported { agent: id.clone(), spend })?;
                if self.rng.percent(20) {
                    let commit = scenario::oid(&mut self.rng);
                    self.record(Event::SnapshotTaken { agent: id.clone(), commit })?;
                }
                Ok(())
            }
            AgentStep::WaitsForGrant => self.record(Event::GrantWanted { agent: id.clone() }),
            AgentStep::Sealed => self.collect(id, spend),
        }
    }

    pub(super) fn collect(&mut self, id: &AgentId, spend: Spend) -> Flow {
        let sealed = self.world.agents.get(id).and_then(|agent| agent.sealed.clone());
        match sealed {
            Some(outcome) => self.record(Event::AgentExited { agent: id.clone(), outcome, spend }),
            None => Ok(()),
        }
    }

    fn own_doing(&mut self, own: Own) -> Flow {
        match own {
            Own::Boot(agent, work, cap, grant) => self.boot(&agent, &work, cap, grant),
            Own::Inspected(task) => {
                let violations = self.complaints("writes outside its files");
                self.record(Event::InspectionFinished { task, violations })
            }
            Own::Accepted(task) => {
                let failures = self.complaints("cargo test failed");
                self.record(Event::AcceptanceFinished { task, failures })
            }
            Own::Folded(changeset, tasks) => {
                let moved = self
                    .state
                    .merging
                    .get(&changeset)
                    .is_some_and(|changeset| changeset.base_moves > 0);
                let result = if self.rng.percent(self.temper.conflict) {
                    FoldResult::Conflict { files: vec!["src/lib.rs".into()] }
                } else {
                    FoldResult::Folded(self.world.fold(&tasks, moved, &mut self.rng))
                };
                self.record(Event::FoldFinished { changeset, result })
            }
            Own::Verified(changeset) => {
                let result = self.verification(&changeset);
                self.record(Event::VerifyFinished { changeset, result, commands: Vec::new() })
            }
            Own::Landed(changeset) => {
                let landed = self.world.landed.contains_key(&changeset);
                let result = if landed { LandResult::Landed } else { LandResult::BaseMoved };
                self.record(Event::LandFinished { changeset, result })
            }
            Own::Published(commit) => {
                let result = if self.rng.percent(80) {
                    PublishResult::Published
                } else {
                    PublishResult::Waiting { reason: "a file has local changes".into() }
                };
                self.record(Event::PublishFinished { commit, result })
            }
            Own::Answer(gate) => {
                if self.state.gate.as_ref() != Some(&gate) || self.state.stopping {
                    return Ok(());
                }
                let answer = people::answer(
                    &gate,
                    &self.state,
                    &self.temper,
                    &mut self.rng,
                    &mut self.taken_ids,
                );
                self.record(Event::GateAnswered { gate, answer })
            }
            Own::HookEnded(number) => {
                let result = match self.rng.below(4) {
                    // A session that stops ends what it runs.
                    _ if self.state.stopping => HookResult::CutShort,
                    0 => HookResult::Failed { reason: "exit code 1".into() },
                    _ => HookResult::Passed,
                };
                self.record(Event::HookFinished { number, result })
            }
            Own::PauseOver => {
                self.waiting = false;
                let now = timestamp(self.now_ms);
                let over = self.state.next_opening().is_some_and(|until| until <= now);
                if over { self.record(Event::PauseEnded) } else { Ok(()) }
            }
            Own::Memory => {
                let free_mb = self.rng.below(3_000);
                if self.rng.percent(70) {
                    self.later_own(200_000, Own::Memory);
                }
                self.record(Event::MemorySampled { free_mb })
            }
            // A gateway saw the provider ask for a pause; its agent goes on.
            Own::ProviderLimit => {
                let until = timestamp(self.now_ms + self.rng.between(1_000, 60_000));
                let accounts = self.state.rules.accounts.values();
                let accounts: Vec<AccountName> =
                    accounts.cloned().chain([AccountName::default()]).collect();
                let account = self.rng.pick(&accounts).cloned().unwrap_or_default();
                self.record(Event::ProviderLimited { until, account })
            }
            Own::CtrlC => self.record(Event::StopRequested),
        }
    }

    fn complaints(&mut self, what: &str) -> Vec<String> {
        if self.rng.percent(self.temper.check_fails) { vec![what.to_owned()] } else { Vec::new() }
    }

    fn verification(&mut self, changeset: &ChangesetId) -> VerifyResult {
        if !self.rng.percent(self.temper.check_fails) {
            return match self.rng.below(8) {
                0 => VerifyResult::NotConfigured,
                1 => VerifyResult::PassedOnRerun,
                _ => VerifyResult::Passed,
            };
        }
        let tasks =
            self.state.merging.get(changeset).map(|found| found.tasks.clone()).unwrap_or_default();
        let culprit = self.rng.pick(&tasks).filter(|_| self.rng.clone().percent(70)).cloned();
        VerifyResult::Failed { culprit, evidence: "test api::limits failed".into() }
    }

    fn boot(&mut self, agent: &AgentId, work: &Work, cap: Budget, grant: Budget) -> Flow {
        if !self.state.crew.live().contains_key(agent) {
            return Ok(());
        }
        let stop = self.state.crew.live().get(agent).is_some_and(|agent| agent.stop_sent);
        let fails = self.rng.percent(self.temper.agent_fails / 6);
        // Getting ready takes long enough to be stopped in the middle.
        if fails || stop && self.rng.percent(50) {
            let (fault, reason) = match self.rng.below(4) {
                _ if !fails => (StartFault::Stopped, "it was stopped"),
                0 => (StartFault::Place, "a start that does not fit"),
                // Nobody could be started: this one is stopped with all the others,
                // and both are told in one breath.
                1 if !self.state.is_landing() => {
                    let reason = "no space left on device".to_owned();
                    self.record(Event::SessionObstructed { reason })?;
                    (StartFault::Stopped, "no space left on device")
                }
                _ => (StartFault::Program, "no such program"),
            };
            let (agent, reason) = (agent.clone(), reason.to_owned());
            return self.record(Event::AgentStartFailed { agent, reason, fault });
        }
        let product = match work {
            Work::Plan => {
                let plan = people::new_plan(&self.state, &mut self.rng, &mut self.taken_ids);
                Some(Product::Plan(plan))
            }
            Work::Resolve { changeset } => {
                let tasks = self
                    .state
                    .merging
                    .get(changeset)
                    .map(|changeset| changeset.tasks.clone())
                    .unwrap_or_default();
                Some(Product::Resolution(self.world.fold(&tasks, false, &mut self.rng)))
            }
            Work::Develop { .. } | Work::Validate { .. } => None,
        };
        self.world.start(
            agent,
            work,
            cap,
            grant,
            product,
            self.now_ms,
            &self.temper,
            &mut self.rng,
        );
        if stop {
            self.world.stop(agent);
        }
        self.later(1, Happening::Agent(agent.clone()));
        self.record(Event::AgentStarted {
            agent: agent.clone(),
            process: process(self.sequence),
            skills: Vec::new(),
        })
    }
}

pub(super) fn process(number: u64) -> Process {
    Process { pid: 1_000, start_time: number, boot_id: "simulated".into() }
}

//! Actions and phases in short words, and plans and rules in short calls.

use blueflame_core::decide::Action;
use blueflame_core::event::{Deferral, PlannedChangeset, Work};
use blueflame_core::forecast::Estimates;
use blueflame_core::gate::Gate;
use blueflame_core::ids::{AgentId, ChangesetId, ExecutorName, GroupName, Oid, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::money::{Budget, Spend, Usage, Usd};
use blueflame_core::outcome::Fold;
use blueflame_core::plan::TaskSpec;
use blueflame_core::rules::{PerRole, Rules, WaveMode};
use blueflame_core::state::State;
use blueflame_core::state::task::{Dropped, Phase};
use jiff::Timestamp;

pub fn task_id(name: &str) -> TaskId {
    TaskId::new(name).expect("a plain word")
}

pub fn oid(number: u32) -> Oid {
    Oid::new(format!("{number:040x}")).expect("forty hexadecimal digits")
}

/// A moment, in seconds since the session started.
pub fn second(number: i64) -> Timestamp {
    Timestamp::from_second(1_770_000_000 + number).expect("a moment of this century")
}

/// The same figure as micro-dollars and as tokens.
pub fn cost(amount: u64) -> Spend {
    let usage = Usage { input: amount, ..Usage::default() };
    Spend { usage, cost: Usd::from_micros(amount) }
}

pub fn fold(commit: u32, patch: &str) -> Fold {
    Fold { commit: oid(commit), patch: patch.into(), files: 1, insertions: 1, deletions: 0 }
}

/// Rules with room for everything; a test changes what it is about.
pub fn rules() -> Rules {
    let claude = || vec![executor("claude")];
    Rules {
        workers: 4,
        validators: 4,
        memory_per_agent_mb: None,
        max_retries: 2,
        max_wave_cycles: 3,
        session_budget: Budget::Unlimited,
        agent_budgets: PerRole::default(),
        warn_percent: 80,
        waves: WaveMode::Strict,
        executors: PerRole {
            planner: claude(),
            worker: claude(),
            validator: claude(),
            merger: claude(),
        },
        accounts: std::collections::BTreeMap::new(),
        executor_caps: std::collections::BTreeMap::new(),
        publish: true,
        hooks: Vec::new(),
        estimates: Estimates::default(),
    }
}

pub fn pipelined() -> Rules {
    Rules { waves: WaveMode::Pipelined, ..rules() }
}

pub fn executor(name: &str) -> ExecutorName {
    ExecutorName::new(name).expect("a plain word")
}

pub fn usd(micros: u64) -> Budget {
    Budget::Usd(Usd::from_micros(micros))
}

/// A task in the group `g`, with a file of its own.
pub fn task(name: &str) -> TaskSpec {
    TaskSpec {
        id: task_id(name),
        title: format!("do {name}"),
        description: "as agreed".into(),
        priority: 1,
        group: GroupName::new("g").expect("a plain word"),
        dependencies: Vec::new(),
        file_locks: vec![lock(&format!("src/{name}"))],
        acceptance: Vec::new(),
        risk: None,
        estimate_minutes: None,
        model: None,
        executor: None,
    }
}

pub fn lock(path: &str) -> LockPath {
    LockPath::new(path).expect("a plain path")
}

/// What can be said about a task beyond its name.
pub trait Details {
    fn needs(self, tasks: &[&str]) -> Self;
    fn group(self, name: &str) -> Self;
    fn priority(self, priority: u32) -> Self;
    fn locks(self, paths: &[&str]) -> Self;
    fn by(self, name: &str) -> Self;
}

impl Details for TaskSpec {
    fn needs(mut self, tasks: &[&str]) -> Self {
        self.dependencies = tasks.iter().map(|name| task_id(name)).collect();
        self
    }

    fn group(mut self, name: &str) -> Self {
        self.group = GroupName::new(name).expect("a plain word");
        self
    }

    fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    fn locks(mut self, paths: &[&str]) -> Self {
        self.file_locks = paths.iter().map(|path| lock(path)).collect();
        self
    }

    fn by(mut self, name: &str) -> Self {
        self.executor = Some(executor(name));
        self
    }
}

pub fn phase(phase: &Phase) -> String {
    let word = match phase {
        Phase::Pending => "pending",
        Phase::Requeued => "requeued",
        Phase::Working { .. } => "working",
        Phase::Built { .. } => "built",
        Phase::Inspecting { .. } => "inspecting",
        Phase::Done { .. } => "done",
        Phase::Accepting { .. } => "accepting",
        Phase::Accepted { .. } => "accepted",
        Phase::Validating { .. } => "validating",
        Phase::Disputed { .. } => "disputed",
        Phase::Unjudged { .. } => "unjudged",
        Phase::Validated { .. } => "validated",
        Phase::Merged { .. } => "merged",
        Phase::Failed { .. } => "failed",
        Phase::Blocked { by } => return format!("blocked by {by}"),
        Phase::Dropped { why: Dropped::ByPerson } => "dropped",
        Phase::Dropped { why: Dropped::Replanned } => "replaced",
    };
    word.to_owned()
}

pub fn action(action: &Action, state: &State) -> String {
    match action {
        Action::StartCycle { cycle } => format!("cycle {cycle}"),
        Action::StartValidation => "validation".into(),
        Action::Spawn { work, executor, grant, .. } => {
            let with = match executor.as_str() {
                "claude" => String::new(),
                other => format!(" with {other}"),
            };
            format!("{}{with}{}", job(work), share(*grant))
        }
        Action::Grant { agent, grant } => {
            format!("grant {}{}", worker(agent, state), share(*grant))
        }
        Action::StopAgent { agent } => format!("stop {}", worker(agent, state)),
        Action::Inspect { task } => format!("inspect {task}"),
        Action::Accept { task } => format!("accept {task}"),
        Action::PlanMerge { changesets } => {
            format!("merge {}", changesets.iter().map(planned).collect::<Vec<_>>().join(", "))
        }
        Action::Fold { changeset, tasks } => format!("fold {changeset}[{}]", list(tasks)),
        Action::Verify { changeset } => format!("verify {changeset}"),
        Action::Defer { changeset, why } => {
            let why = match why {
                Deferral::NeedsUnlanded(need) => format!("needs {need}"),
                Deferral::NothingLeft => "nothing left".into(),
                Deferral::NoBudget => "no budget".into(),
                Deferral::BaseKeepsMoving => "the base keeps moving".into(),
            };
            format!("defer {changeset}: {why}")
        }
        Action::Land { changeset } => format!("land {changeset}"),
        Action::VerifyJoint { .. } => "verify joint".into(),
        Action::Publish { .. } => "publish".into(),
        Action::RunHook { occasion, .. } => format!("run {}", occasion.hook().name()),
        Action::Ask { gate } => format!("ask {}", question(gate)),
        Action::Withdraw { gate } => format!("withdraw {}", question(gate)),
        Action::WaitUntil { at } => {
            format!("wait until {}", at.as_second() - second(0).as_second())
        }
        Action::Suspend => "suspend".into(),
        Action::End { end } => format!("end {end:?}"),
    }
}

fn job(work: &Work) -> String {
    match work {
        Work::Plan => "plan".into(),
        Work::Develop { task, attempt } => format!("develop {task}#{attempt}"),
        Work::Validate { task, attempt } => format!("validate {task}#{attempt}"),
        Work::Resolve { changeset } => format!("resolve {changeset}"),
    }
}

fn worker(agent: &AgentId, state: &State) -> String {
    state.crew.live().get(agent).map_or_else(|| "nobody".into(), |agent| job(&agent.work))
}

fn share(grant: Budget) -> String {
    match grant {
        Budget::Unlimited => String::new(),
        Budget::Usd(usd) => format!(" up to {}", usd.micros()),
        Budget::Tokens(tokens) => format!(" up to {tokens} tokens"),
    }
}

fn planned(changeset: &PlannedChangeset) -> String {
    let after = match &changeset.needs[..] {
        [] => String::new(),
        needs => {
            let needs: Vec<&str> = needs.iter().map(ChangesetId::as_str).collect();
            format!(" after {}", needs.join(" "))
        }
    };
    format!("{}[{}]{after}", changeset.id, list(&changeset.tasks))
}

fn list(tasks: &[TaskId]) -> String {
    tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" ")
}

fn question(gate: &Gate) -> String {
    match gate {
        Gate::Plan => "plan".into(),
        Gate::ValidationFailed(task) => format!("validation {task}"),
        Gate::ValidatorFailed(task) => format!("validator {task}"),
        Gate::Changeset(changeset) => format!("changeset {changeset}"),
        Gate::Budget => "budget".into(),
        Gate::Session => "session".into(),
    }
}

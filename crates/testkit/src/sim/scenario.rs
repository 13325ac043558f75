//! What a seed stands for: rules, plans, and the temper of everyone involved.

use std::collections::{BTreeMap, BTreeSet};

use blueflame_core::forecast::Estimates;
use blueflame_core::hook::Hook;
use blueflame_core::ids::{AccountName, ExecutorName, GroupName, Oid, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::money::{Budget, Usd};
use blueflame_core::plan::{Plan, TaskSpec};
use blueflame_core::rules::{PerRole, Rules, WaveMode};

use super::rng::Rng;

/// The dearest single request an agent makes, in micro-dollars and tokens.
pub const DEAREST_REQUEST: u64 = 1_000;

const PLACES: [&str; 9] = [
    "src",
    "src/auth",
    "src/auth/jwt.rs",
    "src/api",
    "src/api/limits.rs",
    "docs",
    "tests",
    "tests/auth",
    "Makefile",
];

/// Chances in percent, drawn once for a session, so that there are calm
/// sessions and wild ones.
#[derive(Clone, Debug)]
pub struct Temper {
    pub crash: u64,
    pub agent_fails: u64,
    pub check_fails: u64,
    pub conflict: u64,
    pub base_moves: u64,
    pub person_says_no: u64,
    pub provider_limits: u64,
    pub person_stops: u64,
    pub memory_changes: u64,
    /// How often something else has arrived already.
    pub crowds: u64,
}

impl Temper {
    pub fn draw(rng: &mut Rng) -> Self {
        Temper {
            crash: [0, 0, 2, 8, 20][usize::try_from(rng.below(5)).unwrap_or(0)],
            agent_fails: rng.below(70),
            check_fails: rng.below(40),
            conflict: rng.below(40),
            base_moves: if rng.percent(10) { 95 } else { rng.below(30) },
            person_says_no: if rng.percent(15) { 95 } else { rng.below(50) },
            provider_limits: rng.below(15),
            person_stops: rng.below(3),
            memory_changes: rng.below(20),
            crowds: [0, 10, 60][usize::try_from(rng.below(3)).unwrap_or(0)],
        }
    }
}

pub fn rules(rng: &mut Rng) -> Rules {
    let executors = |rng: &mut Rng| {
        let all = ["claude", "codex", "embedded"];
        let count = usize::try_from(rng.between(1, 3)).unwrap_or(1);
        all[..count].iter().map(|name| executor(name)).collect::<Vec<_>>()
    };
    Rules {
        workers: small(rng, 1, 5),
        validators: small(rng, 1, 3),
        memory_per_agent_mb: rng.percent(50).then_some(600),
        max_retries: small(rng, 0, 3),
        max_wave_cycles: small(rng, 1, 4),
        session_budget: budget(rng, 60),
        agent_budgets: PerRole {
            planner: budget(rng, 8),
            worker: budget(rng, 8),
            validator: budget(rng, 8),
            merger: budget(rng, 8),
        },
        warn_percent: 80,
        waves: if rng.percent(50) { WaveMode::Strict } else { WaveMode::Pipelined },
        executors: PerRole {
            planner: executors(rng),
            worker: executors(rng),
            validator: executors(rng),
            merger: executors(rng),
        },
        accounts: ["codex", "embedded"]
            .into_iter()
            .filter(|_| rng.percent(40))
            .map(|name| (executor(name), account("other")))
            .collect(),
        executor_caps: executor_caps(rng),
        publish: rng.percent(70),
        hooks: Hook::ALL.into_iter().filter(|_| rng.percent(40)).collect(),
        estimates: Estimates::default(),
    }
}

/// Few of them, now and then.
fn executor_caps(rng: &mut Rng) -> BTreeMap<ExecutorName, u32> {
    let mut caps = BTreeMap::new();
    for name in ["claude", "codex", "embedded"] {
        if rng.percent(20) {
            caps.insert(executor(name), small(rng, 1, 2));
        }
    }
    caps
}

/// None at all, or up to so many of the dearest requests.
fn budget(rng: &mut Rng, requests: u64) -> Budget {
    let amount = rng.between(1, requests * DEAREST_REQUEST);
    match rng.below(4) {
        0 => Budget::Tokens(amount),
        1 => Budget::Usd(Usd::from_micros(amount)),
        _ => Budget::Unlimited,
    }
}

/// A plan of up to nine tasks with new names, now and then with a task that
/// an earlier plan left open, and with dependencies on what landed.
pub fn plan(
    rng: &mut Rng,
    landed: &[TaskId],
    open: &[TaskId],
    taken: &mut BTreeSet<TaskId>,
) -> Plan {
    let count = rng.below(10);
    let mut tasks: Vec<(u64, TaskSpec)> = Vec::new();
    let mut reused: BTreeSet<TaskId> = BTreeSet::new();
    for _ in 0..count {
        // A group needs only groups before it, so they can be put in order.
        let group = rng.below(4);
        let again = rng.pick(open).filter(|id| !reused.contains(*id)).cloned();
        let id = match again.filter(|_| rng.percent(40)) {
            Some(id) => {
                reused.insert(id.clone());
                id
            }
            None => new_task_id(taken),
        };
        let mut dependencies: Vec<TaskId> = tasks
            .iter()
            .filter(|(before, _)| *before <= group && rng.percent(25))
            .map(|(_, spec)| spec.id.clone())
            .collect();
        dependencies.extend(rng.pick(landed).filter(|_| rng.percent(20)).cloned());
        let spec = TaskSpec {
            title: format!("simulated {id}"),
            description: "something to do".into(),
            priority: small(rng, 1, 3),
            group: GroupName::new(format!("group-{group}")).expect("a plain word"),
            dependencies,
            file_locks: locks(rng),
            acceptance: Vec::new(),
            risk: None,
            estimate_minutes: None,
            model: None,
            executor: rng.percent(10).then(|| executor("opencode")),
            id,
        };
        tasks.push((group, spec));
    }
    Plan { tasks: tasks.into_iter().map(|(_, spec)| spec).collect() }
}

fn new_task_id(taken: &mut BTreeSet<TaskId>) -> TaskId {
    let id = TaskId::new(format!("task-{:03}", taken.len() + 1)).expect("a plain word");
    taken.insert(id.clone());
    id
}

pub fn locks(rng: &mut Rng) -> Vec<LockPath> {
    let count = rng.between(1, 2);
    (0..count)
        .filter_map(|_| rng.pick(&PLACES).copied())
        .map(|place| LockPath::new(place).expect("a plain path"))
        .collect()
}

pub fn oid(rng: &mut Rng) -> Oid {
    Oid::new(rng.hex(40)).expect("forty hexadecimal digits")
}

fn account(name: &str) -> AccountName {
    AccountName::new(name).expect("a plain word")
}

fn executor(name: &str) -> ExecutorName {
    ExecutorName::new(name).expect("a plain word")
}

fn small(rng: &mut Rng, low: u64, high: u64) -> u32 {
    u32::try_from(rng.between(low, high)).unwrap_or(1)
}

//! What a plan will probably take and cost, for any number of workers.
//!
//! The order of the work is not guessed: a [`simulation`] lets the very core that
//! decides a session decide this one too, in time that does not pass. Only how
//! long and how dear one agent run is comes from estimates, and everything is
//! taken to go well. The person's own time is not counted.

pub mod simulation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::memory::learned::Learned;
use crate::money::{Budget, Usd};
use crate::plan::{Plan, TaskSpec};
use crate::rules::Rules;

pub use simulation::{Schedule, Span};

/// The most workers that a session can have.
pub const MOST_WORKERS: u32 = 8;

/// Gains below this share of the time, in percent, are not worth the trouble:
/// estimates are not that good.
const WORTH_PERCENT: u64 = 10;

/// What one agent run usually takes and costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    pub seconds: u64,
    pub cost: Usd,
}

/// What a forecast is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimates {
    pub planner: Estimate,
    /// For a task whose plan gives no estimate of its own.
    pub worker: Estimate,
    pub validator: Estimate,
    /// The acceptance commands of one task, or the check of one merged tree.
    pub check_seconds: u64,
    /// Whether there are commands for every task, and for merged trees.
    pub accepts: bool,
    pub verifies: bool,
    /// What of this earlier sessions have taught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Learned>,
}

impl Default for Estimates {
    fn default() -> Self {
        let estimate = |seconds, micros| Estimate { seconds, cost: Usd::from_micros(micros) };
        Estimates {
            planner: estimate(120, 300_000),
            worker: estimate(240, 450_000),
            validator: estimate(60, 20_000),
            check_seconds: 60,
            accepts: false,
            verifies: false,
            learned: None,
        }
    }
}

impl Estimates {
    /// Whether nobody has said anything about them.
    pub fn are_usual(&self) -> bool {
        *self == Estimates::default()
    }

    /// A worker on this task: as the plan says, or as usual. Money goes with
    /// time.
    pub fn of(&self, task: &TaskSpec) -> Estimate {
        let Some(minutes) = task.estimate_minutes else { return self.worker };
        let seconds = u64::from(minutes) * 60;
        let usual = self.worker.seconds.max(1);
        let micros = self.worker.cost.micros().saturating_mul(seconds) / usual;
        Estimate { seconds, cost: Usd::from_micros(micros) }
    }
}

/// A plan, looked at beforehand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// One line for each number of workers, from 1 on.
    pub by_workers: Vec<Line>,
    /// As many as the session may have.
    pub workers: u32,
    /// What happens when, with that many.
    pub schedule: Schedule,
    /// What all workers take together, one after the other.
    pub work_seconds: u64,
    /// The longest chain of tasks that have to wait for each other: no number
    /// of workers gets below it.
    pub critical_path: Vec<TaskId>,
    pub critical_seconds: u64,
    pub cost: CostRange,
}

/// How long it takes with so many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub workers: u32,
    /// From the approved plan to the last landing.
    pub seconds: u64,
    pub development_seconds: u64,
    /// Development cannot be shorter: the longest chain, or the work divided by
    /// the workers, whichever is more.
    pub bound_seconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CostRange {
    /// Every agent once.
    pub once: Usd,
    /// Every retry that is allowed is needed.
    pub with_retries: Usd,
}

/// Whether more than one worker is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    /// Hardly anything is gained.
    NotWorthIt,
    /// It is, up to so many; more change nothing.
    UpTo(u32),
}

impl Forecast {
    /// `None` for a plan that the core would not carry through to its end.
    pub fn of(rules: &Rules, plan: &Plan) -> Option<Forecast> {
        let tasks = u32::try_from(plan.tasks.len()).unwrap_or(u32::MAX);
        let most = tasks.clamp(1, MOST_WORKERS).max(rules.workers);
        let (critical_path, critical_seconds) = critical_path(&rules.estimates, plan);
        let work_seconds = plan.tasks.iter().map(|task| rules.estimates.of(task).seconds).sum();
        let mut by_workers = Vec::new();
        let mut schedule = None;
        for workers in 1..=most {
            let simulated = simulation::run(rules, plan, workers)?;
            by_workers.push(Line {
                workers,
                seconds: simulated.seconds,
                development_seconds: simulated.development_seconds(),
                bound_seconds: critical_seconds
                    .max(u64::div_ceil(work_seconds, u64::from(workers))),
            });
            if workers == rules.workers {
                schedule = Some(simulated);
            }
        }
        Some(Forecast {
            by_workers,
            workers: rules.workers,
            schedule: schedule?,
            work_seconds,
            critical_path,
            critical_seconds,
            cost: cost(rules, plan),
        })
    }

    /// With as many workers as the session may have.
    pub fn configured(&self) -> Option<&Line> {
        self.by_workers.iter().find(|line| line.workers == self.workers)
    }

    pub fn parallel(&self) -> Parallel {
        let Some(alone) = self.by_workers.first() else { return Parallel::NotWorthIt };
        let best = self.by_workers.iter().min_by_key(|line| (line.seconds, line.workers));
        match best {
            Some(best)
                if (alone.seconds - best.seconds) * 100 >= alone.seconds * WORTH_PERCENT
                    && best.workers > 1 =>
            {
                Parallel::UpTo(best.workers)
            }
            _ => Parallel::NotWorthIt,
        }
    }
}

/// The longest chain of dependencies by the time of its workers.
fn critical_path(estimates: &Estimates, plan: &Plan) -> (Vec<TaskId>, u64) {
    let mut longest: BTreeMap<&TaskId, (u64, Option<&TaskId>)> = BTreeMap::new();
    for at in plan.order() {
        let task = &plan.tasks[at];
        let before = task
            .dependencies
            .iter()
            .filter_map(|need| longest.get(need).map(|(seconds, _)| (*seconds, need)))
            .max_by_key(|(seconds, _)| *seconds);
        let seconds = estimates.of(task).seconds + before.map_or(0, |(seconds, _)| seconds);
        longest.insert(&task.id, (seconds, before.map(|(_, need)| need)));
    }
    let last = longest.iter().max_by_key(|(_, (seconds, _))| *seconds);
    let Some((last, &(seconds, _))) = last else { return (Vec::new(), 0) };
    let mut path = vec![(*last).clone()];
    while let Some(need) = path.last().and_then(|task| longest.get(task)?.1) {
        path.push(need.clone());
    }
    path.reverse();
    (path, seconds)
}

/// No agent spends more than its own budget, and the session no more than its.
fn cost(rules: &Rules, plan: &Plan) -> CostRange {
    let within = |cost: Usd, budget: Budget| match budget {
        Budget::Usd(most) => cost.micros().min(most.micros()),
        Budget::Unlimited | Budget::Tokens(_) => cost.micros(),
    };
    let validator = within(rules.estimates.validator.cost, rules.agent_budgets.validator);
    let (mut once, mut retried) = (0u64, 0u64);
    for task in &plan.tasks {
        let worker = within(rules.estimates.of(task).cost, rules.agent_budgets.worker);
        let tries = u64::from(rules.max_retries) + 1;
        once = once.saturating_add(worker).saturating_add(validator);
        let each = worker.saturating_add(validator).saturating_mul(tries);
        retried = retried.saturating_add(each);
    }
    CostRange { once: Usd::from_micros(once), with_retries: Usd::from_micros(retried) }
}

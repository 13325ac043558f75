//! What earlier sessions say about time and money, once there are enough of
//! them, and how far off that would have been so far.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Notebook;
use super::note::{Figure, Kind, Note};
use super::wording::count;
use crate::forecast::{Estimate, Estimates};
use crate::ids::{ExecutorName, Role};
use crate::money::Usd;
use crate::rules::PerRole;

/// How many sessions, and how many runs in them, are enough to go by.
const ENOUGH_SESSIONS: usize = 3;
const ENOUGH_RUNS: u32 = 5;

/// How many sessions count: programs, models and projects change.
const NEWEST: usize = 20;

/// Where the estimates of a session come from, if they were learned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// The sessions that were gone by.
    pub sessions: u32,
    pub roles: Vec<LearnedRole>,
}

/// What was learned about the agents of one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedRole {
    pub role: Role,
    pub executor: ExecutorName,
    pub runs: u32,
    pub estimate: Estimate,
    /// How far the same way of estimating was off in these sessions, each seen
    /// from the ones before it: half of them were off by more. `None` if that
    /// cannot be told yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_off_percent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_off_percent: Option<u32>,
}

/// Which estimates are the person's own, and stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetByHand {
    pub time: bool,
    pub cost: bool,
}

/// Estimates with what was learned in place of what is usual. What the person
/// set by hand stays.
pub fn learn(
    notebook: &Notebook,
    usual: &Estimates,
    executors: &PerRole<Vec<ExecutorName>>,
    by_hand: &PerRole<SetByHand>,
) -> Estimates {
    let mut estimates = usual.clone();
    let mut roles = Vec::new();
    let mut sessions = 0;
    for role in [Role::Planner, Role::Worker, Role::Validator] {
        // The first of them is the one that will most likely do it.
        let Some(executor) = executors.of(role).first() else { continue };
        let samples = samples(notebook, role, executor);
        let Some(learned) = learned_role(&samples, role, executor) else { continue };
        let of_role = match role {
            Role::Planner => &mut estimates.planner,
            Role::Worker => &mut estimates.worker,
            Role::Validator => &mut estimates.validator,
            Role::Merger => continue,
        };
        let by_hand = by_hand.of(role);
        if !by_hand.time {
            of_role.seconds = learned.estimate.seconds;
        }
        if !by_hand.cost {
            of_role.cost = learned.estimate.cost;
        }
        if !(by_hand.time && by_hand.cost) {
            sessions = sessions.max(u32::try_from(samples.len()).unwrap_or(u32::MAX));
            roles.push(learned);
        }
    }
    estimates.learned = (!roles.is_empty()).then_some(Learned { sessions, roles });
    estimates
}

/// What one session tells of a role and an executor.
#[derive(Clone, Copy, Debug)]
struct Sample {
    runs: u32,
    seconds: u64,
    micros: u64,
}

/// The newest sessions in which such agents did what they were for, oldest first.
fn samples(notebook: &Notebook, role: Role, executor: &ExecutorName) -> Vec<Sample> {
    let mut costs: Vec<&Note> = notebook.notes().filter(|note| note.kind == Kind::Cost).collect();
    costs.sort_by_key(|note| &note.session);
    let is_meant = |figure: &&Figure| {
        figure.role == role && figure.executor == *executor && figure.finished > 0
    };
    let figures = costs.iter().filter_map(|note| note.figures.iter().find(is_meant));
    let all: Vec<Sample> = figures
        .map(|it| Sample { runs: it.finished, seconds: it.seconds, micros: it.micro_usd })
        .collect();
    all[all.len().saturating_sub(NEWEST)..].to_vec()
}

fn learned_role(samples: &[Sample], role: Role, executor: &ExecutorName) -> Option<LearnedRole> {
    let estimate = estimate(samples)?;
    let off = |actual: fn(&Sample) -> u64, said: fn(&Estimate) -> u64| {
        let errors: Vec<u64> = (0..samples.len())
            .filter_map(|at| {
                let forecast = said(&self::estimate(&samples[..at])?);
                let actual = actual(&samples[at]);
                (actual > 0).then(|| forecast.abs_diff(actual).saturating_mul(100) / actual)
            })
            .collect();
        (!errors.is_empty()).then(|| u32::try_from(median(errors)).unwrap_or(u32::MAX))
    };
    Some(LearnedRole {
        role,
        executor: executor.clone(),
        runs: samples.iter().map(|sample| sample.runs).fold(0, u32::saturating_add),
        estimate,
        time_off_percent: off(|sample| sample.seconds, |said| said.seconds),
        cost_off_percent: off(|sample| sample.micros, |said| said.cost.micros()),
    })
}

/// `None` if there is too little to go by.
fn estimate(samples: &[Sample]) -> Option<Estimate> {
    let runs = samples.iter().map(|sample| sample.runs).fold(0, u32::saturating_add);
    if samples.len() < ENOUGH_SESSIONS || runs < ENOUGH_RUNS {
        return None;
    }
    Some(Estimate {
        seconds: median(samples.iter().map(|sample| sample.seconds)),
        cost: Usd::from_micros(median(samples.iter().map(|sample| sample.micros))),
    })
}

/// What agents took in the newest sessions, one line for each role and executor;
/// nothing if none did anything.
pub(super) fn table(notebook: &Notebook) -> Option<String> {
    let costs = notebook.notes().filter(|note| note.kind == Kind::Cost);
    let seen: BTreeSet<(Role, ExecutorName)> = costs
        .flat_map(|note| &note.figures)
        .map(|figure| (figure.role, figure.executor.clone()))
        .collect();
    let lines: Vec<String> = seen
        .into_iter()
        .filter_map(|(role, executor)| {
            let samples = samples(notebook, role, &executor);
            let runs: u32 = samples.iter().map(|sample| sample.runs).fold(0, u32::saturating_add);
            let seconds = median(samples.iter().map(|sample| sample.seconds));
            let cost = Usd::from_micros(median(samples.iter().map(|sample| sample.micros)));
            (runs > 0).then(|| {
                let (role, runs) = (role.name(), count(runs as usize, "run"));
                format!("- a {role} by {executor}: {seconds} s and {cost}, from {runs}")
            })
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The value in the middle; 0 of nothing.
pub(super) fn median(values: impl IntoIterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

//! Everything outside the orchestrator: agents with their gateways, git, and
//! the clock. It goes on while the orchestrator is dead.

use std::collections::{BTreeMap, BTreeSet};

use blueflame_core::event::Work;
use blueflame_core::ids::{AgentId, ChangesetId, Oid, Role, TaskId};
use blueflame_core::money::{Budget, Spend, Usage, Usd};
use blueflame_core::outcome::{BudgetScope, Fold, Killer, Outcome, Product, Verdict};
use jiff::{SignedDuration, Timestamp};

use super::rng::Rng;
use super::scenario::{DEAREST_REQUEST, Temper, oid};

/// Longest that an agent may run: the attempt process ends it then.
const WALL_CLOCK_MS: u64 = 300_000;

#[derive(Clone, Debug)]
pub struct SimAgent {
    work: Work,
    cap: Budget,
    pub grant: Budget,
    pub spend: Spend,
    requests_left: u64,
    fate: Fate,
    /// It holds a request back until it gets more money.
    pub waits_for_grant: bool,
    stop: bool,
    started_ms: u64,
    /// The sealed result, once there is one.
    pub sealed: Option<Outcome>,
}

/// What becomes of a run if nothing stops it before.
#[derive(Clone, Debug)]
enum Fate {
    Ends(Outcome),
    Hangs,
}

#[derive(Clone, Debug, Default)]
pub struct World {
    pub agents: BTreeMap<AgentId, SimAgent>,
    /// What really landed, whether or not anyone recorded it.
    pub landed: BTreeMap<ChangesetId, Oid>,
    pub published: BTreeSet<Oid>,
    /// What all agents together cost, also those nobody will hear of again.
    pub true_spend: Spend,
}

/// What an agent did in one step of its own.
#[derive(Clone, Debug)]
pub enum AgentStep {
    /// It spent something and goes on after so many milliseconds.
    Spent {
        next_in_ms: u64,
    },
    WaitsForGrant,
    Sealed,
}

impl World {
    /// Starts the process of an agent; its first step comes soon after.
    #[expect(clippy::too_many_arguments, reason = "a process is started with all of these")]
    pub fn start(
        &mut self,
        id: &AgentId,
        work: &Work,
        cap: Budget,
        grant: Budget,
        product: Option<Product>,
        now_ms: u64,
        temper: &Temper,
        rng: &mut Rng,
    ) {
        let fate = draw_fate(work, product, now_ms, temper, rng);
        self.agents.insert(
            id.clone(),
            SimAgent {
                work: work.clone(),
                cap,
                grant,
                spend: Spend::default(),
                requests_left: rng.between(1, 6),
                fate,
                waits_for_grant: false,
                stop: false,
                started_ms: now_ms,
                sealed: None,
            },
        );
    }

    pub fn stop(&mut self, id: &AgentId) {
        if let Some(agent) = self.agents.get_mut(id) {
            agent.stop = true;
        }
    }

    /// One step of an agent behind its gateway: a request that may be refused
    /// for want of money, or the end.
    pub fn step(&mut self, id: &AgentId, now_ms: u64, rng: &mut Rng) -> Option<AgentStep> {
        let agent = self.agents.get_mut(id)?;
        if agent.sealed.is_some() {
            return None;
        }
        if agent.stop {
            let limit = BudgetScope::Session;
            return Some(agent.seal(if agent.waits_for_grant {
                Outcome::BudgetSpent { limit }
            } else {
                Outcome::Killed { by: Killer::Us }
            }));
        }
        if now_ms >= agent.started_ms + WALL_CLOCK_MS {
            return Some(agent.seal(Outcome::TimedOut));
        }
        if agent.requests_left == 0 {
            return Some(match agent.fate.clone() {
                Fate::Ends(outcome) => agent.seal(outcome),
                Fate::Hangs => AgentStep::Spent { next_in_ms: WALL_CLOCK_MS },
            });
        }
        if spent(agent.cap, &agent.spend) {
            return Some(agent.seal(Outcome::BudgetSpent { limit: BudgetScope::Agent }));
        }
        if spent(agent.grant, &agent.spend) {
            agent.waits_for_grant = true;
            return Some(AgentStep::WaitsForGrant);
        }
        agent.requests_left -= 1;
        let cost = rng.between(1, DEAREST_REQUEST);
        let usage = Usage { input: cost / 2, output: cost - cost / 2, ..Usage::default() };
        let spend = Spend { usage, cost: Usd::from_micros(cost) };
        agent.spend = agent.spend.plus(spend);
        self.true_spend = self.true_spend.plus(spend);
        Some(AgentStep::Spent { next_in_ms: rng.between(50, 20_000) })
    }

    /// Money arrived.
    pub fn give(&mut self, id: &AgentId, grant: Budget) {
        if let Some(agent) = self.agents.get_mut(id) {
            agent.grant = grant;
            agent.waits_for_grant = false;
        }
    }

    /// Agents that were never started, or died with the machine, are gone.
    pub fn reboot(&mut self) {
        self.agents.retain(|_, agent| agent.sealed.is_some());
    }

    pub fn fold(&self, tasks: &[TaskId], moved: bool, rng: &mut Rng) -> Fold {
        // The change is what its tasks are, unless a moved base altered it.
        let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
        let mut patch = names.join("+");
        if moved && rng.percent(30) {
            patch.push_str(&rng.hex(4));
        }
        Fold { commit: oid(rng), patch, files: 1, insertions: 1, deletions: 0 }
    }

    /// Moves the integration branch; done twice it is still done once.
    pub fn land(&mut self, changeset: &ChangesetId, commit: &Oid) {
        self.landed.insert(changeset.clone(), commit.clone());
    }
}

impl SimAgent {
    fn seal(&mut self, outcome: Outcome) -> AgentStep {
        self.sealed = Some(outcome);
        AgentStep::Sealed
    }

    pub fn role(&self) -> Role {
        self.work.role()
    }
}

fn spent(limit: Budget, spend: &Spend) -> bool {
    match limit {
        Budget::Unlimited => false,
        Budget::Usd(limit) => spend.cost >= limit,
        Budget::Tokens(limit) => spend.usage.total() >= limit,
    }
}

fn draw_fate(
    work: &Work,
    product: Option<Product>,
    now_ms: u64,
    temper: &Temper,
    rng: &mut Rng,
) -> Fate {
    if rng.percent(temper.agent_fails) {
        return draw_failure(work.role(), now_ms, rng);
    }
    let product = match (work, product) {
        (_, Some(product)) => product,
        (Work::Validate { .. }, None) => Product::Verdict(Verdict {
            pass: !rng.percent(temper.check_fails),
            notes: "looked at it".into(),
            issues: Vec::new(),
        }),
        (Work::Plan | Work::Develop { .. } | Work::Resolve { .. }, None) => {
            Product::Commit(oid(rng))
        }
    };
    Fate::Ends(Outcome::Finished { product })
}

fn draw_failure(role: Role, now_ms: u64, rng: &mut Rng) -> Fate {
    let problems = vec!["no tasks in it".to_owned()];
    let outcome = match (role, rng.below(12)) {
        (_, 0) => return Fate::Hangs,
        (_, 1) => Outcome::Crashed { detail: "exit 1".into() },
        (_, 2) => Outcome::RateLimited { until: timestamp(now_ms + rng.between(1_000, 90_000)) },
        (_, 3) => Outcome::Killed { by: Killer::Other },
        (_, 4) => Outcome::Killed { by: Killer::Memory },
        (_, 5) => Outcome::MaxTurns,
        (_, 11) => Outcome::Overloaded { status: 529 },
        (Role::Merger, 6 | 7) => {
            let report = "both change the same rule".to_owned();
            Outcome::Finished { product: Product::Unresolvable { report } }
        }
        (Role::Worker, 6) => Outcome::NoOp,
        (Role::Worker, 7) => Outcome::Uncommitted,
        (Role::Worker, _) => Outcome::Violated { violations: vec!["blocked path".into()] },
        (Role::Planner | Role::Validator | Role::Merger, _) => Outcome::Malformed { problems },
    };
    Fate::Ends(outcome)
}

/// Virtual time: milliseconds since a fixed morning.
pub fn timestamp(ms: u64) -> Timestamp {
    let morning = Timestamp::from_second(1_770_000_000).unwrap_or(Timestamp::UNIX_EPOCH);
    let since = SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
    morning.checked_add(since).unwrap_or(Timestamp::MAX)
}

//! Executors: none has more agents than it may, none is used while its provider
//! asks for a pause, what an overloaded provider turned away leaves it alone for a
//! while, and whoever was passed over was so for a reason.

use std::collections::BTreeMap;

use blueflame_core::event::{PassedOver, Shortcoming, Work};
use blueflame_core::ids::{AccountName, AgentId, ExecutorName};
use blueflame_core::rules::Rules;
use jiff::{SignedDuration, Timestamp};

use super::{Finding, must};

/// The shortest and the longest that overloaded providers are left alone for.
const SHORTEST: SignedDuration = SignedDuration::from_secs(5);
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

#[derive(Debug)]
pub struct Executors {
    accounts: BTreeMap<ExecutorName, AccountName>,
    caps: BTreeMap<ExecutorName, u32>,
    engaged: BTreeMap<AgentId, ExecutorName>,
    paused: BTreeMap<AccountName, Timestamp>,
    /// When each work was last turned away by an account.
    turned_away: BTreeMap<(String, AccountName), Timestamp>,
}

impl Executors {
    pub fn new(rules: &Rules) -> Executors {
        Executors {
            accounts: rules.accounts.clone(),
            caps: rules.executor_caps.clone(),
            engaged: BTreeMap::new(),
            paused: BTreeMap::new(),
            turned_away: BTreeMap::new(),
        }
    }

    pub fn claimed(
        &mut self,
        at: Timestamp,
        agent: &AgentId,
        work: &Work,
        executor: &ExecutorName,
        passed_over: &[PassedOver],
    ) -> Result<(), Finding> {
        must!(
            self.paused(executor).is_none_or(|until| until <= at),
            "an agent was started during a provider's pause"
        );
        let away = |executor: &ExecutorName| {
            self.turned_away.get(&(name(work), self.account(executor))).copied()
        };
        must!(
            away(executor).is_none_or(|since| at.duration_since(since) >= SHORTEST),
            "an overloaded provider was asked for the same again at once"
        );
        must!(!self.is_full(executor), "{executor} has more agents than it may have");
        for PassedOver { executor, because } in passed_over {
            let so = match because {
                Shortcoming::Failed => true,
                Shortcoming::Paused { until } => self.paused(executor) == Some(*until),
                Shortcoming::Overloaded { until } => away(executor).is_some_and(|since| {
                    let wait = until.duration_since(since);
                    *until > at && wait >= SHORTEST && wait <= LONGEST
                }),
                Shortcoming::Full { .. } => self.is_full(executor),
            };
            must!(so, "{executor} was passed over without a reason");
        }
        self.engaged.insert(agent.clone(), executor.clone());
        Ok(())
    }

    pub fn left(&mut self, agent: &AgentId) {
        self.engaged.remove(agent);
    }

    pub fn limited(&mut self, account: &AccountName, until: Timestamp) {
        let end = self.paused.entry(account.clone()).or_insert(until);
        *end = (*end).max(until);
    }

    /// An agent was stopped by the limit of its account.
    pub fn limited_by(&mut self, agent: &AgentId, until: Timestamp) {
        if let Some(executor) = self.engaged.get(agent).cloned() {
            self.limited(&self.account(&executor), until);
        }
    }

    /// The provider of an agent's account was overloaded.
    pub fn turned_away(&mut self, at: Timestamp, agent: &AgentId, work: &Work) {
        if let Some(executor) = self.engaged.get(agent).cloned() {
            self.turned_away.insert((name(work), self.account(&executor)), at);
        }
    }

    pub fn pause_ended(&mut self, at: Timestamp) -> Result<(), Finding> {
        let before = self.paused.len();
        self.paused.retain(|_, until| *until > at);
        let waited = self.turned_away.values().any(|since| at.duration_since(*since) >= SHORTEST);
        must!(waited || self.paused.len() < before, "a pause ended before its time");
        Ok(())
    }

    /// Another orchestrator tries again.
    pub fn resumed(&mut self) {
        self.paused.clear();
        self.turned_away.clear();
    }

    fn account(&self, executor: &ExecutorName) -> AccountName {
        self.accounts.get(executor).cloned().unwrap_or_default()
    }

    fn paused(&self, executor: &ExecutorName) -> Option<Timestamp> {
        self.paused.get(&self.account(executor)).copied()
    }

    fn is_full(&self, executor: &ExecutorName) -> bool {
        let engaged = self.engaged.values().filter(|other| *other == executor).count();
        self.caps.get(executor).is_some_and(|cap| engaged >= *cap as usize)
    }
}

/// The same for every attempt at some work.
fn name(work: &Work) -> String {
    match work {
        Work::Plan => "plan".to_owned(),
        Work::Develop { task, .. } => format!("develop {task}"),
        Work::Validate { task, .. } => format!("validate {task}"),
        Work::Resolve { changeset } => format!("resolve {changeset}"),
    }
}

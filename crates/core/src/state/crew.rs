//! The agents at work, what all of them have cost, and what may still be
//! spent.
//!
//! A session's budget is handed out in slices. What an agent holds counts as
//! spent until it ends, so the shares handed out never add up to more than
//! the budget, whoever crashes when. An agent can pass its share only by the
//! request that was under way when it ran out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::event::{Process, Work};
use crate::ids::{AgentId, ExecutorName, Oid, Role};
use crate::money::{Budget, Spend, Unit};
use crate::skill::Handed;

/// Into how many slices a session's budget is cut: enough for every agent to
/// hold one and come back for more, few enough not to ask all the time.
const SLICES: u64 = 16;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agent {
    pub work: Work,
    pub executor: ExecutorName,
    pub cap: Budget,
    pub grant: Budget,
    pub spend: Spend,
    pub wants_grant: bool,
    pub stop_sent: bool,
    pub process: Option<Process>,
    pub snapshot: Option<Oid>,
    pub claimed_at: Timestamp,
}

impl Agent {
    /// What it takes out of the session's budget: its share, or more if its
    /// last request cost more than was left of it.
    fn held(&self, unit: Unit) -> u64 {
        amount(self.grant).max(unit.measure(&self.spend))
    }

    /// The same in the unit of what the session has left.
    pub(super) fn held_in(&self, room: &Room) -> u64 {
        match room {
            Room::Unlimited => 0,
            Room::Limited { unit, .. } => self.held(*unit),
        }
    }

    /// Whether its own limit leaves anything to ask for.
    pub(super) fn may_have_more(&self) -> bool {
        match (limited(self.cap), self.grant.unit()) {
            (Some((unit, cap)), Some(granted)) if unit == granted => self.held(unit) < cap,
            _ => true,
        }
    }
}

/// An agent run that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastAgent {
    pub agent: AgentId,
    pub work: Work,
    pub executor: ExecutorName,
    pub spend: Spend,
    pub outcome: &'static str,
    pub claimed_at: Timestamp,
    pub ended_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Crew {
    live: BTreeMap<AgentId, Agent>,
    past: Vec<PastAgent>,
    #[serde(skip)]
    past_ids: BTreeSet<AgentId>,
    past_spend: Spend,
    /// What lost agents held and may have spent, beyond what is known, in the
    /// unit of the session's budget.
    unaccounted: u64,
    session_budget: Budget,
    /// The person chose to stop at the budget: nobody is started any more.
    closed: bool,
    /// The skills that the last agent of each role was given, if any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    skills: BTreeMap<Role, Vec<Handed>>,
}

impl Crew {
    pub fn new(session_budget: Budget) -> Self {
        Crew {
            live: BTreeMap::new(),
            past: Vec::new(),
            past_ids: BTreeSet::new(),
            past_spend: Spend::default(),
            unaccounted: 0,
            session_budget,
            closed: false,
            skills: BTreeMap::new(),
        }
    }

    pub(super) fn taught(&mut self, role: Role, skills: &[Handed]) {
        if skills.is_empty() {
            self.skills.remove(&role);
        } else {
            self.skills.insert(role, skills.to_vec());
        }
    }

    /// The skills that the last agent of each role was given, if any.
    pub fn skills(&self) -> &BTreeMap<Role, Vec<Handed>> {
        &self.skills
    }

    pub fn live(&self) -> &BTreeMap<AgentId, Agent> {
        &self.live
    }

    pub fn past(&self) -> &[PastAgent] {
        &self.past
    }

    /// What the runs for some work have cost, as far as they are over.
    pub fn spent_on(&self, is_meant: impl Fn(&Work) -> bool) -> Spend {
        let meant = self.past.iter().filter(|run| is_meant(&run.work));
        meant.fold(Spend::default(), |sum, run| sum.plus(run.spend))
    }

    pub fn live_in(&self, role: Role) -> usize {
        self.live.values().filter(|agent| agent.work.role() == role).count()
    }

    pub fn live_with(&self, executor: &ExecutorName) -> u32 {
        let count = self.live.values().filter(|agent| agent.executor == *executor).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub fn spent(&self) -> Spend {
        self.live.values().fold(self.past_spend, |sum, agent| sum.plus(agent.spend))
    }

    pub fn session_budget(&self) -> Budget {
        self.session_budget
    }

    /// What counts as spent although nobody knows: the shares of lost agents.
    pub fn written_off(&self) -> Option<Budget> {
        let unit = self.session_budget.unit()?;
        (self.unaccounted > 0).then(|| unit.budget(self.unaccounted))
    }

    /// What agents at work hold of the session's budget beyond what they have
    /// spent.
    pub fn held(&self) -> Option<Budget> {
        let unit = self.session_budget.unit()?;
        let unspent = |agent: &Agent| agent.held(unit).saturating_sub(unit.measure(&agent.spend));
        let held = self.live.values().map(unspent).fold(0, u64::saturating_add);
        (held > 0).then(|| unit.budget(held))
    }

    /// What is neither spent nor held.
    pub fn left(&self) -> Option<Budget> {
        match self.room() {
            Room::Unlimited => None,
            Room::Limited { unit, left, .. } => Some(unit.budget(left)),
        }
    }

    /// Whether so many percent of the session's budget are gone.
    pub fn is_nearly_spent(&self, percent: u8) -> bool {
        limited(self.session_budget).is_some_and(|(unit, limit)| {
            let gone = u128::from(unit.measure(&self.spent())) + u128::from(self.unaccounted);
            gone * 100 >= u128::from(limit) * u128::from(percent)
        })
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether some agent will come to an end without more money, and may
    /// leave some of its share over.
    pub fn anyone_busy(&self) -> bool {
        self.live.values().any(|agent| !agent.wants_grant || agent.stop_sent)
    }

    /// What the session may still hand out.
    pub fn room(&self) -> Room {
        let Some((unit, limit)) = limited(self.session_budget) else { return Room::Unlimited };
        let gone = unit.measure(&self.past_spend).saturating_add(self.unaccounted);
        let committed =
            self.live.values().map(|agent| agent.held(unit)).fold(gone, u64::saturating_add);
        Room::Limited {
            unit,
            left: limit.saturating_sub(committed),
            slice: (limit / SLICES).max(1),
        }
    }

    pub(super) fn knows(&self, agent: &AgentId) -> bool {
        self.live.contains_key(agent) || self.past_ids.contains(agent)
    }

    pub(super) fn hire(&mut self, id: AgentId, agent: Agent) {
        self.live.insert(id, agent);
    }

    pub(super) fn live_mut(&mut self, id: &AgentId) -> Option<&mut Agent> {
        self.live.get_mut(id)
    }

    pub(super) fn all_live_mut(&mut self) -> impl Iterator<Item = &mut Agent> {
        self.live.values_mut()
    }

    /// Takes an agent off the list of the living and its cost into the books.
    pub(super) fn dismiss(
        &mut self,
        id: &AgentId,
        spend: Spend,
        outcome: &'static str,
        at: Timestamp,
    ) -> Option<Agent> {
        let mut agent = self.live.remove(id)?;
        agent.spend = agent.spend.at_least(spend);
        self.past_spend = self.past_spend.plus(agent.spend);
        self.past_ids.insert(id.clone());
        self.past.push(PastAgent {
            agent: id.clone(),
            work: agent.work.clone(),
            executor: agent.executor.clone(),
            spend: agent.spend,
            outcome,
            claimed_at: agent.claimed_at,
            ended_at: at,
        });
        Some(agent)
    }

    /// Books an agent of which nobody knows what it spent last: what it held
    /// is gone.
    pub(super) fn write_off(&mut self, id: &AgentId) {
        let Some((unit, _)) = limited(self.session_budget) else { return };
        if let Some(agent) = self.live.get(id) {
            let unknown = agent.held(unit).saturating_sub(unit.measure(&agent.spend));
            self.unaccounted = self.unaccounted.saturating_add(unknown);
        }
    }

    /// Raises the session's budget, in its own unit.
    pub(super) fn raise(&mut self, by: Budget) -> Result<(), String> {
        match (limited(self.session_budget), limited(by)) {
            (Some((unit, limit)), Some((raised, by))) if unit == raised && by > 0 => {
                self.session_budget = unit.budget(limit.saturating_add(by));
                Ok(())
            }
            _ => Err(format!("a budget of {} cannot be raised by {by}", self.session_budget)),
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }
}

/// What is left of the session's budget after everything handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Unlimited,
    Limited { unit: Unit, left: u64, slice: u64 },
}

impl Room {
    /// Whether there is nothing left to hand out.
    pub fn is_empty(&self) -> bool {
        matches!(self, Room::Limited { left: 0, .. })
    }

    /// Whether a share, in place of what an agent holds already, can be
    /// handed out.
    pub(super) fn covers(&self, held: u64, share: Budget, cap: Budget) -> bool {
        match self {
            Room::Unlimited => share == Budget::Unlimited,
            Room::Limited { unit, left, .. } => {
                let within_cap = cap.unit() != Some(*unit) || amount(share) <= amount(cap);
                share.unit() == Some(*unit)
                    && amount(share) > held
                    && amount(share) - held <= *left
                    && within_cap
            }
        }
    }

    /// A first share for a new agent, taken out of the room; `None` if there
    /// is nothing to give.
    pub fn first_share(&mut self, cap: Budget) -> Option<Budget> {
        self.take(0, cap)
    }

    /// A larger share for an agent that asks for one.
    pub fn next_share(&mut self, agent: &Agent) -> Option<Budget> {
        match self {
            Room::Unlimited => Some(Budget::Unlimited),
            Room::Limited { .. } => {
                let held = agent.held_in(self);
                self.take(held, agent.cap)
            }
        }
    }

    fn take(&mut self, held: u64, cap: Budget) -> Option<Budget> {
        let Room::Limited { unit, left, slice } = self else { return Some(Budget::Unlimited) };
        let within_cap = match limited(cap) {
            Some((cap_unit, cap)) if cap_unit == *unit => cap.saturating_sub(held),
            _ => u64::MAX,
        };
        let more = (*left).min(*slice).min(within_cap);
        if more == 0 {
            return None;
        }
        *left -= more;
        Some(unit.budget(held.saturating_add(more)))
    }
}

fn limited(budget: Budget) -> Option<(Unit, u64)> {
    Some((budget.unit()?, amount(budget)))
}

/// The bare figure of a budget, 0 where there is none to speak of.
fn amount(budget: Budget) -> u64 {
    match budget {
        Budget::Unlimited => 0,
        Budget::Usd(usd) => usd.micros(),
        Budget::Tokens(tokens) => tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Usd;

    fn room(left: u64, slice: u64) -> Room {
        Room::Limited { unit: Unit::Usd, left, slice }
    }

    fn usd(micros: u64) -> Budget {
        Budget::Usd(Usd::from_micros(micros))
    }

    #[test]
    fn shares_never_add_up_to_more_than_there_is() {
        let mut room = room(100, 40);
        assert_eq!(room.first_share(Budget::Unlimited), Some(usd(40)));
        assert_eq!(room.first_share(Budget::Unlimited), Some(usd(40)));
        assert_eq!(room.first_share(Budget::Unlimited), Some(usd(20)));
        assert_eq!(room.first_share(Budget::Unlimited), None);
    }

    #[test]
    fn a_share_stops_at_the_agents_own_cap() {
        let mut room = room(100, 40);
        assert_eq!(room.first_share(usd(30)), Some(usd(30)));
        assert_eq!(room.take(30, usd(30)), None);
        // A cap in another unit is the attempt's business.
        assert_eq!(room.first_share(Budget::Tokens(5)), Some(usd(40)));
    }

    #[test]
    fn an_overspent_share_grows_from_what_was_spent() {
        // A share below what is gone already would let no request through.
        assert_eq!(room(100, 40).take(90, Budget::Unlimited), Some(usd(130)));
    }

    #[test]
    fn without_a_session_budget_nobody_is_held_back() {
        assert_eq!(Room::Unlimited.first_share(usd(1)), Some(Budget::Unlimited));
    }
}

//! The auditor's purse: what was handed out and what was spent.

use std::collections::BTreeMap;

use blueflame_core::ids::AgentId;
use blueflame_core::money::{Budget, Spend, Usd};
use blueflame_core::rules::Rules;

use super::{Finding, must};
use crate::sim::scenario::DEAREST_REQUEST;

#[derive(Debug)]
pub struct Purse {
    limit: Budget,
    most_at_once: u64,
    held: BTreeMap<AgentId, Share>,
    spent_by_the_gone: u64,
    closed: bool,
}

#[derive(Clone, Debug)]
struct Share {
    grant: u64,
    cap: Budget,
    spent: Spend,
}

impl Purse {
    pub fn new(rules: &Rules) -> Self {
        Purse {
            limit: rules.session_budget,
            most_at_once: u64::from(rules.workers + rules.validators + 1),
            held: BTreeMap::new(),
            spent_by_the_gone: 0,
            closed: false,
        }
    }

    fn in_unit(&self, spend: &Spend) -> u64 {
        match self.limit {
            Budget::Unlimited => 0,
            Budget::Usd(_) => spend.cost.micros(),
            Budget::Tokens(_) => spend.usage.total(),
        }
    }

    fn figure(budget: Budget) -> Option<u64> {
        match budget {
            Budget::Unlimited => None,
            Budget::Usd(usd) => Some(usd.micros()),
            Budget::Tokens(tokens) => Some(tokens),
        }
    }

    /// Everything handed out or gone; what was overspent is gone too.
    fn committed(&self) -> u64 {
        let held = self.held.values().map(|share| share.grant.max(self.in_unit(&share.spent)));
        self.spent_by_the_gone + held.sum::<u64>()
    }

    pub fn claimed(&mut self, agent: &AgentId, cap: Budget, grant: Budget) -> Result<(), Finding> {
        must!(!self.closed, "an agent was started after the budget was closed");
        let share = Share { grant: Self::figure(grant).unwrap_or(0), cap, spent: Spend::default() };
        self.held.insert(agent.clone(), share);
        self.check_share(agent, grant)
    }

    pub fn granted(&mut self, agent: &AgentId, grant: Budget) -> Result<(), Finding> {
        must!(!self.closed, "money was handed out after the budget was closed");
        let before = self.held.get(agent).ok_or("money for nobody")?.grant;
        let after = Self::figure(grant).unwrap_or(0);
        must!(after > before, "a grant that gives nothing");
        self.held.entry(agent.clone()).and_modify(|share| share.grant = after);
        self.check_share(agent, grant)
    }

    fn check_share(&self, agent: &AgentId, grant: Budget) -> Result<(), Finding> {
        let Some(limit) = Self::figure(self.limit) else {
            must!(grant == Budget::Unlimited, "a share of no limit");
            return Ok(());
        };
        must!(
            std::mem::discriminant(&grant) == std::mem::discriminant(&self.limit),
            "a share in another unit"
        );
        must!(self.committed() <= limit, "{} handed out of {limit}", self.committed());
        let share = self.held.get(agent).ok_or("a share for nobody")?;
        must!(share.grant > 0, "a share of nothing");
        if std::mem::discriminant(&share.cap) == std::mem::discriminant(&self.limit) {
            let cap = Self::figure(share.cap).unwrap_or(u64::MAX);
            must!(share.grant <= cap, "a share above the agent's own limit");
        }
        Ok(())
    }

    pub fn used(&mut self, agent: &AgentId, spend: &Spend) -> Result<(), Finding> {
        let share = self.held.get_mut(agent).ok_or("costs of nobody")?;
        share.spent = *spend;
        let grant = share.grant;
        let Some(limit) = Self::figure(self.limit) else { return Ok(()) };
        must!(
            self.in_unit(spend) < grant + DEAREST_REQUEST,
            "{agent} passed its share by more than one request"
        );
        let total = self.spent_by_the_gone
            + self.held.values().map(|share| self.in_unit(&share.spent)).sum::<u64>();
        must!(total <= limit + self.most_at_once * DEAREST_REQUEST, "{total} spent of {limit}");
        Ok(())
    }

    pub fn left(&mut self, agent: &AgentId, spend: &Spend) -> Result<(), Finding> {
        let share = self.held.get(agent).ok_or("an end of nobody")?;
        let last =
            if self.in_unit(spend) > self.in_unit(&share.spent) { *spend } else { share.spent };
        self.used(agent, &last)?;
        self.held.remove(agent);
        self.spent_by_the_gone += self.in_unit(&last);
        Ok(())
    }

    /// Nobody knows what it spent last: all that it held is gone.
    pub fn written_off(&mut self, agent: &AgentId) -> Result<(), Finding> {
        let share = self.held.remove(agent).ok_or("an end of nobody")?;
        self.spent_by_the_gone += share.grant.max(self.in_unit(&share.spent));
        Ok(())
    }

    /// People are only bothered when the money is really gone.
    pub fn asked(&self) -> Result<(), Finding> {
        let limit = Self::figure(self.limit).ok_or("asked about a budget that is unlimited")?;
        must!(
            self.committed() >= limit,
            "asked for money with {} of {limit} used",
            self.committed()
        );
        must!(!self.closed, "asked again after the person said stop");
        Ok(())
    }

    pub fn raise(&mut self, by: Budget) -> Result<(), Finding> {
        self.limit = match (self.limit, by) {
            (Budget::Usd(usd), Budget::Usd(by)) => {
                Budget::Usd(Usd::from_micros(usd.micros() + by.micros()))
            }
            (Budget::Tokens(tokens), Budget::Tokens(by)) => Budget::Tokens(tokens + by),
            (limit, by) => return Err(format!("{limit} was raised by {by}")),
        };
        Ok(())
    }

    pub fn close(&mut self) {
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

//! How much an agent may spend, and whether its next request may go.
//!
//! There are two limits: the cap is the agent's own budget and final; the
//! grant is its share of the session's budget and may grow. Both hold for all
//! requests of the agent together, its sub-agents' too.
//!
//! The rule: a request may go if what is spent, plus the most that the
//! requests under way could still cost, is below both limits. So whatever runs
//! at the same time, a limit is passed by one request at most: the one that
//! was let go last. A request that does not fit only because of others waits
//! for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blueflame_core::money::{Budget, Spend};
use tokio::sync::watch;

use crate::refusal::Refusal;

/// What one agent run may spend; shared with whoever hands out the grants.
#[derive(Debug)]
pub struct Allowance {
    state: Mutex<State>,
    /// Moves whenever a waiting request should look again.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    cap: Budget,
    grant: Budget,
    /// What finished requests have cost.
    settled: Spend,
    under_way: BTreeMap<u64, UnderWay>,
    next: u64,
    stopped: Option<String>,
    /// The grant that was too small when more was last asked for.
    asked_at: Option<Budget>,
    /// Requests that wait for a larger grant right now.
    grant_waiters: usize,
    /// Requests whose provider is being waited for right now.
    awaited: usize,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// The most that it could cost.
    reserve: Spend,
    /// What the provider has said so far.
    reported: Spend,
}

/// What is decided about a request.
#[derive(Debug)]
#[must_use]
pub(crate) enum Verdict {
    Go(Ticket),
    /// Requests under way may leave room.
    WaitForOthers,
    /// Only a larger grant helps; `first` when nobody has asked for it yet.
    WaitForGrant {
        first: bool,
    },
    Refuse(Refusal),
}

impl Allowance {
    /// `spent` is what an earlier process has counted for this run.
    pub fn new(cap: Budget, grant: Budget, spent: Spend) -> Arc<Self> {
        Arc::new(Allowance {
            state: Mutex::new(State {
                cap,
                grant,
                settled: spent,
                under_way: BTreeMap::new(),
                next: 0,
                stopped: None,
                asked_at: None,
                grant_waiters: 0,
                awaited: 0,
            }),
            changed: watch::Sender::new(0),
        })
    }

    /// No limit at all.
    pub fn unlimited() -> Arc<Self> {
        Allowance::new(Budget::Unlimited, Budget::Unlimited, Spend::default())
    }

    /// A new grant, as a total and not as an addition: telling it twice does
    /// no harm.
    pub fn set_grant(&self, grant: Budget) {
        self.state().grant = grant;
        self.wake();
    }

    pub fn set_cap(&self, cap: Budget) {
        self.state().cap = cap;
        self.wake();
    }

    /// Refuses whatever waits and whatever comes.
    pub fn stop(&self, why: impl Into<String>) {
        self.state().stopped = Some(why.into());
        self.wake();
    }

    /// What all requests have cost, as far as it is known for sure.
    pub fn spent(&self) -> Spend {
        self.state().known()
    }

    /// Whether a provider is being waited for. A request whose answer the agent
    /// does not take keeps nobody busy.
    pub fn is_busy(&self) -> bool {
        self.state().awaited > 0
    }

    /// How many requests wait for a larger grant. Whoever hangs up waits no
    /// longer.
    pub fn grant_waiters(&self) -> usize {
        self.state().grant_waiters
    }

    /// A request waits for a larger grant for as long as this is held.
    pub(crate) fn wait_for_grant(self: &Arc<Self>) -> GrantWait {
        self.state().grant_waiters += 1;
        GrantWait(Arc::clone(self))
    }

    /// The provider is waited for as long as this is held.
    pub(crate) fn await_provider(self: &Arc<Self>) -> Awaited {
        self.state().awaited += 1;
        Awaited(Arc::clone(self))
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Decides about a request that could cost as much as `reserve`.
    pub(crate) fn judge(self: &Arc<Self>, reserve: Spend) -> Verdict {
        let mut state = self.state();
        if let Some(why) = &state.stopped {
            return Verdict::Refuse(Refusal::Stopped { why: why.clone() });
        }
        let (settled, claimed) = (state.settled, state.claimed());
        if reached(state.cap, &settled) {
            return Verdict::Refuse(Refusal::Budget { cap: state.cap, spend: settled });
        }
        if reached(state.grant, &settled) {
            let first = state.asked_at != Some(state.grant);
            state.asked_at = Some(state.grant);
            return Verdict::WaitForGrant { first };
        }
        if reached(state.cap, &claimed) || reached(state.grant, &claimed) {
            return Verdict::WaitForOthers;
        }
        let id = state.next;
        state.next += 1;
        state.under_way.insert(id, UnderWay { reserve, reported: Spend::default() });
        Verdict::Go(Ticket { allowance: Arc::clone(self), id })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl State {
    fn known(&self) -> Spend {
        let reported = self.under_way.values().map(|request| request.reported);
        reported.fold(self.settled, Spend::plus)
    }

    /// What is spent when everything under way costs as much as it can.
    fn claimed(&self) -> Spend {
        let most =
            self.under_way.values().map(|request| request.reserve.at_least(request.reported));
        most.fold(self.settled, Spend::plus)
    }
}

fn reached(limit: Budget, spend: &Spend) -> bool {
    let Some(unit) = limit.unit() else { return false };
    let limit = match limit {
        Budget::Unlimited => return false,
        Budget::Usd(limit) => limit.micros(),
        Budget::Tokens(limit) => limit,
    };
    unit.measure(spend) >= limit
}

/// A request that waits for a larger grant.
#[derive(Debug)]
pub(crate) struct GrantWait(Arc<Allowance>);

impl GrantWait {
    /// Gives the waiting up; whether nobody waits any more. Whoever comes next
    /// asks anew.
    pub(crate) fn leave(&mut self) -> bool {
        let mut state = self.0.state();
        state.grant_waiters = state.grant_waiters.saturating_sub(1);
        if state.grant_waiters == 0 {
            state.asked_at = None;
        }
        state.grant_waiters == 0
    }
}

/// A request whose provider is being waited for.
#[derive(Debug)]
pub(crate) struct Awaited(Arc<Allowance>);

impl Drop for Awaited {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.awaited = state.awaited.saturating_sub(1);
    }
}

/// A request that is under way. Dropping it says that it cost nothing more
/// than was reported.
#[derive(Debug)]
pub(crate) struct Ticket {
    allowance: Arc<Allowance>,
    id: u64,
}

impl Ticket {
    /// What the provider has said so far; the answer is what all requests
    /// have cost.
    pub(crate) fn report(&self, spend: Spend) -> Spend {
        let mut state = self.allowance.state();
        if let Some(request) = state.under_way.get_mut(&self.id) {
            request.reported = request.reported.at_least(spend);
        }
        state.known()
    }

    /// What it has cost in the end; the answer is what all have.
    pub(crate) fn settle(self, spend: Spend) -> Spend {
        let known = self.report(spend);
        drop(self);
        known
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.allowance.state();
        if let Some(request) = state.under_way.remove(&self.id) {
            state.settled = state.settled.plus(request.reported);
        }
        drop(state);
        self.allowance.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blueflame_core::money::{Usage, Usd};

    fn tokens(output: u64) -> Spend {
        Spend { usage: Usage { output, ..Usage::default() }, cost: Usd::from_micros(output) }
    }

    fn go(allowance: &Arc<Allowance>, reserve: u64) -> Option<Ticket> {
        match allowance.judge(tokens(reserve)) {
            Verdict::Go(ticket) => Some(ticket),
            Verdict::WaitForOthers | Verdict::WaitForGrant { .. } | Verdict::Refuse(_) => None,
        }
    }

    #[test]
    fn requests_side_by_side_pass_a_limit_by_one_request_at_most() {
        for cap in [Budget::Tokens(100), Budget::Usd(Usd::from_micros(100))] {
            let allowance = Allowance::new(cap, Budget::Unlimited, Spend::default());
            let mut under_way: Vec<Ticket> = (0..50).filter_map(|_| go(&allowance, 40)).collect();
            assert_eq!(under_way.len(), 3, "two are sure to fit, and one more may go");
            under_way.pop().unwrap().settle(tokens(5));
            under_way.push(go(&allowance, 40).expect("one cost little, one more may go"));
            assert!(go(&allowance, 40).is_none());
            for ticket in under_way {
                ticket.settle(tokens(40));
            }
            assert!(allowance.spent().usage.total() <= 100 + 40);
            assert!(matches!(allowance.judge(tokens(1)), Verdict::Refuse(Refusal::Budget { .. })));
        }
    }

    #[test]
    fn a_grant_is_asked_for_once_and_lets_the_next_one_go() {
        let allowance = Allowance::new(Budget::Unlimited, Budget::Tokens(10), Spend::default());
        go(&allowance, 99).expect("nothing is spent yet").settle(tokens(10));
        assert!(matches!(allowance.judge(tokens(9)), Verdict::WaitForGrant { first: true }));
        assert!(matches!(allowance.judge(tokens(9)), Verdict::WaitForGrant { first: false }));
        allowance.set_grant(Budget::Tokens(20));
        go(&allowance, 9).expect("the grant has grown").settle(tokens(15));
        assert!(matches!(allowance.judge(tokens(9)), Verdict::WaitForGrant { first: true }));
    }

    #[test]
    fn the_cap_is_final_even_where_a_grant_could_grow() {
        let allowance = Allowance::new(Budget::Tokens(5), Budget::Tokens(5), tokens(5));
        assert!(matches!(allowance.judge(tokens(0)), Verdict::Refuse(Refusal::Budget { .. })));
        allowance.set_cap(Budget::Unlimited);
        allowance.stop("enough");
        assert!(matches!(allowance.judge(tokens(0)), Verdict::Refuse(Refusal::Stopped { .. })));
    }

    #[test]
    fn a_request_that_is_dropped_still_counts_with_what_was_reported() {
        let allowance = Allowance::unlimited();
        let ticket = go(&allowance, 100).unwrap();
        assert_eq!(ticket.report(tokens(7)), tokens(7));
        drop(ticket);
        assert_eq!(allowance.spent(), tokens(7));
    }
}

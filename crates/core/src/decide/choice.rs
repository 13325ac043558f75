//! Which executor does some work, and why none that would come before it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::event::{PassedOver, Shortcoming, Work};
use crate::ids::ExecutorName;
use crate::state::State;

/// What came of looking for an executor.
pub(super) enum Choice {
    Take {
        executor: ExecutorName,
        passed_over: Vec<PassedOver>,
    },
    /// All that could do it wait for their provider, or have as many agents as
    /// they may; the end of the first pause, if it is worth waiting for.
    Wait {
        until: Option<Timestamp>,
    },
}

/// How many agents each executor has; only of those that may not have any number.
pub(super) struct Engaged(BTreeMap<ExecutorName, u32>);

impl Engaged {
    pub(super) fn now(state: &State) -> Engaged {
        let limited = state.rules.executor_caps.keys();
        Engaged(limited.map(|name| (name.clone(), state.crew.live_with(name))).collect())
    }

    pub(super) fn one_more(&mut self, executor: &ExecutorName) {
        if let Some(count) = self.0.get_mut(executor) {
            *count += 1;
        }
    }

    fn is_full(&self, state: &State, executor: &ExecutorName) -> Option<u32> {
        let cap = *state.rules.executor_caps.get(executor)?;
        self.0.get(executor).is_some_and(|count| *count >= cap).then_some(cap)
    }
}

/// The first executor that was not found wanting, whose account is open, whose
/// provider did not turn this work away just now and that may have one more agent. The last one is kept when there is nobody left to try.
pub(super) fn executor(state: &State, engaged: &Engaged, work: &Work) -> Choice {
    let chain = state.executor_chain(work);
    let failed = state.executors_failed(work).min(chain.len().saturating_sub(1));
    let wanting = |name: &&ExecutorName| PassedOver {
        executor: (*name).clone(),
        because: Shortcoming::Failed,
    };
    let mut passed_over: Vec<PassedOver> = chain.iter().take(failed).map(wanting).collect();
    // It is at least as late as the last thing that happened.
    let paused = |name| state.pauses.of(state.rules.account_of(name), state.last_at);
    let backs_off = |name| state.back_offs.of(work, state.rules.account_of(name), state.last_at);
    let mut opens = Vec::new();
    for executor in chain.into_iter().skip(failed) {
        let because = if let Some(until) = paused(executor) {
            opens.push(until);
            Shortcoming::Paused { until }
        } else if let Some(until) = backs_off(executor) {
            opens.push(until);
            Shortcoming::Overloaded { until }
        } else if let Some(agents) = engaged.is_full(state, executor) {
            Shortcoming::Full { agents }
        } else {
            return Choice::Take { executor: executor.clone(), passed_over };
        };
        passed_over.push(PassedOver { executor: executor.clone(), because });
    }
    Choice::Wait { until: opens.into_iter().min() }
}

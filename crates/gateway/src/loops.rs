//! Stops agents that ask without end.
//!
//! Some command lines answer certain errors with hundreds of requests a
//! minute: one was seen to compact its context for ever, and to repeat a
//! stream that had been cut. Once broken, a loop stays broken.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::refusal::Refusal;

/// What is taken for a loop. The defaults let an agent with several helpers
/// work at full speed, and the usual number of retries pass (claude makes 11
/// requests, codex up to 30).
#[derive(Clone, Copy, Debug)]
pub struct LoopLimits {
    pub window: Duration,
    /// Requests in the window.
    pub requests: usize,
    /// Failed requests in the window.
    pub failures: usize,
    /// Failed requests with no success between.
    pub failures_in_a_row: usize,
}

impl Default for LoopLimits {
    fn default() -> Self {
        LoopLimits {
            window: Duration::from_secs(60),
            requests: 240,
            failures: 60,
            failures_in_a_row: 32,
        }
    }
}

#[derive(Debug)]
pub(crate) struct LoopBreaker {
    limits: LoopLimits,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: VecDeque<Instant>,
    failures: VecDeque<Instant>,
    in_a_row: usize,
    broken: Option<Refusal>,
}

/// What the breaker says to a request.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Pass {
    Yes,
    /// This request has broken the loop.
    Broken(Refusal),
    /// It was broken before.
    StillBroken(Refusal),
}

impl LoopBreaker {
    pub(crate) fn new(limits: LoopLimits) -> Self {
        LoopBreaker { limits, seen: Mutex::default() }
    }

    pub(crate) fn admit(&self, now: Instant) -> Pass {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &seen.broken {
            return Pass::StillBroken(why.clone());
        }
        let Seen { requests, failures, .. } = &mut *seen;
        requests.push_back(now);
        for times in [requests, failures] {
            while times.front().is_some_and(|then| now.duration_since(*then) > self.limits.window) {
                times.pop_front();
            }
        }
        let failed = |failures, when| Some(Refusal::TooManyFailures { failures, when });
        let broken = if seen.requests.len() > self.limits.requests {
            Some(Refusal::TooMany { requests: seen.requests.len(), window: self.limits.window })
        } else if seen.in_a_row >= self.limits.failures_in_a_row {
            failed(seen.in_a_row, "in a row")
        } else if seen.failures.len() >= self.limits.failures {
            failed(seen.failures.len(), "in a short time")
        } else {
            None
        };
        seen.broken.clone_from(&broken);
        broken.map_or(Pass::Yes, Pass::Broken)
    }

    pub(crate) fn failed(&self, now: Instant) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.in_a_row += 1;
        if seen.failures.len() < self.limits.failures {
            seen.failures.push_back(now);
        }
    }

    pub(crate) fn succeeded(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).in_a_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LoopLimits = LoopLimits {
        window: Duration::from_secs(10),
        requests: 5,
        failures: 4,
        failures_in_a_row: 3,
    };

    #[test]
    fn too_many_requests_break_it_for_good_and_a_steady_pace_does_not() {
        let start = Instant::now();
        let breaker = LoopBreaker::new(LIMITS);
        for second in 0..100 {
            assert_eq!(breaker.admit(start + Duration::from_secs(second * 3)), Pass::Yes);
        }
        let breaker = LoopBreaker::new(LIMITS);
        for _ in 0..5 {
            assert_eq!(breaker.admit(start), Pass::Yes);
        }
        assert!(matches!(breaker.admit(start), Pass::Broken(Refusal::TooMany { .. })));
        let later = start + Duration::from_secs(3_600);
        assert!(matches!(breaker.admit(later), Pass::StillBroken(_)));
    }

    #[test]
    fn failures_break_it_in_a_row_or_in_a_short_time() {
        let start = Instant::now();
        let at = |second: u64| start + Duration::from_secs(second * 4);
        let breaker = LoopBreaker::new(LIMITS);
        for second in 0..3 {
            assert_eq!(breaker.admit(at(second)), Pass::Yes);
            breaker.failed(at(second));
        }
        assert!(matches!(breaker.admit(at(3)), Pass::Broken(Refusal::TooManyFailures { .. })));
        let breaker = LoopBreaker::new(LIMITS);
        let mut passes = Vec::new();
        for quarter in 0..6 {
            let now = start + Duration::from_secs(quarter);
            passes.push(breaker.admit(now) == Pass::Yes);
            breaker.failed(now);
            breaker.succeeded();
        }
        assert_eq!(passes, [true, true, true, true, false, false]);
    }
}

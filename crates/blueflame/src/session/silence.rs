//! How long nothing was heard of somebody while we listened.
//!
//! If we stood still ourselves, the other side may have had to as well: a machine
//! that was put to sleep, or processes that were stopped and go on. Whoever comes
//! back first must not take the other one for dead, so only time counts in which
//! we were awake.

use std::time::Duration;

use tokio::time::Instant;

/// In so many pieces the time is counted that somebody may be silent: more would only
/// wake us up more often.
const PIECES: u32 = 8;

/// A piece that took this much longer is one in which we did not listen.
const LATE: Duration = Duration::from_millis(1500);

#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// How long it may last; for ever if there is nothing here.
    patience: Option<Duration>,
    length: Duration,
    counted: Instant,
}

impl Silence {
    pub fn begin(patience: Option<Duration>, now: Instant) -> Silence {
        Silence { patience, length: Duration::ZERO, counted: now }
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    pub fn is_too_long(&self) -> bool {
        self.patience.is_some_and(|patience| self.length >= patience)
    }

    /// Counts what has passed.
    pub fn go_on(&mut self, now: Instant) {
        let passed = now.duration_since(self.counted);
        self.length += self.piece().map_or(passed, |piece| passed.min(piece + LATE));
        self.counted = now;
    }

    /// Waits until there is something to count.
    pub async fn goes_on(&self) {
        match self.piece() {
            Some(piece) => tokio::time::sleep_until(self.counted + piece).await,
            None => std::future::pending().await,
        }
    }

    /// It begins anew: something was heard.
    pub fn break_off(&mut self, now: Instant) {
        *self = Silence::begin(self.patience, now);
    }

    fn piece(&self) -> Option<Duration> {
        self.patience.map(|patience| patience / PIECES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_listened_to_counts() {
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        let mut silence = Silence::begin(Some(16 * second), begun);
        for pieces in 1..=5 {
            silence.go_on(begun + 2 * pieces * second);
        }
        assert_eq!(silence.length(), 10 * second);
        silence.go_on(begun + 3600 * second);
        assert_eq!(silence.length(), 12 * second + LATE, "an hour of sleep is no silence");
        assert!(!silence.is_too_long());
        silence.go_on(begun + 3602 * second);
        silence.go_on(begun + 3604 * second);
        assert!(silence.is_too_long());
        silence.break_off(begun + 3604 * second);
        assert!(!silence.is_too_long());
    }

    #[test]
    fn whoever_may_be_silent_for_ever_is() {
        let begun = Instant::now();
        let mut silence = Silence::begin(None, begun);
        silence.go_on(begun + Duration::from_secs(1_000_000));
        assert!(!silence.is_too_long());
    }
}

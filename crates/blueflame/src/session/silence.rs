//! How long nothing was heard of somebody while we listened.
//!
//! If we stood still ourselves, the other side may have had to as well: a machine
//! that was put to sleep, or processes that were stopped and go on. Whoever comes
//! back first must not take the other one for dead, so only time counts in which
//! we were awake.

use std::time::Duration;

use tokio::time::Instant;

/// Time is counted in such pieces.
const PIECE: Duration = Duration::from_millis(500);

/// A piece that took longer than this is one in which we did not listen.
const AWAKE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct Silence {
    length: Duration,
    counted: Instant,
}

impl Silence {
    pub fn begin(now: Instant) -> Silence {
        Silence { length: Duration::ZERO, counted: now }
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    /// Counts what has passed.
    pub fn go_on(&mut self, now: Instant) {
        self.length += now.duration_since(self.counted).min(AWAKE);
        self.counted = now;
    }

    /// Waits until there is something to count.
    pub async fn goes_on(&self) {
        tokio::time::sleep_until(self.counted + PIECE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_listened_to_counts() {
        let begun = Instant::now();
        let mut silence = Silence::begin(begun);
        for half_seconds in 1..=20 {
            silence.go_on(begun + PIECE * half_seconds);
        }
        assert_eq!(silence.length(), Duration::from_secs(10));
        silence.go_on(begun + Duration::from_secs(3600));
        assert_eq!(silence.length(), Duration::from_secs(12), "an hour of sleep is no silence");
    }
}

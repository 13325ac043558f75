//! Wall clock and signs of life.

use std::time::Duration;

use tokio::time::Instant;

use super::conclude::Cause;

/// All the time that an agent may wait for people. An answer that has not come
/// within a day does not come.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the agent has had, not counting the time it waits for people.
#[derive(Debug)]
pub struct Clock {
    wall: Duration,
    idle: Duration,
    wall_end: Instant,
    last_sign: Instant,
    waiting_since: Option<Instant>,
    /// What is left of [`PATIENCE`].
    patience: Duration,
    /// It has said its last word: how long it takes to leave is another limit.
    off: bool,
}

impl Clock {
    pub fn new(wall: Duration, idle: Duration, now: Instant) -> Self {
        Clock {
            wall,
            idle,
            wall_end: now + wall,
            last_sign: now,
            waiting_since: None,
            patience: PATIENCE,
            off: false,
        }
    }

    pub fn sign_of_life(&mut self) {
        self.last_sign = Instant::now();
    }

    /// Nothing is exceeded from now on.
    pub fn turn_off(&mut self) {
        self.off = true;
    }

    /// Whether the agent waits for somebody else.
    pub fn set_waiting(&mut self, waiting: bool) {
        match (waiting, self.waiting_since) {
            (true, None) => self.waiting_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.wall_end += since.elapsed();
                self.patience = self.patience.saturating_sub(since.elapsed());
                self.last_sign = Instant::now();
                self.waiting_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// When there may be something to say.
    pub fn next(&self) -> Option<Instant> {
        match self.waiting_since {
            _ if self.off => None,
            Some(since) => Some(since + self.patience),
            None => Some(self.wall_end.min(self.last_sign + self.idle)),
        }
    }

    /// The limit that was passed.
    pub fn exceeded(&self, now: Instant) -> Option<Cause> {
        if self.off {
            None
        } else if let Some(since) = self.waiting_since {
            (now >= since + self.patience).then_some(Cause::Waited(PATIENCE))
        } else if now >= self.wall_end {
            Some(Cause::Wall(self.wall))
        } else if now >= self.last_sign + self.idle {
            Some(Cause::Idle(self.idle))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Duration = Duration::from_secs(100);
    const IDLE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn silence_and_length_are_told_apart() {
        let mut clock = Clock::new(WALL, IDLE, Instant::now());
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(clock.exceeded(Instant::now()), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.exceeded(Instant::now()), Some(Cause::Idle(IDLE)));
        for _ in 0..9 {
            clock.sign_of_life();
            assert_eq!(clock.exceeded(Instant::now()), None);
            tokio::time::advance(IDLE).await;
        }
        clock.sign_of_life();
        assert_eq!(clock.exceeded(Instant::now()), Some(Cause::Wall(WALL)));
    }

    #[tokio::test(start_paused = true)]
    async fn time_spent_waiting_for_people_is_not_the_agents() {
        let mut clock = Clock::new(WALL, IDLE, Instant::now());
        clock.set_waiting(true);
        tokio::time::advance(Duration::from_secs(5_000)).await;
        assert_eq!(clock.exceeded(Instant::now()), None);
        clock.set_waiting(true);
        clock.set_waiting(false);
        assert_eq!(clock.exceeded(Instant::now()), None);
        assert_eq!(clock.next(), Some(Instant::now() + IDLE));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_for_ever() {
        let mut clock = Clock::new(WALL, IDLE, Instant::now());
        // However it is divided: it is the sum that counts.
        for _ in 0..3 {
            clock.set_waiting(true);
            tokio::time::advance(PATIENCE / 4).await;
            assert_eq!(clock.exceeded(Instant::now()), None);
            clock.set_waiting(false);
        }
        clock.set_waiting(true);
        let due = clock.next().unwrap();
        assert_eq!(due, Instant::now() + PATIENCE / 4);
        tokio::time::advance(PATIENCE / 4).await;
        assert_eq!(clock.exceeded(Instant::now()), Some(Cause::Waited(PATIENCE)));
    }

    #[tokio::test(start_paused = true)]
    async fn once_it_is_over_no_limit_is_passed() {
        let mut clock = Clock::new(WALL, IDLE, Instant::now());
        clock.turn_off();
        tokio::time::advance(WALL * 2).await;
        assert_eq!((clock.next(), clock.exceeded(Instant::now())), (None, None));
    }
}

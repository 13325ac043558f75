//! Wall clock and signs of life.

use std::time::Duration;

use tokio::time::Instant;

use super::conclude::Cause;

/// How long the agent has had, not counting the time it waits for people.
#[derive(Debug)]
pub struct Clock {
    wall: Duration,
    idle: Duration,
    wall_end: Instant,
    last_sign: Instant,
    waiting_since: Option<Instant>,
}

impl Clock {
    pub fn new(wall: Duration, idle: Duration, now: Instant) -> Self {
        Clock { wall, idle, wall_end: now + wall, last_sign: now, waiting_since: None }
    }

    pub fn sign_of_life(&mut self) {
        self.last_sign = Instant::now();
    }

    /// Whether the agent waits for somebody else.
    pub fn set_waiting(&mut self, waiting: bool) {
        match (waiting, self.waiting_since) {
            (true, None) => self.waiting_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.wall_end += since.elapsed();
                self.last_sign = Instant::now();
                self.waiting_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// When there may be something to say.
    pub fn next(&self) -> Option<Instant> {
        match self.waiting_since {
            Some(_) => None,
            None => Some(self.wall_end.min(self.last_sign + self.idle)),
        }
    }

    /// The limit that was passed.
    pub fn exceeded(&self, now: Instant) -> Option<Cause> {
        if self.waiting_since.is_some() {
            None
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
        assert_eq!((clock.next(), clock.exceeded(Instant::now())), (None, None));
        clock.set_waiting(true);
        clock.set_waiting(false);
        assert_eq!(clock.exceeded(Instant::now()), None);
        assert_eq!(clock.next(), Some(Instant::now() + IDLE));
    }
}

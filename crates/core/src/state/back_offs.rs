//! Work that an overloaded provider did not get done. Each piece waits for a while
//! of its own, longer every time: an account is not closed for it, and those that
//! were turned away together do not come back together.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::event::Work;
use crate::ids::{AccountName, AgentId, SessionId};

/// The longest first wait, and the longest of all. A wait is at least half as long.
const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// All work that was turned away and has not been done since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BackOffs(Vec<BackOff>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackOff {
    /// The work, whichever attempt at it.
    pub work: Work,
    pub account: AccountName,
    /// How often it was turned away, one time after the other.
    pub times: u32,
    /// The end of its wait, until somebody has seen it.
    pub until: Option<Timestamp>,
}

impl BackOffs {
    /// Until when some work is not to be given to an account, if it still is so.
    pub fn of(&self, work: &Work, account: &AccountName, now: Timestamp) -> Option<Timestamp> {
        let found = self.0.iter().find(|it| it.is_of(work, account));
        found.and_then(|it| it.until).filter(|until| *until > now)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that wait.
    pub fn waiting(&self) -> impl Iterator<Item = (&BackOff, Timestamp)> {
        self.0.iter().filter_map(|it| Some((it, it.until?)))
    }

    pub(super) fn next_end(&self) -> Option<Timestamp> {
        self.waiting().map(|(_, until)| until).min()
    }

    /// Once more it was turned away.
    pub(super) fn turned_away(
        &mut self,
        work: &Work,
        account: &AccountName,
        now: Timestamp,
        chance: u64,
    ) {
        let known = self.0.iter().position(|it| it.is_of(work, account));
        let at = known.unwrap_or_else(|| {
            let (work, account) = (any_attempt(work), account.clone());
            self.0.push(BackOff { work, account, times: 0, until: None });
            self.0.len() - 1
        });
        let back_off = &mut self.0[at];
        back_off.times = back_off.times.saturating_add(1);
        let until = now.checked_add(wait(back_off.times, chance));
        back_off.until = Some(until.unwrap_or(Timestamp::MAX));
    }

    /// It came to another end with an account, which says nothing of the others.
    pub(super) fn got_through(&mut self, work: &Work, account: &AccountName) {
        self.0.retain(|it| !it.is_of(work, account));
    }

    /// It is done, whoever turned it away before.
    pub(super) fn done(&mut self, work: &Work) {
        let work = any_attempt(work);
        self.0.retain(|it| it.work != work);
    }

    /// Waits that are over; how many there were is kept.
    pub(super) fn end(&mut self, at: Timestamp) {
        for back_off in &mut self.0 {
            back_off.until = back_off.until.filter(|until| *until > at);
        }
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

impl BackOff {
    fn is_of(&self, work: &Work, account: &AccountName) -> bool {
        self.account == *account && self.work == any_attempt(work)
    }
}

/// The same work for every attempt at it.
fn any_attempt(work: &Work) -> Work {
    match work.clone() {
        Work::Develop { task, .. } => Work::Develop { task, attempt: 0 },
        Work::Validate { task, .. } => Work::Validate { task, attempt: 0 },
        other @ (Work::Plan | Work::Resolve { .. }) => other,
    }
}

/// How long to wait: twice as long as the time before, and of that between a half
/// and all.
fn wait(times: u32, chance: u64) -> SignedDuration {
    let doubled = 1_i32.checked_shl(times.saturating_sub(1)).filter(|factor| *factor > 0);
    let most = doubled.and_then(|factor| FIRST.checked_mul(factor)).unwrap_or(LONGEST).min(LONGEST);
    let half = most / 2;
    let part = u64::try_from(half.as_millis()).unwrap_or(0).max(1);
    half + SignedDuration::from_millis(i64::try_from(chance % part).unwrap_or(0))
}

/// A number that is the same each time the journal is read, and another one for
/// every agent of every session.
pub(super) fn chance(session: &SessionId, agent: &AgentId) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const STEP: u64 = 0x0000_0100_0000_01b3;
    let bytes = session.as_str().bytes().chain(agent.as_str().bytes());
    let mixed = bytes.fold(START, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(STEP));
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::ids::{Role, TaskId};

    #[test]
    fn each_wait_is_longer_than_the_one_before_up_to_the_longest() {
        let seconds = |times, chance| wait(times, chance).as_secs();
        for (times, least, most) in
            [(1, 5, 10), (2, 10, 20), (3, 20, 40), (5, 80, 160), (6, 150, 300), (40, 150, 300)]
        {
            assert_eq!(seconds(times, 0), least);
            for chance in 0..500 {
                let got = wait(times, chance * 7_919);
                assert!(got >= SignedDuration::from_secs(least), "{got:?}");
                assert!(got < SignedDuration::from_secs(most), "{got:?}");
            }
        }
    }

    #[test]
    fn those_that_were_turned_away_together_do_not_come_back_together() {
        let session = SessionId::new("ses-20260101-000000").unwrap();
        let other = SessionId::new("ses-20260101-000001").unwrap();
        let draw = |session: &SessionId, number| {
            let agent = AgentId::from_number(Role::Worker, number);
            wait(3, chance(session, &agent)).as_millis()
        };
        let waits: BTreeSet<i128> = (1..=20).map(|number| draw(&session, number)).collect();
        assert!(waits.len() > 18, "{waits:?}");
        let (first, last) = (waits.first().unwrap(), waits.last().unwrap());
        assert!(last - first > 10_000, "they are close together: {waits:?}");
        assert_ne!(draw(&session, 1), draw(&other, 1));
        assert_eq!(draw(&session, 1), draw(&session, 1));
    }

    #[test]
    fn a_wait_is_of_one_work_with_one_account_whichever_attempt() {
        let now = Timestamp::from_second(1_000).unwrap();
        let develop =
            |task: &str, attempt| Work::Develop { task: TaskId::new(task).unwrap(), attempt };
        let (main, other) = (AccountName::main(), AccountName::new("other").unwrap());
        let mut all = BackOffs::default();
        all.turned_away(&develop("task-001", 1), main, now, 0);
        let until = now + SignedDuration::from_secs(5);
        assert_eq!(all.of(&develop("task-001", 2), main, now), Some(until));
        assert_eq!(all.of(&develop("task-001", 2), main, until), None);
        assert_eq!(all.of(&develop("task-001", 2), &other, now), None);
        assert_eq!(all.of(&develop("task-002", 1), main, now), None);
        all.end(until);
        assert_eq!(all.next_end(), None);
        all.turned_away(&develop("task-001", 2), main, until, 0);
        assert_eq!(all.next_end(), Some(until + SignedDuration::from_secs(10)));
        all.got_through(&develop("task-001", 3), &other);
        assert!(!all.is_empty(), "another account has nothing to do with it");
        all.got_through(&develop("task-001", 3), main);
        assert!(all.is_empty());
        all.turned_away(&develop("task-001", 2), main, until, 0);
        all.done(&develop("task-001", 4));
        assert!(all.is_empty());
    }
}

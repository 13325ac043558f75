//! How an agent run ended, and what follows from that.
//!
//! An exit code of 0 says that the model stopped, nothing more. What the run
//! really came to is one of the outcomes here, established by the attempt
//! process and the orchestrator, and each has its own consequence.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::Oid;
use crate::plan::Plan;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// It did what its role is for, and left the result.
    Finished { product: Product },
    /// It stopped without a commit, or with commits that change nothing.
    NoOp,
    /// It stopped with changes it never committed.
    Uncommitted,
    /// It used up its turns.
    MaxTurns,
    /// It reached a spending limit: its own, or its share of the session's.
    BudgetSpent { limit: BudgetScope },
    /// The provider asked for a pause.
    RateLimited { until: Timestamp },
    /// The provider has too much to do just now, and said so with this status.
    Overloaded { status: u16 },
    /// It exceeded its wall-clock or idle time.
    TimedOut,
    /// Something ended it from outside.
    Killed { by: Killer },
    /// It broke: a non-zero exit, an API error, a lost connection.
    Crashed { detail: String },
    /// It did what the policy forbids; the work is kept aside.
    Violated { violations: Vec<String> },
    /// It finished, but what it returned cannot be used.
    Malformed { problems: Vec<String> },
}

/// What a finished run leaves, by role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Product {
    /// A planner's plan, already checked.
    Plan(Plan),
    /// A worker's last commit.
    Commit(Oid),
    /// A validator's judgement.
    Verdict(Verdict),
    /// A merger's resolution of a conflict.
    Resolution(Fold),
    /// A merger's report that the conflict is not safe to resolve.
    Unresolvable { report: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub pass: bool,
    pub notes: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<String>,
}

/// A changeset folded onto what it will land on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    /// The commit whose tree is checked and which lands.
    pub commit: Oid,
    /// Identifies the change itself, whatever it is folded onto: an approval
    /// stays good while this stays the same.
    pub patch: String,
    pub files: u32,
    pub insertions: u32,
    pub deletions: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    Agent,
    Session,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Killer {
    /// We stopped it, because the session stops.
    Us,
    /// The kernel, for memory.
    Memory,
    /// Anyone else.
    Other,
}

/// What a run that did not finish means for the work it was on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequence {
    pub counts: Counts,
    /// Whether the next attempt goes on from the unfinished work, or from a
    /// clean start.
    pub keep_work: bool,
    /// Whether another executor might do better.
    pub next_executor: bool,
    pub wait: Wait,
    /// For people, and for the agent that tries next.
    pub note: String,
}

/// Who has to wait before it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Nobody,
    /// Everybody who uses the same account.
    Account {
        until: Timestamp,
    },
    /// The same work, for a while that grows each time.
    Work,
}

/// Whether a run uses up one of the retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// It had its chance.
    Retry,
    /// It was not its fault; repeated too often it counts all the same.
    Free,
    /// It was our own doing.
    Never,
    /// It never ran, and there is something else to run instead.
    Unavailable,
    /// It never ran, and nothing else would have: its place was not fit.
    Unfit,
}

impl Outcome {
    /// The consequence of a run that did not finish; `None` if it did.
    pub fn consequence(&self) -> Option<Consequence> {
        let plain = |counts, keep_work, note: String| Consequence {
            counts,
            keep_work,
            next_executor: false,
            wait: Wait::Nobody,
            note,
        };
        let consequence = match self {
            Outcome::Finished { .. } => return None,
            Outcome::NoOp => {
                plain(Counts::Retry, false, "stopped without changing anything".into())
            }
            Outcome::Uncommitted => plain(
                Counts::Retry,
                true,
                "stopped with uncommitted changes; they are in place again, commit them".into(),
            ),
            Outcome::MaxTurns => {
                plain(Counts::Retry, true, "ran out of turns before it was done".into())
            }
            Outcome::BudgetSpent { limit: BudgetScope::Agent } => {
                plain(Counts::Retry, true, "reached its own budget before it was done".into())
            }
            Outcome::BudgetSpent { limit: BudgetScope::Session } => {
                plain(Counts::Never, true, "stopped because the session's budget ran out".into())
            }
            Outcome::RateLimited { until } => Consequence {
                wait: Wait::Account { until: *until },
                ..plain(Counts::Free, true, "stopped by a limit of the provider".into())
            },
            Outcome::Overloaded { status } => Consequence {
                wait: Wait::Work,
                ..plain(Counts::Free, true, format!("the provider was overloaded ({status})"))
            },
            Outcome::TimedOut => plain(Counts::Retry, true, "ran out of time".into()),
            Outcome::Killed { by: Killer::Us } => {
                plain(Counts::Never, true, "stopped together with the session".into())
            }
            Outcome::Killed { by: Killer::Memory } => {
                plain(Counts::Retry, true, "killed because it used too much memory".into())
            }
            Outcome::Killed { by: Killer::Other } => {
                plain(Counts::Free, true, "killed from outside".into())
            }
            Outcome::Crashed { detail } => Consequence {
                next_executor: true,
                ..plain(Counts::Retry, true, format!("crashed: {detail}"))
            },
            Outcome::Violated { violations } => plain(
                Counts::Retry,
                false,
                format!("broke the rules, its work was set aside: {}", violations.join("; ")),
            ),
            Outcome::Malformed { problems } => plain(
                Counts::Retry,
                false,
                format!("returned something unusable: {}", problems.join("; ")),
            ),
        };
        Some(consequence)
    }

    /// One word for lists and counts.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Finished { .. } => "finished",
            Outcome::NoOp => "no-op",
            Outcome::Uncommitted => "uncommitted",
            Outcome::MaxTurns => "max-turns",
            Outcome::BudgetSpent { .. } => "budget",
            Outcome::RateLimited { .. } => "rate-limited",
            Outcome::Overloaded { .. } => "overloaded",
            Outcome::TimedOut => "timed-out",
            Outcome::Killed { .. } => "killed",
            Outcome::Crashed { .. } => "crashed",
            Outcome::Violated { .. } => "violated",
            Outcome::Malformed { .. } => "malformed",
        }
    }
}

/// What a worker that stopped by itself left in its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBehind {
    /// The last commit of its branch.
    pub head: Oid,
    /// How many commits are new.
    pub commits: usize,
    /// Whether the new commits together change anything.
    pub tree_changed: bool,
    /// Whether there are changes that are in no commit.
    pub uncommitted: bool,
    /// Whether it was allowed to commit some of these.
    pub forgotten: bool,
}

impl LeftBehind {
    /// What the run came to. Commits that change something are a result, also
    /// if files were left lying around them that could never be a part of it,
    /// such as what a build leaves. Anything else that is in no commit may be
    /// the half of the work that was forgotten.
    pub fn outcome(self) -> Outcome {
        if self.forgotten {
            Outcome::Uncommitted
        } else if self.commits > 0 && self.tree_changed {
            Outcome::Finished { product: Product::Commit(self.head) }
        } else if self.uncommitted {
            Outcome::Uncommitted
        } else {
            Outcome::NoOp
        }
    }
}

/// How often something may be repeated without fault of its own before the
/// repetition counts as a failure: nothing goes round for ever.
pub const FREE_RERUNS: u32 = 5;

/// What was tried already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub retries: u32,
    pub free_reruns: u32,
}

/// Whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    Retry,
    GiveUp,
}

impl Tally {
    /// Counts a run that did not finish and says whether another may follow.
    pub fn count(&mut self, counts: Counts, max_retries: u32) -> Next {
        let counts = match counts {
            Counts::Free if self.free_reruns >= FREE_RERUNS => Counts::Retry,
            Counts::Unfit => Counts::Retry,
            counts => counts,
        };
        match counts {
            Counts::Never | Counts::Unavailable => Next::Retry,
            Counts::Free => {
                self.free_reruns += 1;
                Next::Retry
            }
            Counts::Retry if self.retries < max_retries => {
                self.retries += 1;
                Next::Retry
            }
            Counts::Retry | Counts::Unfit => Next::GiveUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_run_out_and_free_reruns_end_up_counting() {
        let mut tally = Tally::default();
        assert_eq!(tally.count(Counts::Retry, 2), Next::Retry);
        assert_eq!(tally.count(Counts::Retry, 2), Next::Retry);
        assert_eq!(tally.count(Counts::Retry, 2), Next::GiveUp);

        let mut tally = Tally::default();
        for _ in 0..FREE_RERUNS {
            assert_eq!(tally.count(Counts::Free, 1), Next::Retry);
            assert_eq!(tally.retries, 0);
        }
        assert_eq!(tally.count(Counts::Free, 1), Next::Retry);
        assert_eq!(tally.retries, 1);
        assert_eq!(tally.count(Counts::Free, 1), Next::GiveUp);
        assert_eq!(tally.count(Counts::Never, 1), Next::Retry);
    }

    #[test]
    fn what_a_worker_left_behind_decides_what_its_run_came_to() {
        let head = Oid::new("1".repeat(40)).unwrap();
        let finished = Outcome::Finished { product: Product::Commit(head.clone()) };
        for (commits, tree_changed, uncommitted, forgotten, outcome) in [
            (0, false, false, false, Outcome::NoOp),
            (0, false, true, false, Outcome::Uncommitted),
            (0, false, true, true, Outcome::Uncommitted),
            (2, false, false, false, Outcome::NoOp),
            (2, false, true, true, Outcome::Uncommitted),
            (1, true, false, false, finished.clone()),
            (1, true, true, false, finished),
            (1, true, true, true, Outcome::Uncommitted),
        ] {
            let head = head.clone();
            let left = LeftBehind { head, commits, tree_changed, uncommitted, forgotten };
            assert_eq!(left.clone().outcome(), outcome, "{left:?}");
        }
    }

    /// One row for each outcome of the taxonomy: what it costs, where the
    /// next attempt starts, who runs it.
    #[test]
    fn every_outcome_has_its_own_consequence() {
        let until = Timestamp::from_second(1_000).unwrap();
        let rows = [
            (Outcome::NoOp, Counts::Retry, false, false),
            (Outcome::Uncommitted, Counts::Retry, true, false),
            (Outcome::MaxTurns, Counts::Retry, true, false),
            (Outcome::BudgetSpent { limit: BudgetScope::Agent }, Counts::Retry, true, false),
            (Outcome::BudgetSpent { limit: BudgetScope::Session }, Counts::Never, true, false),
            (Outcome::RateLimited { until }, Counts::Free, true, false),
            (Outcome::Overloaded { status: 529 }, Counts::Free, true, false),
            (Outcome::TimedOut, Counts::Retry, true, false),
            (Outcome::Killed { by: Killer::Us }, Counts::Never, true, false),
            (Outcome::Killed { by: Killer::Memory }, Counts::Retry, true, false),
            (Outcome::Killed { by: Killer::Other }, Counts::Free, true, false),
            (Outcome::Crashed { detail: "x".into() }, Counts::Retry, true, true),
            (Outcome::Violated { violations: vec!["x".into()] }, Counts::Retry, false, false),
            (Outcome::Malformed { problems: vec!["x".into()] }, Counts::Retry, false, false),
        ];
        for (outcome, counts, keep_work, next_executor) in rows {
            let got = outcome.consequence().unwrap();
            assert_eq!(
                (got.counts, got.keep_work, got.next_executor),
                (counts, keep_work, next_executor),
                "{}",
                outcome.name()
            );
            let wait = match outcome {
                Outcome::RateLimited { until } => Wait::Account { until },
                Outcome::Overloaded { .. } => Wait::Work,
                _ => Wait::Nobody,
            };
            assert_eq!(got.wait, wait);
            assert!(!got.note.is_empty());
        }
        let product = Product::Commit(Oid::new("0".repeat(40)).unwrap());
        assert_eq!(Outcome::Finished { product }.consequence(), None);
    }
}

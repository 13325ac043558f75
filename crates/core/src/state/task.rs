//! One task and where it stands.

use jiff::Timestamp;
use serde::Serialize;

use crate::ids::{AgentId, ChangesetId, Oid, TaskId};
use crate::money::Spend;
use crate::outcome::Tally;
use crate::plan::TaskSpec;

/// Where a task stands. Each phase owns what is known in it and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waiting for its dependencies, for its files, or for a free agent.
    Pending,
    /// Sent back; it takes part again from the next cycle on.
    Requeued,
    Working {
        agent: AgentId,
    },
    /// Its worker finished; nobody has looked at the result yet.
    Built {
        commit: Oid,
    },
    /// The mechanical post-check looks at it.
    Inspecting {
        commit: Oid,
    },
    /// Done by the rules; others may build on it.
    Done {
        commit: Oid,
    },
    /// Its acceptance commands run on a clean checkout.
    Accepting {
        commit: Oid,
    },
    Accepted {
        commit: Oid,
    },
    Validating {
        commit: Oid,
        agent: AgentId,
    },
    /// The validator failed it: a person decides.
    Disputed {
        commit: Oid,
        notes: String,
    },
    /// The validator itself failed, more than once: a person decides.
    Unjudged {
        commit: Oid,
    },
    Validated {
        commit: Oid,
        by: Judge,
    },
    Merged {
        changeset: ChangesetId,
        commit: Oid,
    },
    Failed {
        reason: String,
    },
    /// Something that it needs failed or was dropped.
    Blocked {
        by: TaskId,
    },
    Dropped {
        why: Dropped,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dropped {
    ByPerson,
    /// A later plan does without it.
    Replanned,
}

/// Who found the work good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    Validator,
    /// No validator could say, and the person took it.
    Person,
}

/// The queue a task stands in: its phase without the details, with waiting
/// tasks split by whether everything they need is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Waiting,
    Ready,
    Requeued,
    Working,
    Built,
    Inspecting,
    Done,
    Accepting,
    Accepted,
    Validating,
    Disputed,
    Unjudged,
    Validated,
    Merged,
    Failed,
    Blocked,
    Dropped,
    /// Dropped because a later plan does without it: no longer anyone's work.
    Replaced,
}

impl Step {
    pub const COUNT: usize = Step::Replaced as usize + 1;
}

impl Phase {
    /// The commit of the work in hand, from the worker's end to the landing.
    pub fn commit(&self) -> Option<&Oid> {
        match self {
            Phase::Built { commit }
            | Phase::Inspecting { commit }
            | Phase::Done { commit }
            | Phase::Accepting { commit }
            | Phase::Accepted { commit }
            | Phase::Validating { commit, .. }
            | Phase::Disputed { commit, .. }
            | Phase::Unjudged { commit }
            | Phase::Validated { commit, .. }
            | Phase::Merged { commit, .. } => Some(commit),
            Phase::Pending
            | Phase::Requeued
            | Phase::Working { .. }
            | Phase::Failed { .. }
            | Phase::Blocked { .. }
            | Phase::Dropped { .. } => None,
        }
    }

    /// Whether dependents have to give up on this task for now.
    pub fn is_hopeless(&self) -> bool {
        matches!(self, Phase::Failed { .. } | Phase::Blocked { .. } | Phase::Dropped { .. })
    }

    pub fn step(&self, everything_met: bool) -> Step {
        match self {
            Phase::Pending if everything_met => Step::Ready,
            Phase::Pending => Step::Waiting,
            Phase::Requeued => Step::Requeued,
            Phase::Working { .. } => Step::Working,
            Phase::Built { .. } => Step::Built,
            Phase::Inspecting { .. } => Step::Inspecting,
            Phase::Done { .. } => Step::Done,
            Phase::Accepting { .. } => Step::Accepting,
            Phase::Accepted { .. } => Step::Accepted,
            Phase::Validating { .. } => Step::Validating,
            Phase::Disputed { .. } => Step::Disputed,
            Phase::Unjudged { .. } => Step::Unjudged,
            Phase::Validated { .. } => Step::Validated,
            Phase::Merged { .. } => Step::Merged,
            Phase::Failed { .. } => Step::Failed,
            Phase::Blocked { .. } => Step::Blocked,
            Phase::Dropped { why: Dropped::ByPerson } => Step::Dropped,
            Phase::Dropped { why: Dropped::Replanned } => Step::Replaced,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    pub spec: TaskSpec,
    pub phase: Phase,
    /// Attempts begun so far; the next one gets the number after this.
    pub attempts: u32,
    /// What the workers used up since the task was planned or sent back by a
    /// person.
    pub tally: Tally,
    /// The same for the validators of the work in hand.
    pub validator_tally: Tally,
    /// How many executors were found wanting, as workers and as validators.
    pub executors_failed: usize,
    pub validators_failed: usize,
    /// Unfinished work that the next attempt goes on from.
    pub snapshot: Option<Oid>,
    /// The worker of the last attempt and what it cost.
    pub last_worker: Option<(AgentId, Spend)>,
    pub history: History,
    /// How many of its dependencies are not there yet.
    #[serde(skip)]
    pub(super) unmet: usize,
    /// How many of them failed, are blocked or were dropped.
    #[serde(skip)]
    pub(super) hopeless_needs: usize,
    /// Whether its own dependents may build on it.
    #[serde(skip)]
    pub(super) met: bool,
}

impl Task {
    pub fn new(spec: TaskSpec) -> Self {
        Task {
            spec,
            phase: Phase::Pending,
            attempts: 0,
            tally: Tally::default(),
            validator_tally: Tally::default(),
            executors_failed: 0,
            validators_failed: 0,
            snapshot: None,
            last_worker: None,
            history: History::default(),
            unmet: 0,
            hopeless_needs: 0,
            met: false,
        }
    }

    /// What was tried before no longer counts: the task, or what it is built
    /// on, is not the same any more.
    pub(super) fn start_afresh(&mut self) {
        self.tally = Tally::default();
        self.executors_failed = 0;
        self.forget_validators();
    }

    /// New work, or a person's word, gives validators a fresh start.
    pub(super) fn forget_validators(&mut self) {
        self.validator_tally = Tally::default();
        self.validators_failed = 0;
    }

    /// Whether what it is built on is being done again.
    pub fn is_doomed(&self) -> bool {
        self.unmet > 0
    }

    pub fn step(&self) -> Step {
        self.phase.step(self.unmet == 0)
    }
}

/// What became of earlier attempts: told to the next agent, so it is kept
/// short however often a task comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    entries: Vec<HistoryEntry>,
    /// Entries that made room for newer ones.
    forgotten: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryEntry {
    pub attempt: u32,
    /// The worker of that attempt and what it cost.
    pub agent: Option<AgentId>,
    pub spend: Spend,
    pub at: Timestamp,
    pub result: HistoryResult,
    pub notes: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryResult {
    Failed,
    /// Its work was sound, but what it was built on is done again.
    Superseded,
    AcceptanceFailed,
    ValidationFailed,
    /// The merged tree failed its check because of this task.
    VerifyFailed,
    Conflicted,
    Rejected,
}

impl History {
    pub const LONGEST: usize = 10;
    pub const LONGEST_NOTE: usize = 2_000;

    pub fn add(&mut self, entry: HistoryEntry) {
        if self.entries.len() == Self::LONGEST {
            self.entries.remove(0);
            self.forgotten += 1;
        }
        let notes = clipped(entry.notes);
        self.entries.push(HistoryEntry { notes, ..entry });
    }

    pub fn entries(&self) -> &[HistoryEntry] {
        &self.entries
    }

    pub fn forgotten(&self) -> u32 {
        self.forgotten
    }
}

/// A note cut to a bearable length, never inside a character.
pub(super) fn clipped(mut note: String) -> String {
    if note.len() > History::LONGEST_NOTE {
        let end = (0..=History::LONGEST_NOTE).rev().find(|&at| note.is_char_boundary(at));
        note.truncate(end.unwrap_or(0));
        note.push_str(" [...]");
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed row 47: history is bounded in entries and in length.
    #[test]
    fn history_stays_short_however_often_a_task_comes_back() {
        let mut history = History::default();
        for attempt in 1..=25 {
            history.add(HistoryEntry {
                attempt,
                agent: None,
                spend: Spend::default(),
                at: Timestamp::UNIX_EPOCH,
                result: HistoryResult::Rejected,
                notes: "é".repeat(5_000),
            });
        }
        assert_eq!(history.entries().len(), History::LONGEST);
        assert_eq!(history.forgotten(), 15);
        assert_eq!(history.entries().first().map(|entry| entry.attempt), Some(16));
        assert!(history.entries().iter().all(|entry| entry.notes.len() < 2_100));
    }
}

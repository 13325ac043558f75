//! How far a decisions file has been used.
//!
//! A session that is resumed with the same file goes on in it: nobody answers a
//! question twice, and a list of answers means the same however often the
//! orchestrator was killed. Another file begins at its top. The journal has the
//! answers that were given; the bookmark says which file they were from, and
//! since when.

use std::fs;

use blueflame_core::event::Event;
use blueflame_core::gate::Gate;
use blueflame_core::ids::GroupName;
use blueflame_core::state::State;
use serde::{Deserialize, Serialize};

use super::{Decisions, Queue};
use crate::atomic_file::{self, Durability};
use crate::failure::{Failure, Kind};
use crate::history;
use crate::store::SessionDir;

#[derive(Debug, Serialize, Deserialize)]
struct Bookmark {
    /// Identifies what the file says.
    file: String,
    /// The first record whose answers may be from it.
    from: u64,
}

impl Decisions {
    /// Opens the file where this session has got to in it.
    pub fn open_in(&mut self, session: &SessionDir) -> Result<(), Failure> {
        let path = session.path().join("decisions.json");
        let file = blake3::hash(&self.bytes).to_hex().to_string();
        let known: Option<Bookmark> =
            fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(bookmark) = known.filter(|it| it.file == file) {
            history::fold(&session.journal(), None, |moment| {
                if let Event::GateAnswered { gate, .. } = moment.event
                    && moment.record.seq >= bookmark.from
                {
                    let group = moment.before.and_then(|state| group_of(state, gate));
                    self.pass_over(gate, group);
                }
            })?;
            return Ok(());
        }
        let from = history::fold(&session.journal(), None, |_| {})?.last + 1;
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Kind::Internal, format!("`{}`: {error}", path.display()))
        };
        let bytes = serde_json::to_vec(&Bookmark { file, from }).map_err(|error| failed(&error))?;
        atomic_file::replace(&path, &bytes, Durability::Power).map_err(|error| failed(&error))
    }

    /// One answer to this question was given already.
    fn pass_over(&mut self, gate: &Gate, group: Option<&GroupName>) {
        match gate {
            Gate::Plan => skip(&mut self.plan),
            Gate::Changeset(_) => {
                let own = group.and_then(|group| self.changesets.get_mut(group));
                match (own, &mut self.any_changeset, group) {
                    (Some(queue), _, _) => {
                        queue.next();
                    }
                    (None, Some(any), Some(group)) => {
                        any.next(group);
                    }
                    (None, _, _) => {}
                }
            }
            Gate::Session => skip(&mut self.session),
            Gate::ValidationFailed(_) => skip(&mut self.validation_failed),
            Gate::ValidatorFailed(_) => skip(&mut self.validator_failed),
            Gate::Budget => skip(&mut self.budget),
        }
    }
}

fn skip<T>(queue: &mut Option<Queue<T>>) {
    if let Some(queue) = queue {
        queue.next();
    }
}

fn group_of<'s>(state: &'s State, gate: &Gate) -> Option<&'s GroupName> {
    let Gate::Changeset(id) = gate else { return None };
    state.merging.get(id).map(|changeset| &changeset.planned.group)
}

//! Pauses that providers asked for. One is for everybody who uses the account.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::ids::AccountName;

/// The end of each pause, by account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pauses(BTreeMap<AccountName, Timestamp>);

impl Pauses {
    /// Until when an account is to be left alone, if it still is.
    pub fn of(&self, account: &AccountName, now: Timestamp) -> Option<Timestamp> {
        self.0.get(account).copied().filter(|until| *until > now)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that nobody has seen the end of.
    pub fn iter(&self) -> impl Iterator<Item = (&AccountName, Timestamp)> {
        self.0.iter().map(|(account, until)| (account, *until))
    }

    /// When the first of them ends.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.0.values().min().copied()
    }

    /// The longest pause of an account holds.
    pub(super) fn prolong(&mut self, account: &AccountName, until: Timestamp) {
        let end = self.0.entry(account.clone()).or_insert(until);
        *end = (*end).max(until);
    }

    pub(super) fn end(&mut self, at: Timestamp) {
        self.0.retain(|_, until| *until > at);
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

//! What a gateway tells the process that runs it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use blueflame_core::money::Spend;
use jiff::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::refusal::Refusal;

/// Something that happened at the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// What all requests have cost so far. It only grows.
    Usage { spend: Spend },
    /// A request waits for a larger grant.
    GrantWanted { spend: Spend },
    /// No request waits for a grant any more: it came, or whoever waited hung
    /// up or was refused.
    GrantNotWanted,
    /// The provider wants a pause. The time is missing if it named none.
    ProviderLimited { status: u16, until: Option<Timestamp> },
    /// The provider answered with an error.
    ProviderFailed { status: u16 },
    /// A request was turned away.
    Refused { why: Refusal },
    /// The agent asks again and again; from now on it is refused.
    Loop { why: Refusal },
    /// The provider could not be reached, failed, or broke off.
    UpstreamFailed { why: String },
}

/// The same kind of refusal is told this many times at most: whoever hammers
/// on the gateway must not fill its memory with facts.
const MOST_OF_A_KIND: u32 = 64;

/// Where facts go.
#[derive(Debug)]
pub(crate) struct Facts {
    sender: UnboundedSender<Fact>,
    refused: Mutex<BTreeMap<&'static str, u32>>,
}

impl Facts {
    pub(crate) fn channel() -> (Facts, UnboundedReceiver<Fact>) {
        let (sender, receiver) = unbounded_channel();
        (Facts { sender, refused: Mutex::default() }, receiver)
    }

    /// Nobody has to listen.
    pub(crate) fn tell(&self, fact: Fact) {
        if let Fact::Refused { why } = &fact {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            let count = refused.entry(why.kind()).or_default();
            *count = count.saturating_add(1);
            if *count > MOST_OF_A_KIND {
                return;
            }
        }
        let _ = self.sender.send(fact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hammering_does_not_fill_the_memory() {
        let (facts, mut received) = Facts::channel();
        for _ in 0..10_000 {
            facts.tell(Fact::Refused { why: Refusal::BadToken });
        }
        facts.tell(Fact::Refused { why: Refusal::Stopped { why: "x".to_owned() } });
        let mut told = 0;
        while received.try_recv().is_ok() {
            told += 1;
        }
        assert_eq!(told, MOST_OF_A_KIND + 1);
    }
}

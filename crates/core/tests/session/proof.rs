//! What was proven of the boundaries is known from the start of a session on.

use blueflame_core::event::Event;
use blueflame_core::proof::{Circumstances, Proof};
use blueflame_core::state::State;
use jiff::Timestamp;

use crate::story::Story;
use crate::words::{rules, task};

fn proof(tried: u32, stopped: u32) -> Proof {
    Proof {
        at: Timestamp::UNIX_EPOCH,
        under: Circumstances {
            program: "0.1.0".into(),
            machine: "here, Linux".into(),
            sandbox: "namespaces".into(),
            executors: [].into(),
        },
        tried,
        stopped,
        open: Vec::new(),
    }
}

#[test]
fn a_proof_is_told_at_the_start_and_never_later() {
    let mut story = Story::begin(rules(), [task("a")]);
    let (at, first) = story.journal[0].clone();
    let mut state = State::begin(at, &first).unwrap();
    let outdated = vec!["claude was 1.0.0 and is 2.0.0".to_owned()];
    let proven = Event::SessionProven { proof: proof(3, 2), outdated: outdated.clone() };
    state.apply(at, &proven).unwrap();
    let known = state.proven.clone().unwrap();
    assert_eq!((known.proof, known.outdated), (proof(3, 2), outdated));
    assert!(state.apply(at, &proven).is_err(), "it was told twice");
    let why = "a proof is known when the session begins, or not at all";
    assert_eq!(story.refuses(&proven), why);
    let mut state = State::begin(at, &first).unwrap();
    let impossible = Event::SessionProven { proof: proof(2, 3), outdated: Vec::new() };
    assert!(state.apply(at, &impossible).is_err(), "more was stopped than was tried");
}

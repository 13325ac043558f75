//! The list of planted bugs fits the code it is about.
//!
//! Whether the tests notice the bugs takes long to find out; the program
//! `planted_bugs` does that, and leaves out this file, whose tests would
//! "notice" every bug.

use std::collections::BTreeSet;

use blueflame_testkit::planted::{self, Bug};

fn bugs() -> Vec<Bug> {
    let list = planted::workspace().join(planted::LIST);
    let text = std::fs::read_to_string(&list).expect("the list is in the repository");
    planted::read(&text).expect("the list can be read")
}

#[test]
fn planted_bugs_each_have_exactly_one_place() {
    for bug in bugs() {
        let file = planted::workspace().join(&bug.file);
        let text = std::fs::read_to_string(&file).expect("the file of a bug exists");
        match bug.plant(&text) {
            Ok(with_bug) => assert_ne!(with_bug, text, "{} changes nothing", bug.name),
            Err(places) => {
                panic!("`find` of {} occurs {places} times in {}", bug.name, file.display())
            }
        }
    }
}

#[test]
fn planted_bugs_are_many_and_each_has_its_own_name_and_reason() {
    let bugs = bugs();
    let names: BTreeSet<&str> = bugs.iter().map(|bug| bug.name.as_str()).collect();
    assert_eq!(names.len(), bugs.len(), "two bugs have the same name");
    assert!(bugs.len() >= 26, "only {} bugs", bugs.len());
    assert!(bugs.iter().all(|bug| !bug.why.is_empty()));
}

//! A disk that is full, by way of a limit on the size of files: the system then
//! really writes a part and fails, as it does on a full disk.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use blueflame::journal::Writer;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::child::{Role, say};
use crate::sample::{Sample, at, journal, read_all};

/// Files of this process cannot grow beyond `bytes` from here on.
fn limit(bytes: u64) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum }).unwrap();
}

/// Starts a role that gets an error, and not a signal, at its limit.
fn start_limited(role: &str, path: &Path) -> Role {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    shell.arg(std::env::current_exe().unwrap());
    Role::start_as(shell, role, path)
}

/// The role: has room for a record and a half, and tries to write three.
pub fn write_with_a_limit(path: &Path) {
    let mut writer = Writer::open(path, |_| Ok(())).unwrap().writer;
    limit(writer.head().end + 450);
    for _ in 0..3 {
        let seq = writer.head().seq + 1;
        let event = Sample::Blocked("x".repeat(150));
        match writer.append(&[(at(seq), &event)]) {
            Ok(_) => say("written"),
            Err(error) => say(&error.to_string()),
        }
    }
}

#[test]
fn an_append_that_does_not_fit_leaves_whole_records_and_a_stopped_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    journal(&path, 4);
    let mut role = start_limited("write-limited", &path);
    assert_eq!(role.hear().unwrap(), "written");
    let failed = format!("cannot write `{}`: File too large (os error 27)", path.display());
    assert_eq!(role.hear().unwrap(), failed);
    let stopped = "nothing more can be written to";
    let reason = format!("an earlier error stopped it: {failed}");
    assert_eq!(role.hear().unwrap(), format!("{stopped} `{}`, {reason}", path.display()));
    role.dismiss();

    assert_eq!(read_all(&path).len(), 4, "the acknowledged record, and no part of the other");
    assert_eq!(Writer::open(&path, |_| Ok(())).unwrap().repair, None);
}

/// The role: opens a journal whose torn tail is larger than any new file may be.
pub fn open_with_a_limit(path: &Path) {
    limit(1000);
    match Writer::open(path, |_| Ok(())) {
        Ok(opened) => say(&format!("repaired: {:?}", opened.repair)),
        Err(error) => say(&error.to_string()),
    }
}

#[test]
fn a_tail_that_cannot_be_kept_aside_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    journal(&path, 4);
    OpenOptions::new().append(true).open(&path).unwrap().write_all(&[b'x'; 4000]).unwrap();
    let before = fs::read(&path).unwrap();

    let mut role = start_limited("open-limited", &path);
    let refused = role.hear().unwrap();
    role.dismiss();
    let start = "the 4000 unfinished bytes at the end of";
    assert!(refused.starts_with(start), "{refused}");
    assert!(refused.ends_with("File too large (os error 27)"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a part of the copy was left");

    // With room again, nothing is in the way.
    assert_eq!(Writer::open(&path, |_| Ok(())).unwrap().repair.unwrap().bytes, 4000);
}

//! What git says when it would not do something with what an agent left, and whose fault
//! that is. An agent that could have its own ruins taken for the machine's would bring the
//! session to a halt.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use super::error::HarvestError;
use crate::git::Answer;

/// What git says when the machine lets it down. Whatever else keeps it from
/// taking work over is in what the agent left.
const OF_THE_MACHINE: [&str; 7] = [
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Read-only file system",
    "Too many open files",
    "Cannot allocate memory",
    "Resource temporarily unavailable",
];

/// By these somebody ends a process, or the kernel does that runs out of memory. By all
/// others it ends because of what it reads.
const ENDED: [i32; 4] = [libc::SIGKILL, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    message: String,
    cut_off: bool,
}

impl Complaint {
    pub(super) fn of(answer: &Answer) -> Complaint {
        let said = String::from_utf8_lossy(&answer.stderr);
        let end = answer.status.signal().map(|_| answer.status.to_string()).unwrap_or_default();
        let message = format!("{}\n{end}", said.trim()).trim().to_owned();
        Complaint { message, cut_off: was_ended(answer.status) }
    }

    /// Of ours.
    pub(super) fn new(message: String) -> Complaint {
        Complaint { message, cut_off: false }
    }

    /// Two that complain about the same.
    pub(super) fn and(self, other: &Complaint) -> Complaint {
        let message = format!("{}\n{}", self.message, other.message).trim().to_owned();
        Complaint { message, cut_off: self.cut_off || other.cut_off }
    }

    /// What becomes of the branch, or of whatever else it is about.
    pub(super) fn about(self, branch: &str) -> HarvestError {
        let (branch, message) = (branch.to_owned(), self.message);
        if self.cut_off || message.lines().any(is_of_the_machine) {
            HarvestError::NotTaken { branch, message }
        } else {
            HarvestError::Refused { branch, message }
        }
    }
}

fn was_ended(status: ExitStatus) -> bool {
    status.signal().is_some_and(|signal| ENDED.contains(&signal))
}

/// Whether a line of git tells that the machine let it down. The agent's own words may be
/// in it as well: lines of its files, and names that it made up.
fn is_of_the_machine(line: &str) -> bool {
    let serious = line.starts_with("fatal: ") || line.starts_with("error: ");
    let about_an_object = line.starts_with("error: object ");
    let quotes = ["unexpected line in ", "unterminated line in ", "broken name "];
    let quotes = about_an_object || quotes.iter().any(|words| line.contains(words));
    serious && !quotes && OF_THE_MACHINE.iter().any(|words| line.ends_with(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_ended_is_told_from_whoever_crashes() {
        for (status, ended) in [
            (libc::SIGKILL, true),
            (libc::SIGTERM, true),
            (libc::SIGSEGV, false),
            (libc::SIGBUS, false),
            (libc::SIGABRT, false),
            (128 << 8, false),
        ] {
            assert_eq!(was_ended(ExitStatus::from_raw(status)), ended, "{status}");
        }
    }

    #[test]
    fn words_of_the_machine_are_told_from_words_of_the_agent() {
        for (line, of_the_machine) in [
            ("fatal: write error: No space left on device", true),
            ("fatal: unable to create thread: Resource temporarily unavailable", true),
            ("error: unable to write file .git/objects/aa/bb: Disk quota exceeded", true),
            ("error: cannot fork() for index-pack: Cannot allocate memory", true),
            ("fatal: unexpected line in .git/packed-refs: No space left on device", false),
            ("fatal: unterminated line in .git/packed-refs: Input/output error", false),
            ("warning: ignoring ref with broken name refs/x: No space left on device", false),
            (
                "error: object 526d8d81: gitmodulesUrl: disallowed submodule url: -x: \
                 No space left on device",
                false,
            ),
            ("fatal: bad object HEAD", false),
        ] {
            assert_eq!(is_of_the_machine(line), of_the_machine, "{line}");
        }
    }
}

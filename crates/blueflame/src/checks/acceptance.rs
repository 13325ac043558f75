//! Acceptance: the project's own commands on a clean checkout of the work.

use std::time::Duration;

use tokio::sync::watch;

use super::checkout::CleanCheckout;
use super::command::{self, CommandExit, CommandResult, Order, Surroundings};
use crate::narrate::plain;

/// How many lines of output a failure is told with, and how long one may be.
const LAST_LINES: usize = 20;
const LONGEST_LINE: usize = 300;

/// Runs commands one after the other in a clean checkout. A failure does not
/// keep the rest from being run, so that an agent hears of everything that is
/// wrong at once; only a session that stops does.
pub async fn run_acceptance(
    checkout: &CleanCheckout,
    commands: &[String],
    timeout: Duration,
    surroundings: &Surroundings,
    stop: &mut watch::Receiver<bool>,
) -> Vec<CommandResult> {
    let mut results = Vec::new();
    for command in commands {
        let order = Order { command, directory: checkout.directory(), timeout, keep: None };
        let result = command::run(order, surroundings, stop).await;
        let stopped = result.exit == CommandExit::Stopped;
        results.push(result);
        if stopped {
            break;
        }
    }
    results
}

/// What went wrong, for the journal and for the next attempt: the command, how
/// it ended, and the end of its output.
pub fn failures(results: &[CommandResult]) -> Vec<String> {
    results.iter().filter(|result| !result.passed()).map(failure).collect()
}

fn failure(result: &CommandResult) -> String {
    let mut text = format!("`{}` {}", plain(&result.command), result.exit);
    let lines: Vec<&str> = result.output.trim_end().lines().collect();
    let shown = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if !shown.is_empty() {
        text.push(':');
    }
    for line in shown {
        text.push_str("\n  ");
        text.push_str(&shortened(&plain(line)));
    }
    text
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(exit: CommandExit, output: &str) -> CommandResult {
        let took = Duration::from_secs(1);
        CommandResult { command: "make test".to_owned(), exit, output: output.to_owned(), took }
    }

    #[test]
    fn a_failure_tells_the_command_its_exit_and_the_end_of_its_output() {
        for (exit, output, expected) in [
            (CommandExit::Passed, "fine\n", None),
            (CommandExit::Failed { code: 2 }, "", Some("`make test` failed with exit code 2")),
            (
                CommandExit::Failed { code: 1 },
                "a\n\u{1b}[31mb\n\n",
                Some("`make test` failed with exit code 1:\n  a\n  \\u{1b}[31mb"),
            ),
            (CommandExit::Killed { signal: 9 }, "", Some("`make test` was ended by signal 9")),
            (
                CommandExit::TimedOut { after: Duration::from_millis(1500) },
                "",
                Some("`make test` took longer than 1.5 s and was stopped"),
            ),
            (
                CommandExit::NotStarted { why: "no shell".to_owned() },
                "",
                Some("`make test` could not be run: no shell"),
            ),
        ] {
            let told = failures(&[result(exit.clone(), output)]);
            assert_eq!(told.first().map(String::as_str), expected, "{exit:?}");
        }
    }

    #[test]
    fn a_failure_stays_short() {
        let output = "x".repeat(1_000).replace('x', &format!("{}\n", "é".repeat(1_000)));
        let told = &failures(&[result(CommandExit::Failed { code: 1 }, &output)])[0];
        assert_eq!(told.lines().count(), 1 + LAST_LINES);
        assert!(told.lines().all(|line| line.chars().count() <= LONGEST_LINE + 3));
    }
}

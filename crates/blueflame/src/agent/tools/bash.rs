//! Bash: one command, with a deadline, and nothing left running after it.
//!
//! The command gets a process group of its own. When its shell has ended, when
//! its time is up, or when the agent gives it up, the whole group goes. Output
//! is read until a moment after the end: a process that left the group may
//! hold the pipe for as long as it likes.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};

use super::Told;
use crate::capture::Capture;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Between the request to end and the end.
const GRACE: Duration = Duration::from_secs(2);
/// How long output is read after the end.
const AFTERMATH: Duration = Duration::from_millis(300);

/// What is shown of the output: its first and its last bytes.
const SHOWN: (usize, usize) = (15_000, 15_000);

/// What the agent itself uses to reach the model is not for commands.
const OURS: [&str; 4] =
    ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_BASE_URL"];

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    command: String,
    /// In milliseconds.
    timeout: Option<u64>,
    #[serde(default)]
    run_in_background: bool,
}

pub(super) fn definition() -> (String, Value, Value) {
    let description = "Runs a command with bash in the working directory and shows its output and exit code. Each call is a new shell: `cd` and variables do not carry over, and what it leaves in the background is ended with it. There is no input.";
    let properties = json!({
        "command": {"type": "string"},
        "timeout": {"type": "integer", "description": "milliseconds; 120000 if not given, 600000 at most"},
    });
    (description.to_owned(), properties, json!(["command"]))
}

pub(super) async fn run(input: &Input, cwd: &Path) -> Told {
    if input.run_in_background {
        return Err("commands cannot run in the background".to_owned());
    }
    let limit = input.timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis).min(LONGEST_TIMEOUT);
    let (child, output) = start(&input.command, cwd)
        .map_err(|error| format!("the command could not be started: {error}"))?;
    let (ended, output) = follow(child, output, limit).await;
    let output = output.into_text();
    let output = if output.trim().is_empty() { "(no output)" } else { output.trim_end() };
    match ended {
        Ended::Exited(status) if status.success() => Ok(format!("exit code 0\n{output}")),
        Ended::Exited(status) => Err(format!("{}\n{output}", how(status))),
        Ended::OutOfTime => {
            let limit = limit.as_millis();
            Err(format!("the command was stopped: it took longer than {limit} ms\n{output}"))
        }
        Ended::Unknown(error) => {
            Err(format!("how the command ended is unknown: {error}\n{output}"))
        }
    }
}

/// How a command ended.
#[derive(Debug)]
enum Ended {
    Exited(ExitStatus),
    OutOfTime,
    Unknown(io::Error),
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// A process group that does not outlive its owner.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Group(id.and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // There may be nobody left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn start(command: &str, cwd: &Path) -> io::Result<(Child, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let mut bash = Command::new("bash");
    bash.arg("-c")
        .arg(command)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .kill_on_drop(true);
    for name in OURS {
        bash.env_remove(name);
    }
    let child = bash.spawn()?;
    // Our own ends of the pipe close here, so that its end can come.
    drop(bash);
    Ok((child, pipe::Receiver::from_owned_fd(reader.into())?))
}

async fn follow(mut child: Child, mut output: pipe::Receiver, limit: Duration) -> (Ended, Capture) {
    let group = Group::of(&child);
    let mut capture = Capture::of(SHOWN.0, SHOWN.1);
    let deadline = Instant::now() + limit;
    let ended = match timeout_at(deadline, exit(&mut child, &mut output, &mut capture)).await {
        Ok(ended) => ended,
        Err(_) => {
            group.signal(Signal::TERM);
            let asked = timeout(GRACE, exit(&mut child, &mut output, &mut capture)).await;
            if asked.is_err() {
                group.signal(Signal::KILL);
                let _ = timeout(GRACE, exit(&mut child, &mut output, &mut capture)).await;
            }
            Ended::OutOfTime
        }
    };
    // What is left of the group ends with the command.
    drop(group);
    let _ = timeout(AFTERMATH, drain(&mut output, &mut capture)).await;
    (ended, capture)
}

/// Waits for the end of the command, and takes its output meanwhile: one that
/// is not taken would make it wait for ever.
async fn exit(child: &mut Child, output: &mut pipe::Receiver, capture: &mut Capture) -> Ended {
    let status = tokio::select! {
        status = child.wait() => status,
        () = drain(output, capture) => child.wait().await,
    };
    status.map_or_else(Ended::Unknown, Ended::Exited)
}

/// Takes output until there is no more.
async fn drain(output: &mut pipe::Receiver, capture: &mut Capture) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        capture.take(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn bash(command: &str, timeout: Option<u64>) -> Told {
        let dir = tempfile::tempdir().unwrap();
        let input = Input { command: command.to_owned(), timeout, run_in_background: false };
        run(&input, dir.path()).await
    }

    #[tokio::test]
    async fn output_and_exit_code_are_told() {
        for (command, expected) in [
            ("echo a; echo b >&2; echo c", Ok("exit code 0\na\nb\nc")),
            ("true", Ok("exit code 0\n(no output)")),
            ("echo x; exit 3", Err("exit code 3\nx")),
            ("kill -9 $$", Err("ended by signal 9\n(no output)")),
            ("cat", Ok("exit code 0\n(no output)")),
            ("nonsense-command 2>/dev/null", Err("exit code 127\n(no output)")),
        ] {
            let told = bash(command, None).await;
            assert_eq!(told.as_deref().map_err(String::as_str), expected, "{command}");
        }
    }

    #[tokio::test]
    async fn a_process_that_left_the_group_holds_nobody_up() {
        let told = bash("setsid sleep 100 & echo started", None).await;
        assert_eq!(told.as_deref(), Ok("exit code 0\nstarted"));
    }

    #[tokio::test]
    async fn what_is_left_in_the_background_ends_with_the_command() {
        let told = bash("sleep 100 & echo $!", None).await.unwrap();
        let id = told.lines().last().unwrap();
        // A killed process may stay as a zombie until it is waited for.
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z"), "{state}");
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_stopped_with_its_output_kept() {
        let told = bash("echo begun; trap '' TERM; sleep 100; echo never", Some(200)).await;
        assert_eq!(
            told.as_deref().map_err(String::as_str),
            Err("the command was stopped: it took longer than 200 ms\nbegun")
        );
    }

    #[tokio::test]
    async fn a_flood_is_cut() {
        let told =
            bash("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end", None).await.unwrap();
        assert!(told.len() < 31_000 && told.ends_with("x\nend"), "{}", told.len());
    }
}

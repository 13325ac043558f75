//! git on one git directory, asked without blocking and with bounds on time and
//! size.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::GitError;
use super::objects::{Bounded, Objects};

/// git on one git directory, with nothing of the person's or the system's
/// configuration: objects are what they are, and none is fetched.
pub(crate) fn command(git_dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = super::command(git_dir, arguments);
    command
        .env("GIT_DIR", git_dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_NO_LAZY_FETCH", "1");
    command
}

/// Has objects read by a thread that may wait.
pub(crate) async fn read<T: Send + 'static>(
    objects: &Objects,
    question: impl FnOnce(&Objects) -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    let objects = objects.clone();
    let read = tokio::task::spawn_blocking(move || question(&objects)).await;
    read.unwrap_or_else(|error| {
        Err(GitError::Strange { command: "cat-file".to_owned(), answer: error.to_string() })
    })
}

/// Asks git and waits, for at most `deadline` and `most` bytes.
pub(crate) async fn ask(
    command: Command,
    most: usize,
    deadline: Duration,
) -> Result<Bounded<Vec<u8>>, GitError> {
    let name = words(&command);
    let dir = command.get_current_dir().map(Path::to_owned).unwrap_or_default();
    let not_started = |source| GitError::NotStarted { command: name.clone(), dir, source };
    let mut command = tokio::process::Command::from(command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(not_started)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let answered = async {
        let (mut answer, mut complaint) = (Vec::new(), Vec::new());
        let reading = async {
            match stdout {
                Some(stdout) => stdout.take(most as u64 + 1).read_to_end(&mut answer).await,
                None => Ok(0),
            }
        };
        let complaining = async {
            let Some(mut stderr) = stderr else { return Ok(0) };
            (&mut stderr).take(MOST_COMPLAINT).read_to_end(&mut complaint).await?;
            // Who is not listened to at all would be stopped in mid-sentence.
            tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await
        };
        let (read, complained) = tokio::join!(reading, complaining);
        read?;
        complained?;
        if answer.len() > most {
            return Ok(None);
        }
        io::Result::Ok(Some((child.wait().await?, answer, complaint)))
    };
    let seconds = deadline.as_secs();
    match tokio::time::timeout(deadline, answered).await {
        Err(_) => Err(GitError::TooSlow { command: name, seconds }),
        Ok(Err(error)) => Err(GitError::Strange { command: name, answer: error.to_string() }),
        Ok(Ok(None)) => Ok(Bounded::TooMuch),
        Ok(Ok(Some((status, answer, _)))) if status.success() => Ok(Bounded::Whole(answer)),
        Ok(Ok(Some((status, _, complaint)))) => {
            let message = String::from_utf8_lossy(&complaint).trim().to_owned();
            Err(GitError::Failed { command: name, status: status.to_string(), message })
        }
    }
}

/// The most that is kept of what git complains about.
const MOST_COMPLAINT: u64 = 64 << 10;

fn words(command: &Command) -> String {
    let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

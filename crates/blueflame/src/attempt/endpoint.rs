//! Where the hooks of an agent program ask: a socket that the agent can reach,
//! in a directory that it cannot write.
//!
//! Each hook asks one question and waits for its answer. Whatever is no question
//! of this attempt's hook is answered with a denial here; the rest is put to the
//! loop of the attempt process, one after the other, so verdicts and their lines
//! in the audit file never mix.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::executor::Ruling;
use crate::hook::wire::{Answer, Dialect, LONGEST_QUESTION, Question, VERSION};

/// Questions that are read at the same time; more wait to be accepted. Each can
/// be large.
const MOST_AT_ONCE: usize = 16;

/// How long a question may take to arrive, and an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a hook wants to know.
#[derive(Debug)]
pub struct Asked {
    /// What the agent program told its hook.
    pub event: Value,
    /// Dropped without an answer, it is a denial.
    pub reply: oneshot::Sender<Ruling>,
}

/// Who asks here.
#[derive(Debug)]
struct Terms {
    dialect: Dialect,
    proof: String,
}

/// The socket; it is closed when this is dropped.
#[derive(Debug)]
pub struct Endpoint {
    accepting: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Endpoint {
    pub fn listen(
        path: &Path,
        dialect: Dialect,
        proof: String,
    ) -> io::Result<(Endpoint, mpsc::Receiver<Asked>)> {
        // What an earlier process left; the lock says that it is gone.
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let (ask, asked) = mpsc::channel(MOST_AT_ONCE);
        let terms = Arc::new(Terms { dialect, proof });
        let accepting = tokio::spawn(accept(listener, terms, ask));
        Ok((Endpoint { accepting }, asked))
    }
}

async fn accept(listener: UnixListener, terms: Arc<Terms>, ask: mpsc::Sender<Asked>) {
    let free = Arc::new(Semaphore::new(MOST_AT_ONCE));
    loop {
        let Ok(seat) = Arc::clone(&free).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (terms, ask) = (Arc::clone(&terms), ask.clone());
                tokio::spawn(async move {
                    // One that hangs up has no use for an answer.
                    let _ = serve(stream, &terms, &ask).await;
                    drop(seat);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: UnixStream, terms: &Terms, ask: &mpsc::Sender<Asked>) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let ruling = match read(BufReader::new(reading), terms).await {
        Ok(event) => put(event, ask).await,
        Err(why) => Ruling::Deny { reason: format!("[hook.question] {why}") },
    };
    let mut line = serde_json::to_vec(&Answer::from(&ruling))?;
    line.push(b'\n');
    tokio::time::timeout(PATIENCE, writing.write_all(&line)).await?
}

async fn read(reading: impl AsyncBufReadExt + Unpin, terms: &Terms) -> Result<Value, String> {
    let mut line = Vec::new();
    let mut limited = reading.take(LONGEST_QUESTION);
    match tokio::time::timeout(PATIENCE, limited.read_until(b'\n', &mut line)).await {
        Ok(Ok(_)) if line.last() == Some(&b'\n') => {}
        Ok(Ok(_)) => return Err("the question is cut, or too long".to_owned()),
        Ok(Err(error)) => return Err(format!("the question cannot be read: {error}")),
        Err(_) => return Err("the question did not arrive in time".to_owned()),
    }
    let question: Question<Value> = serde_json::from_slice(&line)
        .map_err(|error| format!("the question cannot be understood: {error}"))?;
    if question.version != VERSION {
        return Err("the question is of another version of Blue Flame".to_owned());
    }
    if question.dialect != terms.dialect {
        return Err(format!("this attempt does not speak `{}`", question.dialect.name()));
    }
    if question.proof != terms.proof {
        return Err("the question is not of the hook of this attempt".to_owned());
    }
    Ok(question.event)
}

async fn put(event: Value, ask: &mpsc::Sender<Asked>) -> Ruling {
    let over = || Ruling::Deny { reason: "[run.stopped] the run is over".to_owned() };
    let (reply, answer) = oneshot::channel();
    if ask.send(Asked { event, reply }).await.is_err() {
        return over();
    }
    answer.await.unwrap_or_else(|_| over())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream as Plain;

    use super::*;

    fn say(socket: &Path, line: &str) -> String {
        let mut stream = Plain::connect(socket).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    #[tokio::test]
    async fn only_questions_of_its_own_hook_are_put_to_the_attempt() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("hook");
        let (_endpoint, mut asked) =
            Endpoint::listen(&socket, Dialect::Codex, "right".to_owned()).unwrap();
        let answering = tokio::spawn(async move {
            let mut events = Vec::new();
            while let Some(Asked { event, reply }) = asked.recv().await {
                let last = event["n"] == 2;
                if event["n"] == 1 {
                    reply.send(Ruling::Allow).unwrap();
                }
                events.push(event["n"].as_u64().unwrap());
                if last {
                    break;
                }
            }
            events
        });
        let question = |version: u32, dialect: &str, proof: &str, event: &str| {
            format!(
                r#"{{"version":{version},"dialect":"{dialect}","proof":"{proof}","event":{event}}}"#
            ) + "\n"
        };
        let answers = tokio::task::spawn_blocking(move || {
            let good = question(1, "codex", "right", r#"{"n":1}"#);
            assert_eq!(say(&socket, &good), "{\"version\":1,\"decision\":\"allow\"}\n");
            [
                question(2, "codex", "right", "{}"),
                question(1, "claude", "right", "{}"),
                question(1, "codex", "wrong", "{}"),
                good.trim_end().to_owned(),
                "garbage\n".to_owned(),
                question(1, "codex", "right", &("[".repeat(500) + &"]".repeat(500))),
                "\n".to_owned(),
                String::new(),
                // Nobody answers this one.
                question(1, "codex", "right", r#"{"n":2}"#),
            ]
            .map(|line| say(&socket, &line))
        })
        .await
        .unwrap();
        for answer in answers {
            assert!(answer.contains(r#""decision":"deny","reason":"["#), "{answer}");
        }
        assert_eq!(answering.await.unwrap(), [1, 2]);
    }
}

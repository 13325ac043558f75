//! Asks before each tool call whether it may be made.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::events;
use super::inbox::Desk;
use super::output::Output;
use super::protocol::{Hook, Verdict};

/// A tool call as the judge gets to see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'c> {
    pub(super) id: &'c str,
    pub(super) tool: &'c str,
    pub(super) input: &'c Value,
}

/// Puts tool calls to the attempt process.
#[derive(Debug)]
pub(super) struct Judge {
    out: Output,
    desk: Arc<Desk>,
    session: String,
    cwd: std::path::PathBuf,
    asked: AtomicU64,
}

impl Judge {
    pub(super) fn new(out: Output, desk: Arc<Desk>, session: &str, cwd: &Path) -> Self {
        let (session, cwd) = (session.to_owned(), cwd.to_owned());
        Judge { out, desk, session, cwd, asked: AtomicU64::new(0) }
    }

    /// Whether the call may be made. Everyone who judges this tool must say
    /// so; no answer is a refusal.
    pub(super) async fn judge(&self, call: Call<'_>) -> Verdict {
        let hooks = match self.desk.judges_of(call.tool) {
            Ok(hooks) => hooks,
            Err(why) => return Verdict::deny(why),
        };
        for hook in &hooks {
            match self.ask(hook, call).await {
                Verdict::Allow => {}
                denied @ Verdict::Deny { .. } => return denied,
            }
        }
        Verdict::Allow
    }

    /// Whether nobody will ever answer again.
    pub(super) fn is_gone(&self) -> bool {
        self.desk.is_closed()
    }

    async fn ask(&self, hook: &Hook, call: Call<'_>) -> Verdict {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let request = format!("{}-{number}", self.session);
        let answer = self.desk.expect(&request);
        let question =
            events::hook_callback(&request, &hook.callback, &self.session, &self.cwd, call);
        self.out.emit(&question).await;
        let answered = match hook.timeout {
            None => Ok(answer.await),
            Some(limit) => tokio::time::timeout(limit, answer).await.map_err(|_| limit),
        };
        match answered {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Verdict::deny("nobody is there any more to judge the call"),
            Err(limit) => {
                self.desk.forget(&request);
                self.out.emit(&events::control_cancel(&request)).await;
                let waited = limit.as_secs_f32();
                Verdict::deny(format!("the call was not judged within {waited} s"))
            }
        }
    }
}

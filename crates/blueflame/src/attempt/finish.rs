//! After the agent is gone: what is left is ended, saved, concluded and sealed.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;

use super::conclude::{Exit, Known, conclude};
use super::messages::Report;
use super::run::{Attempt, CannotBegin, cannot};
use super::sealed::Sealed;
use super::snapshot::Camera;
use super::spec::FORMAT;
use crate::process_tree;

impl Attempt {
    /// Ends what is left, takes the last snapshot, and writes the result.
    pub(super) async fn seal(mut self, exit: Exit) -> Result<(), CannotBegin> {
        process_tree::end_descendants(Duration::from_millis(500), None).await;
        if let Some(line) = self.lines.end() {
            self.line(&line);
        }
        self.last_snapshot().await;
        let spend = {
            let Attempt { gateway, facts, .. } = &mut self;
            let spent = gateway.shut().await;
            facts.close();
            spent
        };
        while let Ok(fact) = self.facts.try_recv() {
            self.fact(fact);
        }
        if let Some(kept) = self.kept.take() {
            let dropped = kept.dropped();
            if dropped > 0 {
                self.warn(format!("{dropped} bytes of output were not kept"));
            }
            if let Err(error) = kept.close() {
                self.warn(format!("the agent's output could not be kept: {error}"));
            }
        }
        self.conversation.left(match exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Never => None,
        });
        let account = self.conversation.account();
        let own_usage = account.usage;
        let known = Known {
            cause: self.cause.take(),
            late: self.late,
            limited: self.limited,
            account,
            exit,
            output_wanted: self.spec.order.output_schema.is_some(),
            complaint: String::from_utf8_lossy(&self.complaint).trim().to_owned(),
        };
        let ended = Timestamp::now();
        let sealed = Sealed {
            format: FORMAT,
            agent: self.spec.agent.clone(),
            started: self.started,
            ended,
            ending: conclude(&known, ended),
            spend,
            own_usage,
            calls: self.judge.calls,
            denied: self.judge.denied,
            exit: exit.to_string(),
            snapshot: self.camera.as_ref().and_then(Camera::last).cloned(),
            warnings: std::mem::take(&mut self.warnings),
        };
        self.directory.seal(&sealed).map_err(cannot)?;
        self.report(Report::Usage { spend });
        self.report(Report::Ended);
        let _ = self.control.flush();
        // Listeners are told by the tasks of this runtime.
        tokio::time::sleep(Duration::from_millis(20)).await;
        for place in [&self.sockets, &self.gateway_place] {
            let _ = fs::remove_dir_all(place);
        }
        // Only now may somebody else look: the result is there.
        drop(self.running);
        Ok(())
    }
}

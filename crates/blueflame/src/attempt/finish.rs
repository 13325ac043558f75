//! After the agent is gone: what is left is ended, saved, concluded and sealed.

use std::fs;
use std::time::Duration;

use blueflame_core::outcome::Outcome;
use jiff::Timestamp;

use super::conclude::{Exit, Known, conclude};
use super::messages::Report;
use super::run::{Attempt, CannotBegin, cannot};
use super::sealed::{Ending, Sealed};
use super::snapshot::Camera;
use super::spec::FORMAT;
use crate::process_tree;
use crate::room;

/// For what the agent left behind: between being asked and being killed, and
/// until it is given up.
const END_GRACE: Duration = Duration::from_millis(500);
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How long whoever listens may take to hear that it has ended.
const TELLING: Duration = Duration::from_secs(1);

impl Attempt {
    /// Ends what is left, saves unfinished work, and writes the result.
    pub(super) async fn seal(mut self, exit: Exit) -> Result<(), CannotBegin> {
        self.stop_developing().await;
        let ended = process_tree::end_descendants(END_GRACE, END_PATIENCE, None).await;
        if ended.is_err() {
            let seconds = END_PATIENCE.as_secs();
            self.warn(format!("processes of the agent could not be ended within {seconds} s"));
        }
        if let Some(line) = self.lines.end() {
            self.line(&line);
        }
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
            provider_failed: self.provider_failed,
            account,
            exit,
            output_wanted: self.spec.order.output_schema.is_some(),
            complaint: String::from_utf8_lossy(&self.complaint).trim().to_owned(),
            unread: self.conversation.unread().map(str::to_owned),
        };
        let places = [self.directory.root(), &self.spec.workspace];
        let full_disk = room::lacking(&places, &known.complaint);
        let ended = Timestamp::now();
        let ending = conclude(&known, ended);
        // Whether one that stopped by itself has finished is for others to find
        // out, and they have its work saved if it has not.
        let unsaved = matches!(ending, Ending::Stopped { .. }) && self.camera.is_some();
        if !unsaved {
            self.last_snapshot().await;
        }
        let sealed = Sealed {
            format: FORMAT,
            agent: self.spec.agent.clone(),
            started: self.started,
            ended,
            ending,
            spend,
            own_usage,
            calls: self.judge.calls,
            denied: self.judge.denied,
            exit: exit.to_string(),
            snapshot: self.camera.as_ref().and_then(Camera::last).cloned(),
            unsaved,
            full_disk,
            warnings: std::mem::take(&mut self.warnings),
        };
        // Before the result: whoever has that looks no further.
        self.report(Report::Usage { spend });
        let sealing = self.write_result(sealed);
        if sealing.is_ok() {
            self.report(Report::Ended);
        }
        let _ = self.control.flush();
        self.control.told(TELLING).await;
        for place in [&self.sockets, &self.gateway_place] {
            let _ = fs::remove_dir_all(place);
        }
        // Only now may somebody else look: the result is there.
        drop(self.running);
        sealing
    }

    /// Writes the result, or at least that there is one which could not be
    /// written: a full disk may have room for that.
    fn write_result(&self, mut sealed: Sealed) -> Result<(), CannotBegin> {
        if let Err(error) = self.directory.keep_spec() {
            // It can be read as long as the machine does not go down.
            sealed.warnings.push(error.to_string());
        }
        let Err(error) = self.directory.seal(&sealed) else { return Ok(()) };
        let detail = format!("its result could not be kept: {error}");
        let ending = Ending::Failed(Outcome::Crashed { detail });
        let least = Sealed { ending, warnings: Vec::new(), ..sealed };
        self.directory.seal(&least).map_err(cannot)
    }
}

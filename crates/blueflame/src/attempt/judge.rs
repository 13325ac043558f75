//! Judging tool calls, and writing down each verdict.
//!
//! A call whose verdict cannot be written down is not allowed. In a sandbox the
//! audit file is out of the agent's sight; without one, an agent that gets past
//! the policy could write to it.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use blueflame_core::ids::AgentId;
use blueflame_core::policy::{Decision, Policy, Rule, ToolCall, Verdict};
use jiff::Timestamp;
use serde::Serialize;

use crate::executor::{Call, Ruling};
use crate::ground::{GroundError, RealGround};

/// One line of `audit.jsonl`.
#[derive(Serialize)]
struct AuditLine<'l> {
    timestamp: Timestamp,
    agent_id: &'l AgentId,
    tool: &'l str,
    target: &'l str,
    decision: &'l str,
    rule: &'l str,
    details: &'l str,
}

#[derive(Debug)]
pub struct Judge {
    policy: Policy,
    ground: RealGround,
    workspace: String,
    agent: AgentId,
    audit: File,
    stopped: Option<String>,
    pub calls: u64,
    pub denied: u64,
}

impl Judge {
    pub fn new(
        policy: Policy,
        workspace: &Path,
        agent: AgentId,
        audit: File,
    ) -> Result<Judge, GroundError> {
        let ground = RealGround::new(workspace)?;
        let workspace = workspace.to_string_lossy().into_owned();
        Ok(Judge { policy, ground, workspace, agent, audit, stopped: None, calls: 0, denied: 0 })
    }

    pub fn judge(&mut self, call: Call) -> (Verdict, Ruling) {
        let call = self.placed(call);
        let verdict = self.policy.judge(&call, &self.ground);
        self.settle(&call, verdict)
    }

    /// Denies a call that has no form in which it could be judged.
    pub fn object(&mut self, call: Call, why: &str) -> (Verdict, Ruling) {
        let call = self.placed(call);
        let target = self.policy.judge(&call, &self.ground).target;
        self.settle(&call, Verdict::denied(Rule::ToolInput, target, why))
    }

    fn placed(&self, call: Call) -> ToolCall {
        let Call { tool, input, cwd } = call;
        let cwd = if cwd.is_empty() { self.workspace.clone() } else { cwd };
        ToolCall { tool, input, cwd }
    }

    fn settle(&mut self, call: &ToolCall, mut verdict: Verdict) -> (Verdict, Ruling) {
        if let Some(why) = &self.stopped
            && verdict.decision == Decision::Allow
        {
            verdict = Verdict {
                decision: Decision::Deny,
                rule: "run.stopped".to_owned(),
                details: format!("the run is being stopped: {why}"),
                target: verdict.target,
            };
        }
        if let Err(error) = self.write_down(call, &verdict) {
            verdict = Verdict {
                decision: Decision::Deny,
                rule: "audit.unwritable".to_owned(),
                details: format!("the verdict could not be written down: {error}"),
                target: verdict.target,
            };
        }
        self.calls += 1;
        let ruling = match verdict.decision {
            Decision::Allow => Ruling::Allow,
            Decision::Deny => {
                self.denied += 1;
                Ruling::Deny { reason: format!("[{}] {}", verdict.rule, verdict.details) }
            }
        };
        (verdict, ruling)
    }

    /// Denies every call from now on.
    pub fn stop(&mut self, why: &str) {
        self.stopped.get_or_insert_with(|| why.to_owned());
    }

    fn write_down(&mut self, call: &ToolCall, verdict: &Verdict) -> std::io::Result<()> {
        let line = AuditLine {
            timestamp: Timestamp::now(),
            agent_id: &self.agent,
            tool: &call.tool,
            target: &verdict.target,
            decision: match verdict.decision {
                Decision::Allow => "allow",
                Decision::Deny => "deny",
            },
            rule: &verdict.rule,
            details: &verdict.details,
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        self.audit.write_all(&line)
    }
}

//! What a session left behind, read as evidence: the audit, what the model was
//! told, the journal.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use blueflame_core::event::{Event, Work};
use blueflame_core::ids::{AgentId, Oid, TaskId};
use blueflame_core::outcome::{Outcome, Product};
use blueflame_core::proof::Word;
use blueflame_core::state::State;
use serde_json::Value;

use super::conversation::{self, Call};
use super::escape::Tried;
use crate::attempt::directory::Directory;
use crate::failure::{Failure, Kind};
use crate::history;
use crate::store::SessionDir;
use crate::workspace::{Layers, WorkspaceName};

/// A whole session.
#[derive(Debug)]
pub struct Evidence {
    pub state: State,
    session: SessionDir,
    outcomes: BTreeMap<TaskId, Outcome>,
    violations: BTreeMap<TaskId, Vec<String>>,
}

impl Evidence {
    pub fn read(session: SessionDir) -> Result<Evidence, Failure> {
        let mut workers: BTreeMap<AgentId, TaskId> = BTreeMap::new();
        let (mut outcomes, mut violations) = (BTreeMap::new(), BTreeMap::new());
        let history = history::fold(&session.journal(), None, |moment| match moment.event {
            Event::AgentClaimed { agent, work: Work::Develop { task, .. }, .. } => {
                workers.insert(agent.clone(), task.clone());
            }
            Event::AgentExited { agent, outcome, .. } => {
                if let Some(task) = workers.get(agent) {
                    outcomes.insert(task.clone(), outcome.clone());
                }
            }
            Event::InspectionFinished { task, violations: found } => {
                violations.insert(task.clone(), found.clone());
            }
            _ => {}
        })?;
        Ok(Evidence { state: history.state, session, outcomes, violations })
    }

    /// How the only attempt at a task ended.
    pub fn outcome(&self, task: &TaskId) -> Option<&Outcome> {
        self.outcomes.get(task)
    }

    /// What was committed for a task.
    pub fn commit(&self, task: &TaskId) -> Option<&Oid> {
        match self.outcome(task)? {
            Outcome::Finished { product: Product::Commit(commit) } => Some(commit),
            _ => None,
        }
    }

    /// What the inspection of a task's work found about a path.
    pub fn violation(&self, task: &TaskId, path: &str) -> Option<&str> {
        let named = format!("`{path}`");
        let found = self.violations.get(task)?;
        found.iter().find(|it| it.contains(&named)).map(String::as_str)
    }

    /// The only attempt at a task.
    pub fn attempt(&self, task: &TaskId) -> Result<Attempt, Failure> {
        let work = Work::Develop { task: task.clone(), attempt: 1 };
        let name = WorkspaceName::of(&work);
        let directory = Directory::open(&self.session.attempts().join(name.as_str()));
        let spec = directory.spec().map_err(|error| Failure::new(Kind::Internal, error))?;
        let audit = fs::read_to_string(directory.audit_file()).unwrap_or_default();
        let traffic = fs::read_to_string(directory.recording_file()).unwrap_or_default();
        let exchanges: Vec<Value> =
            traffic.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let written = Layers::of(&spec.workspace)
            .map_or_else(|| spec.workspace.clone(), |layers| layers.changes());
        Ok(Attempt {
            workspace: spec.workspace,
            written,
            audit: audit.lines().map(|line| serde_json::from_str(line).ok()).collect(),
            answers: exchanges.iter().filter(|it| it["status"] == 200).count(),
            calls: conversation::calls(&exchanges),
        })
    }
}

/// One agent run.
#[derive(Debug)]
pub struct Attempt {
    pub workspace: PathBuf,
    /// Where what it wrote in there is found from outside.
    pub written: PathBuf,
    /// `None` for a line that is no verdict.
    audit: Vec<Option<Value>>,
    /// How often the model answered.
    pub answers: usize,
    calls: Vec<Call>,
}

impl Attempt {
    /// What the policy said of the call that has `mark` in its input.
    pub fn word(&self, tool: &str, mark: &str) -> Option<Word> {
        let of_call = |line: &&Value| {
            line["tool"] == tool && line["target"].as_str().is_some_and(|it| it.contains(mark))
        };
        let line = self.audit.iter().flatten().find(of_call)?;
        Some(match line["decision"].as_str()? {
            "allow" => Word::Allowed,
            _ => Word::Denied { rule: line["rule"].as_str().unwrap_or_default().to_owned() },
        })
    }

    /// What the model was told came of that call.
    pub fn result(&self, tool: &str, mark: &str) -> Option<&str> {
        let of_call = |call: &&Call| call.tool == tool && call.input.contains(mark);
        self.calls.iter().find(of_call)?.result.as_deref()
    }

    /// What the attacking program said it did.
    pub fn tried(&self, command: &str) -> Vec<Tried> {
        tried(self.result("Bash", command).unwrap_or_default())
    }

    /// Whether somebody else wrote into the audit.
    pub fn audit_is_foreign(&self) -> bool {
        self.audit.iter().any(Option::is_none)
    }

    /// How long a file was each time somebody counted it.
    pub fn counts(&self, file: &str) -> Vec<u64> {
        let counted = |call: &&Call| call.input.contains("wc -c") && call.input.contains(file);
        // Programs put lines of their own around what a command printed.
        let count = |line: &str| line.trim().strip_suffix(file)?.trim().parse().ok();
        let results = self.calls.iter().filter(counted).filter_map(|call| call.result.as_deref());
        results.flat_map(str::lines).filter_map(count).collect()
    }
}

/// What an attacking program printed.
pub fn tried(output: &str) -> Vec<Tried> {
    output.lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect()
}

/// Whether a file has this text in it.
pub fn has(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains(text)
}

//! From the text of a decisions file to answers.
//!
//! An answer is a word (`approve`) or one key with what it needs
//! (`{reject: "..."}`). Everything that is neither is reported with its place
//! and with what could be written there, all at once.

use std::path::Path;

use blueflame_core::gate::{
    BudgetAnswer, ChangesetAnswer, SessionAnswer, ValidationAnswer, ValidatorAnswer,
};
use blueflame_core::ids::GroupName;
use blueflame_core::lock_path::LockPath;
use blueflame_core::money::{Budget, Usd};
use blueflame_core::yaml::{
    self, Document, Entry, Kind, Limits, Node, Problem, Problems, Severity,
};
use serde::de::IgnoredAny;

use super::choices::{
    BUDGET, CHANGESET, Choices, PLAN, SESSION, VALIDATION_FAILED, VALIDATOR_FAILED,
};
use super::{ANY_GROUP, Decisions, Fallback, PlanDecision, Queue, Written};

const GATES: [&str; 6] =
    ["plan", "changesets", "session", "validation_failed", "validator_failed", "budget"];

pub(super) fn read(bytes: &[u8], file: &Path) -> Result<Decisions, Vec<Problem>> {
    let document = Document::parse(bytes, Limits::CONFIG)?;
    let found = Problems::default();
    let decisions = Reader { found: &found }.decisions(document.root(), bytes, file);
    // What was refused while the tree was made comes out with the rest.
    let (_, refused) = document.read::<IgnoredAny>();
    for problem in refused.into_sorted() {
        found.push(problem);
    }
    if found.has_errors() { Err(found.into_sorted()) } else { Ok(decisions) }
}

/// Reads what a person made of a task: `description`, `file_locks`, or both.
pub(in crate::people) fn task_edit(bytes: &[u8]) -> Result<ValidationAnswer, Vec<Problem>> {
    let document = Document::parse(bytes, Limits::CONFIG)?;
    let found = Problems::default();
    let edit = Reader { found: &found }.task_edit("", document.root());
    let (_, refused) = document.read::<IgnoredAny>();
    let mut problems = refused.into_sorted();
    problems.extend(found.into_sorted());
    problems.retain(|problem| problem.severity == Severity::Error);
    if problems.is_empty() { Ok(edit) } else { Err(problems) }
}

/// The path of a key; at the top of a file there is nothing above it.
fn path_below(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { yaml::path_below(parent, key) }
}

struct Reader<'r> {
    found: &'r Problems,
}

/// An answer as it is written: a word, or a key with something behind it.
enum Said<'n> {
    Word(&'n str),
    Form(&'n str, &'n Node),
}

impl Reader<'_> {
    fn decisions(&self, root: &Node, bytes: &[u8], file: &Path) -> Decisions {
        let mut decisions = Decisions::empty(bytes, file);
        for entry in self.entries(root, "", "the file must be a mapping of `gate: answers` lines") {
            let (key, value) = (entry.key.as_str(), &entry.value);
            match key {
                "plan" => decisions.plan = Some(self.queue(key, value, Self::plan)),
                "changesets" => self.changesets(&mut decisions, value),
                "session" => decisions.session = Some(self.queue(key, value, Self::session)),
                "validation_failed" => {
                    decisions.validation_failed =
                        Some(self.queue(key, value, Self::validation_failed));
                }
                "validator_failed" => {
                    decisions.validator_failed =
                        Some(self.queue(key, value, Self::validator_failed));
                }
                "budget" => decisions.budget = Some(self.queue(key, value, Self::budget)),
                _ => self.unknown_key(entry, "", &GATES),
            }
        }
        decisions
    }

    fn changesets(&self, decisions: &mut Decisions, node: &Node) {
        let wrong = "must be a mapping of groups to answers";
        for entry in self.entries(node, "changesets", wrong) {
            let path = path_below("changesets", &entry.key);
            if entry.key == ANY_GROUP {
                let queue = self.queue(&path, &entry.value, Self::changeset);
                let listed = matches!(entry.value.kind, Kind::Sequence(_));
                decisions.any_changeset = Some(Fallback::new(queue, listed));
                continue;
            }
            match GroupName::new(entry.key.as_str()) {
                Ok(group) => {
                    let queue = self.queue(&path, &entry.value, Self::changeset);
                    decisions.changesets.insert(group, queue);
                }
                Err(bad) => self.found.push(
                    Problem::error(path, "is not the name of a group")
                        .at(entry.key_span, "")
                        .hint(format!("{}; `\"*\"` stands for all other groups", bad.rule)),
                ),
            }
        }
    }

    /// The answers to one question: a list, or a single one.
    fn queue<T>(
        &self,
        path: &str,
        node: &Node,
        answer: impl Fn(&Self, &str, &Node) -> Option<T>,
    ) -> Queue<T> {
        let written = |path: String, node: &Node| {
            let answer = answer(self, &path, node)?;
            Some(Written { answer, path, span: node.span })
        };
        let answers = match &node.kind {
            Kind::Sequence(items) => {
                let each = items.iter().enumerate();
                each.filter_map(|(at, item)| written(format!("{path}[{at}]"), item)).collect()
            }
            _ => written(path.to_owned(), node).into_iter().collect(),
        };
        Queue::new(answers)
    }

    fn plan(&self, path: &str, node: &Node) -> Option<PlanDecision> {
        match self.said(path, node, &PLAN)? {
            Said::Word("approve") => Some(PlanDecision::Approve),
            Said::Word(_) => Some(PlanDecision::Quit),
            Said::Form("replan", notes) => {
                Some(PlanDecision::Replan { notes: self.text(path, "replan", notes)? })
            }
            Said::Form(_, file) => {
                Some(PlanDecision::Edit { file: self.text(path, "edit", file)?.into() })
            }
        }
    }

    fn changeset(&self, path: &str, node: &Node) -> Option<ChangesetAnswer> {
        match self.said(path, node, &CHANGESET)? {
            Said::Word("approve") => Some(ChangesetAnswer::Approve),
            Said::Word(_) => Some(ChangesetAnswer::Skip),
            Said::Form(_, reason) => {
                Some(ChangesetAnswer::Reject { reason: self.text(path, "reject", reason)? })
            }
        }
    }

    fn session(&self, path: &str, node: &Node) -> Option<SessionAnswer> {
        match self.said(path, node, &SESSION)? {
            Said::Word("continue") => Some(SessionAnswer::Continue { retry: Vec::new() }),
            Said::Word("replan") => Some(SessionAnswer::Replan { notes: String::new() }),
            Said::Word(_) => Some(SessionAnswer::Stop),
            Said::Form(_, notes) => {
                Some(SessionAnswer::Replan { notes: self.text(path, "replan", notes)? })
            }
        }
    }

    fn validation_failed(&self, path: &str, node: &Node) -> Option<ValidationAnswer> {
        match self.said(path, node, &VALIDATION_FAILED)? {
            Said::Word("requeue") => Some(ValidationAnswer::Requeue { notes: String::new() }),
            Said::Word(_) => Some(ValidationAnswer::Drop),
            Said::Form("requeue", notes) => {
                Some(ValidationAnswer::Requeue { notes: self.text(path, "requeue", notes)? })
            }
            Said::Form(_, edit) => Some(self.task_edit(&path_below(path, "edit"), edit)),
        }
    }

    fn validator_failed(&self, path: &str, node: &Node) -> Option<ValidatorAnswer> {
        match self.said(path, node, &VALIDATOR_FAILED)? {
            Said::Word("manual-pass") => Some(ValidatorAnswer::ManualPass),
            Said::Word("skip") => Some(ValidatorAnswer::Skip),
            Said::Word(_) => Some(ValidatorAnswer::Retry),
            Said::Form(..) => None,
        }
    }

    fn budget(&self, path: &str, node: &Node) -> Option<BudgetAnswer> {
        let by = match self.said(path, node, &BUDGET)? {
            Said::Word(_) => return Some(BudgetAnswer::Stop),
            Said::Form("raise_usd", amount) => Budget::Usd(self.dollars(path, amount)?),
            Said::Form(_, amount) => Budget::Tokens(self.tokens(path, amount)?),
        };
        Some(BudgetAnswer::Raise { by })
    }

    fn dollars(&self, path: &str, node: &Node) -> Option<Usd> {
        let number = bare(node).and_then(|text| text.parse().ok()).and_then(Usd::from_dollars);
        let amount = number.filter(|amount| *amount > Usd::ZERO);
        if amount.is_none() {
            let hint = "write dollars without a sign, such as 5.0";
            self.wrong(&path_below(path, "raise_usd"), node, "must be a number above 0", hint);
        }
        amount
    }

    fn tokens(&self, path: &str, node: &Node) -> Option<u64> {
        let amount = bare(node).and_then(|text| text.parse().ok()).filter(|amount| *amount > 0);
        if amount.is_none() {
            let hint = "write all digits and nothing else, such as 100000";
            let path = path_below(path, "raise_tokens");
            self.wrong(&path, node, "must be a whole number above 0", hint);
        }
        amount
    }

    fn task_edit(&self, path: &str, node: &Node) -> ValidationAnswer {
        let mut description = None;
        let mut file_locks = None;
        let known = ["description", "file_locks"];
        let entries =
            self.entries(node, path, "must be a mapping with `description` or `file_locks`");
        for entry in entries {
            match entry.key.as_str() {
                "description" => description = self.text(path, "description", &entry.value),
                "file_locks" => {
                    file_locks = self.locks(&path_below(path, "file_locks"), &entry.value);
                }
                _ => self.unknown_key(entry, path, &known),
            }
        }
        if entries.is_empty() && matches!(node.kind, Kind::Mapping(_)) {
            let hint = "give a `description`, `file_locks`, or both";
            self.found.push(Problem::error(path, "changes nothing").at(node.span, "").hint(hint));
        }
        ValidationAnswer::Edit { description, file_locks }
    }

    fn locks(&self, path: &str, node: &Node) -> Option<Vec<LockPath>> {
        let Kind::Sequence(items) = &node.kind else {
            self.wrong(path, node, "must be a list of paths", "write `[src/auth/, tests/auth.rs]`");
            return None;
        };
        if items.is_empty() {
            let hint = "list the files and directories that the task changes";
            self.wrong(path, node, "must be a list of at least one path", hint);
        }
        let lock = |(at, item): (usize, &Node)| {
            let path = format!("{path}[{at}]");
            let Kind::Scalar { text, .. } = &item.kind else {
                self.wrong(&path, item, "must be a path", "write `src/auth/` or `src/main.rs`");
                return None;
            };
            LockPath::new(text)
                .map_err(|bad| {
                    let message = format!("is not a path to lock: {bad}, got `{text}`");
                    let hint = "write a path in the repository: `src/auth/` or `src/main.rs`";
                    self.found.push(Problem::error(&path, message).at(item.span, "").hint(hint));
                })
                .ok()
        };
        // All of them are looked at before one is missed.
        let locks: Vec<Option<LockPath>> = items.iter().enumerate().map(lock).collect();
        locks.into_iter().collect()
    }

    /// One answer, as a word or as a key with a value.
    fn said<'n>(&self, path: &str, node: &'n Node, choices: &Choices) -> Option<Said<'n>> {
        match &node.kind {
            Kind::Refused => None,
            Kind::Scalar { text, .. } if choices.words.contains(&text.as_str()) => {
                Some(Said::Word(text))
            }
            Kind::Scalar { .. } if node.is_null() => {
                let hint = format!("write {}", choices.shown());
                let problem = Problem::error(path, "has no answer").at(node.span, "");
                self.found.push(problem.hint(hint));
                None
            }
            Kind::Scalar { text, .. } => {
                let hint = choices.example(text).unwrap_or_else(|| self.meant(text, choices));
                let message = if choices.forms.iter().any(|(key, _)| key == text) {
                    format!("needs more than the word `{text}`")
                } else {
                    format!("is not an answer to this question, got `{text}`")
                };
                self.found.push(Problem::error(path, message).at(node.span, "").hint(hint));
                None
            }
            Kind::Mapping(entries) => match entries.as_slice() {
                [entry] if choices.forms.iter().any(|(key, _)| *key == entry.key) => {
                    Some(Said::Form(&entry.key, &entry.value))
                }
                [entry] if choices.words.contains(&entry.key.as_str()) => {
                    let hint = format!("write `{}` alone", entry.key);
                    let message = format!("has a value behind `{}`, which takes none", entry.key);
                    self.found.push(Problem::error(path, message).at(node.span, "").hint(hint));
                    None
                }
                [entry] => {
                    let hint = self.meant(&entry.key, choices);
                    let message = format!("is not an answer to this question, got `{}`", entry.key);
                    self.found
                        .push(Problem::error(path, message).at(entry.key_span, "").hint(hint));
                    None
                }
                several => {
                    let hint = "one answer has one key; write several answers as a list";
                    let message = format!("must be one answer, got {} keys", several.len());
                    self.found.push(Problem::error(path, message).at(node.span, "").hint(hint));
                    None
                }
            },
            Kind::Sequence(_) => {
                let hint = "the answers to one question are one list";
                let problem = Problem::error(path, "must be one answer, got a list");
                self.found.push(problem.at(node.span, "").hint(hint));
                None
            }
        }
    }

    fn meant(&self, word: &str, choices: &Choices) -> String {
        let keys = choices.forms.iter().map(|(key, _)| *key);
        match self.found.closest(word, choices.words.iter().copied().chain(keys)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write {}", choices.shown()),
        }
    }

    /// A text that says something.
    fn text(&self, path: &str, key: &str, node: &Node) -> Option<String> {
        let path = path_below(path, key);
        match &node.kind {
            Kind::Scalar { text, quoted }
                if !text.trim().is_empty() && (*quoted || !node.is_null()) =>
            {
                return Some(text.clone());
            }
            Kind::Scalar { .. } => {
                self.found.push(Problem::error(path, "is empty").at(node.span, ""));
            }
            Kind::Refused => {}
            Kind::Mapping(_) | Kind::Sequence(_) => {
                self.found.push(Problem::error(path, "must be a text").at(node.span, ""));
            }
        }
        None
    }

    fn entries<'n>(&self, node: &'n Node, path: &str, wrong: &str) -> &'n [Entry] {
        match &node.kind {
            Kind::Mapping(entries) => return entries,
            Kind::Refused => {}
            Kind::Scalar { .. } | Kind::Sequence(_) => {
                let mut problem = Problem::error(path, wrong).at(node.span, "");
                if path == "changesets" {
                    problem = problem.hint("write `{\"*\": approve}` to approve every changeset");
                }
                self.found.push(problem);
            }
        }
        &[]
    }

    fn unknown_key(&self, entry: &Entry, below: &str, known: &[&str]) {
        let path = path_below(below, &entry.key);
        let hint = match self.found.closest(&entry.key, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        let problem = Problem::error(path, "is not a known key").at(entry.key_span, "unknown key");
        self.found.push(problem.hint(hint));
    }

    fn wrong(&self, path: &str, node: &Node, message: &str, hint: &str) {
        let got = match &node.kind {
            Kind::Scalar { text, .. } if !node.is_null() => format!(", got `{text}`"),
            Kind::Scalar { .. } => ", got nothing".to_owned(),
            Kind::Sequence(_) => ", got a list".to_owned(),
            Kind::Mapping(_) => ", got a mapping".to_owned(),
            Kind::Refused => return,
        };
        let problem = Problem::error(path, format!("{message}{got}")).at(node.span, "");
        self.found.push(problem.hint(hint));
    }
}

/// A value without quotes, which may be a number.
fn bare(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar { text, quoted: false } => Some(text),
        _ => None,
    }
}

//! Events in words, for `log` and for the terminal.
//!
//! One sentence each, with the subject first; what an event is about can also
//! be asked for, to pick out those of one task or agent. Agents and plans have a
//! say in these words, so what could steer a terminal or pass for a line of ours
//! is shown as an escape.

use std::borrow::Cow;

use blueflame_core::event::{
    Deferral, End, Event, FoldResult, LandResult, PassedOver, PublishResult, Shortcoming,
    VerifyResult, Work,
};
use blueflame_core::gate::{
    Answer, BudgetAnswer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer, ValidationAnswer,
    ValidatorAnswer,
};
use blueflame_core::hook::{HookResult, Occasion};
use blueflame_core::ids::{AccountName, AgentId, ChangesetId, TaskId};
use blueflame_core::money::{Budget, Spend};
use blueflame_core::outcome::{Outcome, Product};
use blueflame_core::proof::Proof;

use crate::amounts;

/// The event as a sentence on one line, without a full stop.
pub fn sentence(event: &Event) -> String {
    plain(&words(event)).into_owned()
}

/// Text of others as one line that a terminal only shows: control characters,
/// line breaks and changes of the reading direction are written as escapes.
pub fn plain(text: &str) -> Cow<'_, str> {
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn words(event: &Event) -> String {
    match event {
        Event::SessionStarted { session, goal, plan, .. } => match plan {
            Some(plan) => {
                format!("{session} began with a plan of {}: {goal}", tasks(plan.tasks.len()))
            }
            None => format!("{session} began: {goal}"),
        },
        Event::SessionProven { proof, outdated } => {
            format!("before it began, {}", proven(proof, outdated))
        }
        Event::SessionResumed { repaired_bytes: None, .. } => "the session was resumed".into(),
        Event::SessionResumed { repaired_bytes: Some(bytes), .. } => {
            format!("the session was resumed; {bytes} bytes of an unfinished write were set aside")
        }
        Event::StopRequested => "the session is to stop".into(),
        Event::SessionObstructed { reason } => format!("something is in the way: {reason}"),
        Event::SessionSuspended => "the session was suspended; it can be resumed".into(),
        Event::SessionEnded { end } => format!("the session ended: {}", ending(*end)),
        Event::CycleStarted { cycle, .. } => format!("cycle {cycle} began with development"),
        Event::ValidationStarted => "validation began".into(),
        Event::MemorySampled { free_mb } => format!("{free_mb} MiB of memory are free"),
        Event::ProviderLimited { until, account } => {
            format!("the provider asks{} to wait until {until}", of_account(account))
        }
        Event::PauseEnded => "the pause is over".into(),
        Event::GateOpened { gate } => format!("asked the person {}", question(gate)),
        Event::GateWithdrawn { gate } => format!("no longer asks the person {}", question(gate)),
        Event::GateAnswered { gate, answer } => answered(gate, answer),
        Event::AgentClaimed { agent, work, executor, cap, grant, passed_over } => {
            let limits = limits(*cap, *grant);
            let instead: String = passed_over.iter().map(not_taken).collect();
            format!("{agent} ({executor}) is to {}{limits}{instead}", job(work))
        }
        Event::AgentStarted { agent, process, skills } => {
            let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
            let skills = match names.as_slice() {
                [] => String::new(),
                names => format!(", with the skills {}", names.join(", ")),
            };
            format!("{agent} started as process {}{skills}", process.pid)
        }
        Event::AgentStartFailed { agent, reason, .. } => format!("{agent} did not start: {reason}"),
        Event::UsageReported { agent, spend } => format!("{agent} has used {}", cost(spend)),
        Event::GrantWanted { agent } => format!("{agent} waits for more of the session's budget"),
        Event::Granted { agent, grant } => format!("{agent} may use {grant} in all"),
        Event::SnapshotTaken { agent, commit } => {
            format!("unfinished work of {agent} was saved as {}", short(commit.as_str()))
        }
        Event::StopSent { agent } => format!("{agent} was told to stop"),
        Event::AgentExited { agent, outcome, spend } => {
            format!("{agent} {}, {}", outcome_words(outcome), cost(spend))
        }
        Event::AgentLost { agent, spend: Some(spend) } => {
            format!("{agent} was gone without a result, {}", cost(spend))
        }
        Event::AgentLost { agent, spend: None } => {
            format!("{agent} was gone without a result; its whole share counts as spent")
        }
        Event::InspectionStarted { task } => format!("{task}: looking its changes over"),
        Event::InspectionFinished { task, violations } => {
            format!("{task}: {}", found("its changes follow the rules", "broke rules", violations))
        }
        Event::AcceptanceStarted { task } => format!("{task}: running its acceptance commands"),
        Event::AcceptanceFinished { task, failures } => {
            format!("{task}: {}", found("acceptance passed", "acceptance failed", failures))
        }
        Event::MergePlanned { changesets } => {
            let names: Vec<&str> =
                changesets.iter().map(|changeset| changeset.id.as_str()).collect();
            format!("merge began: {}", names.join(", "))
        }
        Event::FoldStarted { changeset, tasks } => {
            let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
            format!("{changeset}: folding {}", names.join(", "))
        }
        Event::FoldFinished { changeset, result } => match result {
            FoldResult::Folded(fold) => format!(
                "{changeset}: folded as {}, {} {}, +{} -{}",
                short(fold.commit.as_str()),
                fold.files,
                if fold.files == 1 { "file" } else { "files" },
                fold.insertions,
                fold.deletions
            ),
            FoldResult::Conflict { files } => {
                format!("{changeset}: conflicts in {}", files.join(", "))
            }
        },
        Event::VerifyStarted { changeset } => format!("{changeset}: checking the merged tree"),
        Event::VerifyFinished { changeset, result, .. } => match result {
            VerifyResult::Passed => format!("{changeset}: the merged tree passed"),
            VerifyResult::PassedOnRerun => {
                format!("{changeset}: the merged tree passed when checked again")
            }
            VerifyResult::NotConfigured => format!("{changeset}: no check is configured"),
            VerifyResult::Failed { culprit: Some(task), evidence } => {
                format!("{changeset}: the merged tree failed because of {task}: {evidence}")
            }
            VerifyResult::Failed { culprit: None, evidence } => {
                format!("{changeset}: the merged tree failed: {evidence}")
            }
        },
        Event::ChangesetDeferred { changeset, why } => format!("{changeset}: {}", deferral(why)),
        Event::LandStarted { changeset } => format!("{changeset}: landing"),
        Event::LandFinished { changeset, result } => match result {
            LandResult::Landed => format!("{changeset}: landed"),
            LandResult::BaseMoved => format!("{changeset}: the base moved, folding again"),
        },
        Event::PublishStarted { commit } => format!("publishing {}", short(commit.as_str())),
        Event::PublishFinished { commit, result } => match result {
            PublishResult::Published => format!("{} is on the base branch", short(commit.as_str())),
            PublishResult::Waiting { reason } => {
                format!("{} waits to be published: {reason}", short(commit.as_str()))
            }
        },
        Event::PublishRequested { commit, joins: None } => {
            format!("the person asked to publish {}", short(commit.as_str()))
        }
        Event::PublishRequested { commit, joins: Some(base) } => format!(
            "the person asked to publish what landed, joined with {} as {}",
            short(base.as_str()),
            short(commit.as_str())
        ),
        Event::JointVerifyStarted { commit } => {
            format!("checking the joint tree {}", short(commit.as_str()))
        }
        Event::JointVerifyFinished { commit, result } => {
            format!("{}: {}", short(commit.as_str()), joint(result))
        }
        Event::RevertRequested { changeset, undoes, fold } => format!(
            "the person asked to take {undoes} back, as {changeset}: {}",
            short(fold.commit.as_str())
        ),
        Event::SessionCleaned { removed, bytes } => {
            format!("cleaned up, {}: {}", amounts::size(*bytes), removed.join(", "))
        }
        Event::HookStarted { occasion, .. } => {
            format!("running the hook {}{}", occasion.hook().name(), about(occasion))
        }
        Event::HookFinished { number, result } => {
            let number = number + 1;
            match result {
                HookResult::Passed => format!("hook {number} is done"),
                HookResult::Failed { reason } => format!("hook {number} {reason}"),
                HookResult::CutShort => format!("hook {number} was stopped with the session"),
            }
        }
    }
}

fn joint(result: &VerifyResult) -> String {
    match result {
        VerifyResult::Passed => "the joint tree passed".into(),
        VerifyResult::PassedOnRerun => "the joint tree passed when checked again".into(),
        VerifyResult::NotConfigured => "no check is configured".into(),
        VerifyResult::Failed { evidence, .. } => format!("the joint tree failed: {evidence}"),
    }
}

/// What a hook is run for, to follow its name.
fn about(occasion: &Occasion) -> String {
    match occasion {
        Occasion::PlanApproved { .. } | Occasion::ValidationDue { .. } => String::new(),
        Occasion::Landed { changeset, .. } => format!(" for {changeset}"),
        Occasion::TaskFailed { task, .. } => format!(" for {task}"),
    }
}

/// Why a changeset has to wait.
pub fn deferral(why: &Deferral) -> String {
    match why {
        Deferral::NeedsUnlanded(need) => format!("deferred, {need} did not land"),
        Deferral::NothingLeft => "nothing is left of it".into(),
        Deferral::NoBudget => "deferred, no budget to resolve conflicts".into(),
        Deferral::BaseKeepsMoving => "deferred, its base would not hold still".into(),
    }
}

/// Why a session is over, to follow "the session ended:".
pub fn ending(end: End) -> &'static str {
    match end {
        End::Complete => "everything landed",
        End::NothingToDo => "there was nothing to do",
        End::Incomplete => "some tasks failed, were blocked or were dropped",
        End::PlanningFailed => "no usable plan came about",
        End::PlanDeclined => "the person did not want the plan",
        End::PlanRejectedTooOften => {
            "three plans were rejected; write one by hand and pass it with --plan"
        }
        End::Stopped => "the person stopped with work left",
        End::Budget => "the budget is spent",
        End::CycleLimit => "the last allowed cycle is over with work left",
    }
}

/// The task an event is about, if it is about one.
pub fn task(event: &Event) -> Option<&TaskId> {
    match event {
        Event::AgentClaimed { work, .. } => work.task(),
        Event::InspectionStarted { task }
        | Event::InspectionFinished { task, .. }
        | Event::AcceptanceStarted { task }
        | Event::AcceptanceFinished { task, .. } => Some(task),
        Event::HookStarted { occasion, .. } => occasion.task(),
        Event::GateOpened { gate }
        | Event::GateAnswered { gate, .. }
        | Event::GateWithdrawn { gate } => match gate {
            Gate::ValidationFailed(task) | Gate::ValidatorFailed(task) => Some(task),
            Gate::Plan | Gate::Changeset(_) | Gate::Budget | Gate::Session => None,
        },
        _ => None,
    }
}

/// The changeset an event is about, if it is about one.
pub fn changeset(event: &Event) -> Option<&ChangesetId> {
    match event {
        Event::FoldStarted { changeset, .. }
        | Event::FoldFinished { changeset, .. }
        | Event::VerifyStarted { changeset }
        | Event::VerifyFinished { changeset, .. }
        | Event::ChangesetDeferred { changeset, .. }
        | Event::LandStarted { changeset }
        | Event::LandFinished { changeset, .. }
        | Event::RevertRequested { undoes: changeset, .. }
        | Event::AgentClaimed { work: Work::Resolve { changeset }, .. }
        | Event::GateOpened { gate: Gate::Changeset(changeset) }
        | Event::GateAnswered { gate: Gate::Changeset(changeset), .. }
        | Event::GateWithdrawn { gate: Gate::Changeset(changeset) } => Some(changeset),
        Event::HookStarted { occasion, .. } => occasion.changeset(),
        _ => None,
    }
}

/// The agent an event is about, if it is about one.
pub fn agent(event: &Event) -> Option<&AgentId> {
    match event {
        Event::AgentClaimed { agent, .. }
        | Event::AgentStarted { agent, .. }
        | Event::AgentStartFailed { agent, .. }
        | Event::UsageReported { agent, .. }
        | Event::GrantWanted { agent }
        | Event::Granted { agent, .. }
        | Event::SnapshotTaken { agent, .. }
        | Event::StopSent { agent }
        | Event::AgentExited { agent, .. }
        | Event::AgentLost { agent, .. } => Some(agent),
        _ => None,
    }
}

/// What the person is asked, to follow "asked the person".
pub fn question(gate: &Gate) -> String {
    match gate {
        Gate::Plan => "about the plan".into(),
        Gate::ValidationFailed(task) => format!("about {task}, which failed validation"),
        Gate::ValidatorFailed(task) => format!("about {task}, which no validator could judge"),
        Gate::Changeset(changeset) => format!("about changeset {changeset}"),
        Gate::Budget => "whether to raise the budget".into(),
        Gate::Session => "whether to go on".into(),
    }
}

fn answered(gate: &Gate, answer: &Answer) -> String {
    let subject = match gate {
        Gate::Plan => "the plan".to_owned(),
        Gate::ValidationFailed(task) | Gate::ValidatorFailed(task) => task.to_string(),
        Gate::Changeset(changeset) => changeset.to_string(),
        Gate::Budget => "the budget".to_owned(),
        Gate::Session => "the session".to_owned(),
    };
    let said = match answer {
        Answer::Plan(PlanAnswer::Approve) | Answer::Changeset(ChangesetAnswer::Approve) => {
            "approved".into()
        }
        Answer::Plan(PlanAnswer::Quit) => "quit".into(),
        Answer::Plan(PlanAnswer::Replan { notes })
        | Answer::Session(SessionAnswer::Replan { notes }) => format!("plan again: {notes}"),
        Answer::Plan(PlanAnswer::Edit { plan }) => {
            format!("edited, now {}", tasks(plan.tasks.len()))
        }
        Answer::ValidationFailed(ValidationAnswer::Requeue { notes }) if notes.is_empty() => {
            "do it again".into()
        }
        Answer::ValidationFailed(ValidationAnswer::Requeue { notes }) => {
            format!("do it again: {notes}")
        }
        Answer::ValidationFailed(ValidationAnswer::Edit { .. }) => "edited, do it again".into(),
        Answer::ValidationFailed(ValidationAnswer::Drop) => "drop it".into(),
        Answer::ValidatorFailed(ValidatorAnswer::ManualPass) => "passed by hand".into(),
        Answer::ValidatorFailed(ValidatorAnswer::Skip) => "give it up".into(),
        Answer::ValidatorFailed(ValidatorAnswer::Retry) => "validate again".into(),
        Answer::Changeset(ChangesetAnswer::Skip) => "not now".into(),
        Answer::Changeset(ChangesetAnswer::Reject { reason }) => format!("rejected: {reason}"),
        Answer::Budget(BudgetAnswer::Stop) | Answer::Session(SessionAnswer::Stop) => "stop".into(),
        Answer::Budget(BudgetAnswer::Raise { by }) => format!("raised by {by}"),
        Answer::Session(SessionAnswer::Continue { retry }) if retry.is_empty() => "go on".into(),
        Answer::Session(SessionAnswer::Continue { retry }) => {
            let names: Vec<&str> = retry.iter().map(TaskId::as_str).collect();
            format!("go on, with another chance for {}", names.join(", "))
        }
    };
    format!("the person on {subject}: {said}")
}

pub fn job(work: &Work) -> String {
    match work {
        Work::Plan => "make a plan".into(),
        Work::Develop { task, attempt } => format!("work on {task}, attempt {attempt}"),
        Work::Validate { task, attempt } => format!("validate attempt {attempt} at {task}"),
        Work::Resolve { changeset } => format!("resolve the conflicts of {changeset}"),
    }
}

/// Which account, unless it is the usual one.
pub fn of_account(account: &AccountName) -> String {
    if account.is_main() { String::new() } else { format!(" account `{account}`") }
}

/// Why an executor that would have come first was not taken.
fn not_taken(other: &PassedOver) -> String {
    let PassedOver { executor, because } = other;
    match because {
        Shortcoming::Failed => format!("; {executor} did not do it"),
        Shortcoming::Paused { until } => {
            format!("; {executor} has to wait for its provider until {until}")
        }
        Shortcoming::Overloaded { until } => {
            format!("; the provider of {executor} was overloaded, and is left alone until {until}")
        }
        Shortcoming::Full { agents } => {
            format!("; {executor} has all of its {agents} agents at work")
        }
    }
}

fn limits(cap: Budget, grant: Budget) -> String {
    match (cap, grant) {
        (Budget::Unlimited, Budget::Unlimited) => String::new(),
        (cap, Budget::Unlimited) => format!(", for {cap} at most"),
        (Budget::Unlimited, grant) => format!(", for {grant} to begin with"),
        (cap, grant) => format!(", for {cap} at most, {grant} to begin with"),
    }
}

fn outcome_words(outcome: &Outcome) -> String {
    match (outcome, outcome.consequence()) {
        (_, Some(consequence)) => consequence.note,
        (Outcome::Finished { product }, None) => match product {
            Product::Plan(plan) => format!("returned a plan of {}", tasks(plan.tasks.len())),
            Product::Commit(commit) => format!("finished with commit {}", short(commit.as_str())),
            Product::Verdict(verdict) if verdict.pass => "passed it".into(),
            Product::Verdict(verdict) => format!("failed it: {}", verdict.notes),
            Product::Resolution(fold) => {
                format!("resolved the conflicts in {}", short(fold.commit.as_str()))
            }
            Product::Unresolvable { report } => format!("would not resolve it: {report}"),
        },
        (_, None) => "finished".into(),
    }
}

fn found(nothing: &str, something: &str, findings: &[String]) -> String {
    if findings.is_empty() {
        nothing.to_owned()
    } else {
        format!("{something}: {}", findings.join("; "))
    }
}

fn cost(spend: &Spend) -> String {
    format!("{} ({} tokens)", spend.cost, spend.usage.total())
}

/// So many tasks.
/// What was found out about the boundaries.
pub fn proven(proof: &Proof, outdated: &[String]) -> String {
    let executors: Vec<String> =
        proof.under.executors.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut text = format!(
        "{} of {} attacks were stopped, with {}, sandbox: {}",
        proof.stopped,
        proof.tried,
        executors.join(", "),
        proof.under.sandbox
    );
    for (what, list) in [("open", &proof.open[..]), ("outdated", outdated)] {
        if !list.is_empty() {
            text = format!("{text}; {what}: {}", list.join(", "));
        }
    }
    text
}

pub fn tasks(count: usize) -> String {
    if count == 1 { "1 task".into() } else { format!("{count} tasks") }
}

/// The beginning of an object's name, which is enough to know it again.
pub fn short(oid: &str) -> &str {
    oid.get(..10).unwrap_or(oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_cannot_steer_a_terminal_or_forge_a_line() {
        let evidence =
            "boom\x1b[2J\x1b]0;x\x07\n  999  2026-01-01 forged \u{202e}ba\u{9b}".to_owned();
        let event = Event::VerifyFinished {
            changeset: ChangesetId::new("ui.c1").unwrap(),
            result: VerifyResult::Failed { culprit: None, evidence },
            commands: Vec::new(),
        };
        assert_eq!(
            sentence(&event),
            r"ui.c1: the merged tree failed: boom\u{1b}[2J\u{1b}]0;x\u{7}\n  999  2026-01-01 forged \u{202e}ba\u{9b}"
        );
        let good = "Größe 😀 `C:\\x` — ok";
        assert!(matches!(plain(good), Cow::Borrowed(same) if same == good));
    }
}

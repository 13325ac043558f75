//! What the orchestrator finds out about finished work by itself, in tasks
//! beside the session.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use blueflame_core::event::{Event, Work};
use blueflame_core::ids::{Oid, TaskId};
use blueflame_core::inspection;
use blueflame_core::state::task::Task;
use serde_json::Value;
use tokio::sync::watch;

use super::Session;
use super::bench::Bench;
use super::post::{Occurrence, Trouble};
use super::prepare::workspace_of;
use super::site::Site;
use crate::checks::acceptance;
use crate::checks::command::{CommandResult, Surroundings};
use crate::checks::{diagnostics, facts};

/// How long each acceptance command may take.
const ACCEPTANCE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Looks the finished work of a task over.
pub fn inspect(session: &Session, id: &TaskId) {
    let Some(task) = session.state.board.get(id).cloned() else { return };
    let (site, post) = session.parts();
    let id = id.clone();
    tokio::spawn(async move {
        match violations(&site, &task).await {
            Ok((violations, remarks)) => {
                keep(&site, &task, "remarks", &remarks);
                for remark in remarks {
                    post.send(Occurrence::Warning(format!("{id}: {remark}")));
                }
                post.fact(Event::InspectionFinished { task: id, violations });
            }
            Err(why) => post.send(Occurrence::Broken(why)),
        }
    });
}

async fn violations(site: &Site, task: &Task) -> Result<(Vec<String>, Vec<String>), String> {
    let Some(commit) = task.phase.commit() else { return Ok(Default::default()) };
    let began = site.beginnings.of(&site.last_attempt(task)).map_err(|error| error.to_string())?;
    let author = format!("{} <{}>", began.author.name, began.author.email);
    let now = jiff::Timestamp::now().as_second();
    let work = facts::gather(site.workspaces.objects(), &began.start, commit, &author, now)
        .await
        .map_err(|error| error.to_string())?;
    let policy = site.policy_for_work(&task.spec.file_locks).map_err(|error| error.to_string())?;
    // Much work takes its time to be looked over; the session goes on meanwhile.
    let found = tokio::task::spawn_blocking(move || inspection::inspect(&policy, &work))
        .await
        .map_err(|error| format!("the inspection broke off: {error}"))?;
    let mut violations = found.violations();
    if !violations.is_empty() {
        let work = Work::Develop { task: task.spec.id.clone(), attempt: task.attempts };
        violations.push(site.workspaces.kept(&workspace_of(site, &work, &began.start)));
    }
    Ok((violations, found.remarks()))
}

/// Runs the acceptance commands, and then the diagnostics that fit, on a clean
/// checkout of the task's commit.
pub fn accept(session: &Session, id: &TaskId) {
    let Some(task) = session.state.board.get(id).cloned() else { return };
    let (site, post) = session.parts();
    let mut stop = session.stop.subscribe();
    let id = id.clone();
    tokio::spawn(async move {
        let Some(commit) = task.phase.commit() else { return };
        let found = match acceptance_of(&site, &task, commit, &mut stop).await {
            Ok(found) => found,
            Err(trouble) => return post.trouble(trouble),
        };
        // What was cut short says nothing; it is run again when the session
        // goes on.
        if *stop.borrow() {
            return;
        }
        keep(&site, &task, "acceptance", &found.acceptance);
        keep(&site, &task, "diagnostics", &found.diagnostics);
        let failures = acceptance::failures(&found.acceptance);
        post.fact(Event::AcceptanceFinished { task: id, failures });
    });
}

/// What the commands came to.
#[derive(Default)]
struct Found {
    acceptance: Vec<CommandResult>,
    /// For the validator; empty if there will be none.
    diagnostics: Vec<CommandResult>,
}

async fn acceptance_of(
    site: &Site,
    task: &Task,
    commit: &Oid,
    stop: &mut watch::Receiver<bool>,
) -> Result<Found, Trouble> {
    let validation = &site.config.validation;
    let commands: Vec<String> =
        validation.acceptance.iter().chain(&task.spec.acceptance).cloned().collect();
    let (diagnostics, timeout) = match &validation.diagnostics {
        Some(it) if !it.commands.is_empty() => {
            let names = diagnostics::names_of(site.workspaces.objects(), commit);
            let names = names.await.map_err(|error| error.to_string())?;
            let path = OsStr::new(&site.path);
            (diagnostics::fitting(&it.commands, &commands, &names, path), it.timeout)
        }
        _ => (Vec::new(), Duration::ZERO),
    };
    let mut found = Found::default();
    if commands.is_empty() && diagnostics.is_empty() {
        return Ok(found);
    }
    let bench = Bench::of(site, commit, stop).await?;
    if !commands.is_empty() {
        found.acceptance = bench.run(&commands, ACCEPTANCE_TIMEOUT, stop).await?;
    }
    if found.acceptance.iter().all(CommandResult::passed) {
        found.diagnostics = bench.run(&diagnostics, timeout, stop).await?;
    }
    Ok(found)
}

/// What commands that we run find around them.
pub fn surroundings(site: &Site) -> Result<Surroundings, String> {
    let (home, tmp) = (site.session.path().join("home"), site.session.path().join("tmp"));
    for directory in [&home, &tmp] {
        fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    }
    Ok(Surroundings {
        program: site.blueflame.clone(),
        home,
        tmp,
        path: site.path.clone().into(),
        variables: BTreeMap::default(),
        sandbox: site.sandbox.clone(),
    })
}

fn kept(site: &Site, task: &Task, what: &str) -> PathBuf {
    site.last_attempt(task).root().join(format!("{what}.json"))
}

/// Keeps results beside the attempt, for validators and people. Where there are none,
/// there is no file.
fn keep<T: serde::Serialize>(site: &Site, task: &Task, what: &str, results: &[T]) {
    let file = kept(site, task, what);
    if results.is_empty() {
        // Left by an orchestrator that was killed before it told of them.
        let _ = fs::remove_file(file);
    } else if let Ok(json) = serde_json::to_vec_pretty(results) {
        let _ = fs::write(file, json);
    }
}

/// The results of the acceptance commands, as they were kept.
pub fn acceptance_results(site: &Site, task: &Task) -> Vec<CommandResult> {
    kept_results(site, task, "acceptance")
}

/// The results of the diagnostics, as they were kept.
pub fn diagnostics_results(site: &Site, task: &Task) -> Vec<CommandResult> {
    kept_results(site, task, "diagnostics")
}

fn kept_results(site: &Site, task: &Task, what: &str) -> Vec<CommandResult> {
    let text = fs::read(kept(site, task, what)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// What the inspection remarked, as it was kept.
pub fn remarks(site: &Site, task: &Task) -> Vec<String> {
    let text = fs::read(kept(site, task, "remarks")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// What the policy saw a worker do and the inspection remarked, in short.
pub fn audit_summary(site: &Site, task: &Task) -> Option<String> {
    let text = fs::read_to_string(site.last_attempt(task).audit_file()).ok()?;
    let lines: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let denied: Vec<&Value> = lines.iter().filter(|line| line["decision"] == "deny").collect();
    let mut summary = format!("{} tool calls, {} of them denied.", lines.len(), denied.len());
    for line in denied.iter().take(10) {
        let part = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let _ = write!(summary, "\n- {} {}: {}", part("tool"), part("target"), part("rule"));
    }
    let remarks = remarks(site, task);
    if !remarks.is_empty() {
        summary.push_str("\nRemarks on the change:");
    }
    for remark in remarks {
        let _ = write!(summary, "\n- {remark}");
    }
    Some(summary)
}

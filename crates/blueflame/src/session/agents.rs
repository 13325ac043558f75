//! Agents at work: each is started, followed and concluded by a task of its own,
//! which turns what it sees into facts for the session.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blueflame_core::event::{Event, StartFault, Work};
use blueflame_core::ids::{AccountName, AgentId};
use blueflame_core::money::Spend;
use blueflame_core::outcome::{Killer, Outcome};
use blueflame_core::skill::Handed;
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::KILL_PATIENCE;
use super::bench::PREPARE_TIMEOUT;
use super::brief::Brief;
use super::conclude::{self, Concluded};
use super::post::{Occurrence, Post};
use super::prepare::{self, Fault, Job, NotStarted, Ready, surroundings};
use super::silence::Silence;
use super::site::Site;
use crate::attempt::conclude::UNNAMED_PAUSE;
use crate::attempt::directory::{Directory, Registered, Standing};
use crate::attempt::link::{self, Link, StartError, Started};
use crate::attempt::messages::{Command, Report};
use crate::attempt::sealed::Sealed;
use crate::attempt::spec::Secrets;
use crate::checks::command::{self as command_run, CommandExit};
use crate::child_end;
use crate::executor::Sight;
use crate::process_tree::{kill_and_wait, wait_for_end};
use crate::room;
use crate::sandbox;
use crate::skills;

/// How long after the line broke one that still runs is called again.
const CALL_AGAIN: Duration = Duration::from_millis(200);

/// Spending is recorded at most this often; the end always is.
const USAGE_EVERY: Duration = Duration::from_secs(2);

/// An attempt process that misses this many signs of life, and some time for a
/// busy machine, stands still.
const MISSED: u32 = 3;
const SLACK: Duration = Duration::from_secs(5);

/// An agent run that was started, by us or by an orchestrator before us.
#[derive(Clone, Debug)]
pub struct Run {
    pub agent: AgentId,
    pub work: Work,
    pub brief: Brief,
    /// Whose limits it may run into.
    pub account: AccountName,
}

/// Starts an agent and follows it to its end.
pub async fn run(
    site: Arc<Site>,
    job: Job,
    post: Post,
    commands: UnboundedReceiver<Command>,
    stop: tokio::sync::watch::Receiver<bool>,
) {
    let agent = job.agent.clone();
    let (work, brief, account) = (job.work.clone(), job.brief.clone(), job.account.clone());
    match start(&site, job, &post, stop).await {
        Ok((registered, skills)) => {
            let process = registered.process.clone();
            post.fact(Event::AgentStarted { agent: agent.clone(), process, skills });
            follow(site, Run { agent, work, brief, account }, registered, post, commands).await;
        }
        Err(NotStarted { reason, fault: Fault::Own(fault) }) => {
            post.fact(Event::AgentStartFailed { agent, reason, fault });
        }
        Err(NotStarted { reason, fault: Fault::Surroundings }) => {
            // It is not the task's fault: first the session stops, and then this
            // is one of those that it stopped.
            post.send(Occurrence::Obstructed(reason.clone()));
            let fault = StartFault::Stopped;
            post.fact(Event::AgentStartFailed { agent, reason, fault });
        }
    }
}

async fn start(
    site: &Arc<Site>,
    job: Job,
    post: &Post,
    mut stop: tokio::sync::watch::Receiver<bool>,
) -> Result<(Registered, Vec<Handed>), NotStarted> {
    let (agent, account) = (job.agent.clone(), job.account.clone());
    let preparing = Arc::clone(site);
    let (ready, directory) = spawn_blocking(move || furnish(&preparing, &job))
        .await
        .map_err(|error| error.to_string())??;
    for warning in ready.warnings {
        post.send(Occurrence::Warning(warning));
    }
    post.send(Occurrence::Seen { agent, what: format!("prompt: {}", ready.sizes) });
    let handed = ready.spec.order.handed();
    // A planner runs nothing, so it needs nothing built.
    let prepare = if ready.spec.work == Work::Plan { &[][..] } else { &ready.workspace.prepare };
    if !prepare.is_empty() {
        directory.make_room().map_err(|error| surroundings(&error))?;
    }
    for command in prepare {
        let surroundings = command_run::Surroundings {
            program: site.blueflame.clone(),
            home: directory.home(),
            tmp: directory.tmp(),
            path: site.path.clone().into(),
            variables: sandbox::stores(site.sandbox.tier),
            sandbox: site.sandbox.clone(),
        };
        let order = command_run::Order {
            command,
            directory: &ready.workspace.path,
            timeout: PREPARE_TIMEOUT,
            keep: None,
        };
        let result = command_run::run(order, &surroundings, &mut stop).await;
        if !result.passed() {
            // The machine's fault is not the task's.
            let places = [&ready.workspace.path, &surroundings.home, &surroundings.tmp];
            if let Some(reason) = result.lacks_room(&places.map(PathBuf::as_path)) {
                return Err(NotStarted { reason, fault: Fault::Surroundings });
            }
            let reason =
                format!("`{command}` (worktree.prepare) {}: {}", result.exit, result.output);
            let stopped = result.exit == CommandExit::Stopped;
            let fault = if stopped { StartFault::Stopped } else { StartFault::Place };
            return Err(NotStarted { reason, fault: Fault::Own(fault) });
        }
    }
    let site = Arc::clone(site);
    let started = spawn_blocking(move || {
        let secrets = Secrets { credential: site.credential(&account) };
        link::start(&site.blueflame, &directory, &secrets)
            .map_err(|error: StartError| surroundings(&error))
    });
    let Started { registered, child } = started.await.map_err(|error| error.to_string())??;
    // Whoever started it has to take leave of it.
    tokio::spawn(child_end::taken_leave_of(child));
    Ok((registered, handed))
}

/// Everything that an attempt process finds when it begins. It takes as long as a
/// checkout does.
fn furnish(site: &Arc<Site>, job: &Job) -> Result<(Ready, Directory), NotStarted> {
    let ready = prepare::prepare(site, job)?;
    let directory = site.beginnings.begin(site.attempt(&job.work, &job.agent).root(), &ready.spec);
    let directory = directory.map_err(|error| surroundings(&error))?;
    skills::write(&ready.skills, &directory.skill_set()).map_err(|error| surroundings(&error))?;
    Ok((ready, directory))
}

/// Follows an agent that runs, however it was started.
pub async fn follow(
    site: Arc<Site>,
    run: Run,
    registered: Registered,
    post: Post,
    mut commands: UnboundedReceiver<Command>,
) {
    let directory = site.attempt(&run.work, &run.agent);
    let mut contact = Contact {
        unsent: VecDeque::new(),
        silence: Silence::begin(patience(&site, &directory), Instant::now()),
    };
    loop {
        listen(&run, &registered.sockets, &post, &mut commands, &mut contact).await;
        contact.silence.go_on(Instant::now());
        if contact.silence.is_too_long() {
            let silent = contact.silence.length().as_secs();
            let text = format!("{} gave no sign of life for {silent} s, and is ended", run.agent);
            post.send(Occurrence::Warning(text));
            let process = registered.process.clone();
            // What it leaves is looked for once it is known to be gone.
            let _ = spawn_blocking(move || kill_and_wait(&process, KILL_PATIENCE)).await;
            contact.silence.break_off(Instant::now());
        }
        // The line is down: it ended, it died, or we were too slow.
        match directory.standing() {
            Ok(Standing::Ended(sealed)) => {
                collect(&site, run, *sealed, &post).await;
                return;
            }
            Ok(Standing::Lost { spend }) => {
                end_leftovers(&directory, &post);
                post.fact(Event::AgentLost { agent: run.agent, spend });
                return;
            }
            Ok(Standing::NotStarted) => {
                let spend = Some(Spend::default());
                post.fact(Event::AgentLost { agent: run.agent, spend });
                return;
            }
            Ok(Standing::Running(_)) => {
                // On its way out, most likely; or else it is called again.
                let process = registered.process.clone();
                let _ = spawn_blocking(move || wait_for_end(&process, CALL_AGAIN)).await;
            }
            Err(error) => {
                post.send(Occurrence::Broken(error.to_string()));
                return;
            }
        }
    }
}

/// What is kept of one connection for the next.
struct Contact {
    /// Commands that could not be sent.
    unsent: VecDeque<Command>,
    /// Since the other side last said something.
    silence: Silence,
}

/// How long an attempt may be silent, as its spec says.
fn patience(site: &Site, directory: &Directory) -> Option<Duration> {
    let heartbeat = site.beginnings.of(directory).ok()?.heartbeat?;
    Some(heartbeat.saturating_mul(MISSED) + SLACK)
}

/// Ends what outlived an attempt process that died.
pub fn end_leftovers(directory: &Directory, post: &Post) {
    if let Err(error) = directory.end_leftovers() {
        post.send(Occurrence::Warning(format!("something of a lost agent may still run: {error}")));
    }
}

/// Hears reports and passes commands on, until the other side hangs up or is
/// silent for too long.
async fn listen(
    run: &Run,
    sockets: &Path,
    post: &Post,
    commands: &mut UnboundedReceiver<Command>,
    contact: &mut Contact,
) {
    let Ok(mut link) = Link::connect(sockets).await else { return };
    let mut recorded = Spend::default();
    let mut recorded_at: Option<Instant> = None;
    loop {
        while let Some(command) = contact.unsent.front() {
            if link.send(command).await.is_err() {
                return;
            }
            contact.unsent.pop_front();
        }
        let report = tokio::select! {
            // What was said counts, also if we were too late to hear it.
            biased;
            report = link.next() => match report {
                Ok(Some(report)) => report,
                Ok(None) | Err(_) => return,
            },
            Some(command) = commands.recv() => {
                contact.unsent.push_back(command);
                continue;
            }
            () = contact.silence.goes_on() => {
                contact.silence.go_on(Instant::now());
                if contact.silence.is_too_long() {
                    return;
                }
                continue;
            }
        };
        contact.silence.break_off(Instant::now());
        let agent = run.agent.clone();
        match report {
            Report::Usage { spend } => {
                let due = recorded_at.is_none_or(|at| at.elapsed() >= USAGE_EVERY);
                if spend != recorded && due {
                    recorded = spend;
                    recorded_at = Some(Instant::now());
                    post.fact(Event::UsageReported { agent, spend });
                }
            }
            Report::GrantWanted => post.fact(Event::GrantWanted { agent }),
            Report::ProviderLimited { until, .. } => {
                let unnamed = || Timestamp::now() + UNNAMED_PAUSE;
                let (until, account) = (until.unwrap_or_else(unnamed), run.account.clone());
                post.fact(Event::ProviderLimited { until, account });
            }
            Report::Snapshot { commit } => post.fact(Event::SnapshotTaken { agent, commit }),
            Report::Questions { ticket, questions } => {
                post.send(Occurrence::Asked { agent, ticket, questions });
            }
            Report::Judged { tool, target, allowed, rule } => {
                let denied = if allowed { String::new() } else { format!("denied ({rule}): ") };
                post.send(Occurrence::Seen { agent, what: format!("{denied}{tool} {target}") });
            }
            Report::Seen(Sight::Said { text }) => {
                post.send(Occurrence::Seen { agent, what: text });
            }
            Report::Seen(Sight::Retries { status }) => {
                let status = status.map_or_else(String::new, |status| format!(" after {status}"));
                post.send(Occurrence::Seen { agent, what: format!("asks again{status}") });
            }
            Report::Warning { text } => {
                post.send(Occurrence::Warning(format!("{agent}: {text}")));
            }
            Report::QuestionsWithdrawn { ticket } => {
                post.send(Occurrence::TakenBack { agent, ticket });
            }
            // It waits for nobody any more; what comes late is not heard.
            Report::Heartbeat
            | Report::Seen(Sight::Ready { .. } | Sight::Used { .. })
            | Report::GrantNotWanted => {}
            Report::Ended => return,
        }
    }
}

/// Turns a sealed result into what the run came to.
pub async fn collect(site: &Arc<Site>, run: Run, sealed: Sealed, post: &Post) {
    let agent = run.agent.clone();
    let spend = sealed.spend;
    let full_disk = sealed.full_disk.is_some();
    let concluding = Arc::clone(site);
    if conclude::workspace_is_gone(site, &run) {
        let text = format!(
            "the workspace of {agent} was removed or moved; what was not saved is done again"
        );
        post.send(Occurrence::Warning(text));
    }
    let concluded = spawn_blocking(move || conclude::conclude(&concluding, &run, sealed)).await;
    match concluded {
        Ok(Err(reason)) => post.send(Occurrence::NotTaken { agent, reason }),
        Ok(Ok(Concluded { mut outcome, snapshot, remarks })) => {
            for text in remarks {
                post.send(Occurrence::Warning(format!("{agent}: {text}")));
            }
            if full_disk && may_lack_room(&outcome) {
                // The next attempt waits for room, unless there is some by now.
                if let Some(why) = room::lacking(&[&site.repository], "") {
                    let ended = outcome.name();
                    let reason = format!("{agent} ended as {ended}, and {why}");
                    post.send(Occurrence::Obstructed(reason));
                }
                outcome = Outcome::Killed { by: Killer::Other };
            }
            if let Some(commit) = snapshot {
                post.fact(Event::SnapshotTaken { agent: agent.clone(), commit });
            }
            post.fact(Event::AgentExited { agent, outcome, spend });
        }
        Err(error) => post.send(Occurrence::Broken(error.to_string())),
    }
}

/// Whether a run may have come to this because there was no room for anything else.
fn may_lack_room(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::NoOp
        | Outcome::Uncommitted
        | Outcome::MaxTurns
        | Outcome::TimedOut
        | Outcome::Crashed { .. }
        | Outcome::Malformed { .. } => true,
        Outcome::Finished { .. }
        | Outcome::BudgetSpent { .. }
        | Outcome::RateLimited { .. }
        | Outcome::Overloaded { .. }
        | Outcome::Killed { .. }
        | Outcome::Violated { .. } => false,
    }
}

//! `blueflame run --dry-run`: the whole plan on paper. Starts no agent, runs no
//! command of the project and writes nothing anywhere; git is asked where the
//! base branch is.

mod agents;
mod page;

use std::collections::BTreeMap;
use std::process::ExitCode;

use blueflame_core::config::file::SandboxMode;
use blueflame_core::config::{Config, file};
use blueflame_core::forecast::{Estimates, Forecast, Parallel};
use blueflame_core::hook::Hook;
use blueflame_core::ids::Role;
use blueflame_core::memory::learned::Learned;
use blueflame_core::money::Budget;
use blueflame_core::plan::Plan;
use blueflame_core::rules::{PerRole, Rules, WaveMode};
use serde::Serialize;

use self::agents::AgentLine;
use super::run;
use crate::config_file::Loaded;
use crate::failure::{Failure, Kind};
use crate::memory::Recall;
use crate::sandbox::{Boundary, Tier};
use crate::session::weaker;
use crate::skills::{self, Person};
use crate::stdout;

/// Everything that would be done, for a page and for scripts alike.
#[derive(Debug, Serialize)]
struct Paper<'a> {
    goal: &'a str,
    base_branch: &'a str,
    /// Where that branch is now.
    base_commit: Option<String>,
    waves: WaveMode,
    workers: u32,
    validators: u32,
    max_retries: u32,
    /// `null` if a planner would make one first.
    plan: Option<&'a Plan>,
    /// Groups in the order in which they would land, with their tasks.
    changesets: Vec<Changeset>,
    /// Where each task would be worked on, with `<session>` for its name.
    workspaces: Vec<Place>,
    agents: Vec<AgentLine>,
    commands: Commands<'a>,
    estimates: Estimates,
    /// Where each key of `forecast` has its value from.
    estimate_sources: BTreeMap<&'static str, Source>,
    /// `null` without a plan.
    forecast: Option<Forecast>,
    parallel: Option<Parallel>,
    session_budget: Budget,
    agent_timeout_seconds: u64,
    weaker_settings: Vec<String>,
    /// Why nothing could be started right now; `null` if it could.
    would_refuse: Option<String>,
}

#[derive(Debug, Serialize)]
struct Changeset {
    group: String,
    tasks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Place {
    task: String,
    directory: String,
    branch: String,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Source {
    Set,
    Learned,
    Default,
}

/// Command lines of the person's, none of which is run now.
#[derive(Debug, Serialize)]
struct Commands<'a> {
    prepare: &'a [String],
    acceptance: &'a [String],
    verify: &'a [String],
    hooks: Vec<(&'static str, &'a str)>,
    hook_timeout_seconds: u64,
    copy: Vec<String>,
    share: Vec<String>,
    scratch: Vec<String>,
}

/// Shows what would be done.
pub fn show(
    loaded: &Loaded,
    goal: &str,
    plan: Option<&Plan>,
    json: bool,
) -> Result<ExitCode, Failure> {
    let paper = paper(loaded, goal, plan);
    let text = if json {
        let document =
            serde_json::to_string(&paper).map_err(|error| Failure::new(Kind::Internal, error))?;
        format!("{document}\n")
    } else {
        paper.page()
    };
    stdout::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn paper<'a>(loaded: &'a Loaded, goal: &'a str, plan: Option<&'a Plan>) -> Paper<'a> {
    let config = &loaded.config;
    let estimates = estimates(loaded);
    let rules = Rules { estimates: estimates.clone(), ..config.rules() };
    let forecast = plan.and_then(|plan| Forecast::of(&rules, plan));
    let interactive = config.planning.interactive;
    let skills = skills::look(config, &loaded.repository, &Person::here(), interactive);
    let paths = |list: &[blueflame_core::lock_path::LockPath]| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let hooks = Hook::ALL
        .into_iter()
        .filter_map(|hook| config.hooks.command(hook).map(|command| (hook.name(), command)));
    Paper {
        goal,
        base_branch: &config.project.base_branch,
        base_commit: loaded.base.as_ref().map(ToString::to_string),
        waves: config.waves,
        workers: config.concurrency.workers,
        validators: config.concurrency.validators,
        max_retries: config.limits.max_retries,
        plan,
        changesets: plan.map(changesets).unwrap_or_default(),
        workspaces: plan.map(|plan| places(loaded, plan)).unwrap_or_default(),
        agents: agents::lines(config, &skills, plan),
        commands: Commands {
            prepare: &config.worktree.prepare,
            acceptance: &config.validation.acceptance,
            verify: &config.merge.verify,
            hooks: hooks.collect(),
            hook_timeout_seconds: config.hooks.timeout.as_secs(),
            copy: paths(&config.worktree.copy),
            share: paths(&config.worktree.share),
            scratch: paths(&config.worktree.scratch),
        },
        estimate_sources: sources(&loaded.file.forecast, estimates.learned.as_ref()),
        estimates,
        parallel: forecast.as_ref().map(Forecast::parallel),
        forecast,
        session_budget: config.limits.session_budget,
        agent_timeout_seconds: config.limits.agent_timeout.as_secs(),
        weaker_settings: weaker::settings(config, expected(config)),
        would_refuse: run::missing(loaded).err().as_ref().map(refusal),
    }
}

/// The sandbox that the configuration asks for. Whether the machine has it is
/// only tried when a session begins.
fn expected(config: &Config) -> Boundary {
    let tier = match config.sandbox.mode {
        SandboxMode::Auto | SandboxMode::Namespaces => Tier::Namespaces,
        SandboxMode::Landlock => Tier::Landlock,
        SandboxMode::Off => Tier::Off,
    };
    Boundary { tier, counting: config.sandbox.process_limit }
}

/// What agents will probably take: as earlier sessions have taught, or as usual.
fn estimates(loaded: &Loaded) -> Estimates {
    let recall = Recall::as_it_is(&loaded.store(), loaded.config.memory.as_ref());
    recall.estimates(&loaded.config, &loaded.file)
}

fn sources(forecast: &file::Forecast, learned: Option<&Learned>) -> BTreeMap<&'static str, Source> {
    let source = |set: bool, role: Option<Role>| {
        let roles = learned.map_or(&[][..], |learned| &learned.roles);
        if set {
            Source::Set
        } else if roles.iter().any(|it| Some(it.role) == role) {
            Source::Learned
        } else {
            Source::Default
        }
    };
    let PerRole { planner, worker, validator, .. } = forecast.by_hand();
    BTreeMap::from([
        ("planner_time", source(planner.time, Some(Role::Planner))),
        ("planner_usd", source(planner.cost, Some(Role::Planner))),
        ("worker_time", source(worker.time, Some(Role::Worker))),
        ("worker_usd", source(worker.cost, Some(Role::Worker))),
        ("validator_time", source(validator.time, Some(Role::Validator))),
        ("validator_usd", source(validator.cost, Some(Role::Validator))),
        ("check_time", source(forecast.check_time.span.is_some(), None)),
    ])
}

fn changesets(plan: &Plan) -> Vec<Changeset> {
    let order = plan.order();
    let groups = plan.group_order().into_iter();
    groups
        .map(|group| Changeset {
            tasks: order
                .iter()
                .map(|&at| &plan.tasks[at])
                .filter(|task| task.group == group)
                .map(|task| task.id.to_string())
                .collect(),
            group: group.to_string(),
        })
        .collect()
}

fn places(loaded: &Loaded, plan: &Plan) -> Vec<Place> {
    let below = loaded.config.project.worktree_dir.to_string();
    let below = below.trim_end_matches('/');
    let tasks = plan.order().into_iter().map(|at| &plan.tasks[at].id);
    tasks
        .map(|task| Place {
            directory: format!("{below}/<session>/{task}.a1"),
            branch: format!("blueflame/<session>/{task}/a1"),
            task: task.to_string(),
        })
        .collect()
}

/// Details that were shown already have no words of their own.
fn refusal(failure: &Failure) -> String {
    match failure.message() {
        "" => "see the problems above".to_owned(),
        message => message.to_owned(),
    }
}

//! From the file as written to the checked configuration.
//!
//! Every rule is tried, whatever the others say, so that one run shows all
//! problems. A section that has problems gives `None`, and then there is no
//! configuration.

mod agents;
mod gateway;
mod limits;
mod permissions;
mod project;
mod skills;
mod validation;
mod values;

use std::time::Duration;

use super::file::{ConfigFile, WavePace};
use super::{Config, Decay, Hooks, Memory, Merge, Planning};
use crate::forecast::{Estimate, Estimates};
use crate::rules::WaveMode;
use crate::yaml::{Problem, Problems, Spanned};
use values::Check;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
pub use agents::holds_credentials;

pub(super) fn check(file: &ConfigFile) -> (Option<Config>, Vec<Problem>) {
    let problems = Problems::default();
    let check = Check { problems: &problems };
    let config = sections(check, file).filter(|_| !problems.has_errors());
    if let Some(config) = &config {
        permissions::examples(check, file, config);
    }
    (config, problems.into_sorted())
}

fn sections(check: Check<'_>, file: &ConfigFile) -> Option<Config> {
    // All of them first: `?` further down must not keep one from being looked at.
    let project = project::project(check, &file.project);
    let concurrency = limits::concurrency(check, &file.concurrency);
    let limits = limits::limits(check, &file.limits);
    let sandbox = agents::sandbox(check, &file.sandbox);
    let models = agents::models(check, &file.models);
    let executors = agents::executors(check, &file.executors, &file.gateway);
    let gateway = gateway::gateway(check, &file.gateway);
    let worktree = project::worktree(check, &file.worktree);
    let permissions = permissions::permissions(check, &file.permissions);
    let validation = validation::validation(check, &file.validation);
    if let (Some(permissions), Some(validation)) = (&permissions, &validation) {
        permissions::contradictions(check, file, permissions, validation);
    }
    let verify = check.commands("merge.verify", &file.merge.verify);
    let skills = skills::skills(check, file);
    let memory = memory(check, file);
    let hooks = hooks(check, file);
    let estimates = estimates(check, file);
    Some(Config {
        project: project?,
        concurrency,
        limits: limits?,
        sandbox,
        planning: Planning { interactive: file.planning.interactive.value },
        models,
        executors: executors?,
        gateway: gateway?,
        worktree,
        permissions: permissions?,
        validation: validation?,
        merge: Merge { verify, target: file.merge.target.value },
        waves: match file.waves.mode.value {
            WavePace::Strict => WaveMode::Strict,
            WavePace::Pipelined => WaveMode::Pipelined,
        },
        skills,
        memory,
        hooks: hooks?,
        estimates: estimates?,
    })
}

/// What a prompt has room for.
const MOST_CONTEXT_TOKENS: u32 = 16_000;

fn memory(check: Check<'_>, file: &ConfigFile) -> Option<Memory> {
    let beads = &file.beads;
    let policy = &beads.decay_policy;
    let path = "beads.decay_policy";
    let decay = Decay {
        summarize_after_sessions: check.range(
            &format!("{path}.summarize_after_sessions"),
            &policy.summarize_after_sessions,
            1..=10_000,
        ),
        preserve_failures_sessions: check.range(
            &format!("{path}.preserve_failures_sessions"),
            &policy.preserve_failures_sessions,
            1..=10_000,
        ),
    };
    let context_tokens =
        check.range("beads.context_tokens", &beads.context_tokens, 0..=MOST_CONTEXT_TOKENS);
    beads.enabled.value.then(|| Memory {
        context_tokens: usize::try_from(context_tokens).unwrap_or(usize::MAX),
        mirror: beads.mirror.value,
        archive_after_wave: beads.archive_after_wave.value,
        include_failure_notes: beads.include_failure_notes.value,
        decay: beads.memory_decay.value.then_some(decay),
    })
}

fn hooks(check: Check<'_>, file: &ConfigFile) -> Option<Hooks> {
    let hook = |name: &str, command: &Spanned<String>| {
        check.no_strange_characters(&format!("hooks.{name}"), command);
        Some(command.value.clone()).filter(|command| !command.trim().is_empty())
    };
    let timeout = check.duration("hooks.timeout", &file.hooks.timeout, HOUR);
    Some(Hooks {
        post_plan: hook("post_plan", &file.hooks.post_plan),
        pre_validation: hook("pre_validation", &file.hooks.pre_validation),
        post_merge: hook("post_merge", &file.hooks.post_merge),
        on_failure: hook("on_failure", &file.hooks.on_failure),
        timeout: timeout?,
    })
}

fn estimates(check: Check<'_>, file: &ConfigFile) -> Option<Estimates> {
    let forecast = &file.forecast;
    let time = |name: &str, value| check.duration(&format!("forecast.{name}"), value, DAY);
    let usd = |name: &str, value| check.usd(&format!("forecast.{name}"), value);
    // All of them first, so that all problems are told.
    let times = [
        time("planner_time", &forecast.planner_time),
        time("worker_time", &forecast.worker_time),
        time("validator_time", &forecast.validator_time),
        time("check_time", &forecast.check_time),
    ];
    let dollars = [
        usd("planner_usd", &forecast.planner_usd),
        usd("worker_usd", &forecast.worker_usd),
        usd("validator_usd", &forecast.validator_usd),
    ];
    let [planner, worker, validator, check_time] = times;
    let [planner_usd, worker_usd, validator_usd] = dollars;
    Some(Estimates {
        planner: Estimate { seconds: planner?.as_secs(), cost: planner_usd? },
        worker: Estimate { seconds: worker?.as_secs(), cost: worker_usd? },
        validator: Estimate { seconds: validator?.as_secs(), cost: validator_usd? },
        check_seconds: check_time?.as_secs(),
        accepts: !file.validation.acceptance.is_empty(),
        verifies: !file.merge.verify.is_empty(),
        learned: None,
    })
}

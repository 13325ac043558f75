//! The command lines that agents would be started with, without their prompts
//! and without anything secret: places and tokens of a run are made when it
//! begins, and stand here as `<...>`.

use std::path::Path;

use blueflame_core::config::Config;
use blueflame_core::ids::{ExecutorName, Role};
use blueflame_core::plan::Plan;
use serde::Serialize;

use crate::executor::{self, Ground, Order, find};
use crate::session::offer;
use crate::skills::{Offered, Skills};

/// How agents of one role would be started.
#[derive(Debug, Serialize)]
pub struct AgentLine {
    pub role: Role,
    /// The first one of its chain that can be used here.
    pub executor: String,
    pub model: String,
    /// `null` if no executor can be used.
    pub command: Option<Vec<String>>,
    pub starts: &'static str,
    pub budget: String,
}

pub fn lines(config: &Config, skills: &Skills, plan: Option<&Plan>) -> Vec<AgentLine> {
    Role::ALL.into_iter().map(|role| line(config, skills, role, plan)).collect()
}

fn line(config: &Config, skills: &Skills, role: Role, plan: Option<&Plan>) -> AgentLine {
    let chain = config.executors.chains.of(role);
    let usable = chain.iter().find_map(|name| {
        let executor = executor::named(name.as_str())?;
        Some((executor, find::program(executor)?))
    });
    let runs = usable.as_ref().and_then(|(it, _)| ExecutorName::new(it.name()).ok());
    let own = runs.and_then(|name| config.executors.models.get(&name).cloned());
    let model = own.unwrap_or_else(|| config.models.of(role).clone());
    let budget = *config.limits.agent_budgets.of(role);
    let named = chain.first().map(ToString::to_string).unwrap_or_default();
    AgentLine {
        role,
        executor: usable.as_ref().map_or(named, |(executor, _)| executor.name().to_owned()),
        command: usable.map(|(executor, program)| {
            let order = Order {
                model: model.clone(),
                system: String::new(),
                prompt: String::new(),
                tools: offer::tools(config, role),
                output_schema: offer::schema(role).map(|_| "<schema>".into()),
                max_turns: None,
                budget,
                may_ask: false,
                skills: skills.of(role).iter().map(|skill| Offered::from(&**skill)).collect(),
            };
            let ground = Ground {
                program: &program,
                home: Path::new("<home>"),
                tmp: Path::new("<tmp>"),
                files: Path::new("<attempt>"),
                workspace: Path::new("<workspace>"),
                gateway: Path::new("<gateway>"),
                port: None,
                hook: None,
                token: "<token>",
                login: None,
            };
            let launch = executor.launch(&order, &ground);
            let first = launch.program.display().to_string();
            let rest = launch.arguments.iter().map(|it| it.to_string_lossy().into_owned());
            std::iter::once(first).chain(rest).collect()
        }),
        model,
        starts: match role {
            Role::Planner if plan.is_some() => "not started: there is a plan",
            Role::Planner => "once, and again for each plan that you send back",
            Role::Worker => "once for each task, and again for each retry",
            Role::Validator => "once for each finished task",
            Role::Merger => "only if changesets conflict",
        },
        budget: budget.to_string(),
    }
}

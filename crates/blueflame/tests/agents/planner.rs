//! Planners that ask the person, and the versions of agent programs.

use std::time::Duration;

use blueflame::attempt::messages::{Command, Report};
use blueflame::executor::find::{self, Found};
use blueflame::executor::{self, Question};
use blueflame_core::config::{self, Config};
use blueflame_core::ids::{AgentId, Role};
use blueflame_core::plan::{self, Plan, PlanContext};
use blueflame_core::policy::PolicyRules;

use crate::install;
use crate::stage::{Agent, Stage};

fn configuration() -> Config {
    config::read(b"schema_version: 2\nproject: {name: demo, repo: .}\n").config.unwrap()
}

/// A stage for a planner that may ask.
fn planning(stage: Stage) -> Stage {
    stage.with(|spec| {
        spec.agent = AgentId::from_number(Role::Planner, 1);
        spec.work = blueflame_core::event::Work::Plan;
        spec.policy = PolicyRules::of(&configuration(), Role::Planner, &[]);
        spec.snapshots = None;
        spec.order.tools = ["Read", "Glob", "Grep"].map(Into::into).into();
        spec.order.prompt = "blueflame: role=planner\nPlan it.".into();
        spec.order.output_schema = Some(plan::schema());
        spec.order.may_ask = true;
        // Shorter than the person takes to answer: waiting must not count.
        spec.limits.idle = Duration::from_secs(8);
    })
}

const ASKS: &str = "
replies:
  - when: {role: planner, turn: 0}
    call:
      - tool: AskUserQuestion
        input:
          questions:
            - question: Which language?
              header: Language
              multiSelect: false
              options:
                - {label: English, description: The usual}
                - {label: French, description: The other}
  - when: {contains: French}
    output:
      tasks:
        - {id: task-001, title: Greet, description: Say bonjour, priority: 1, file_locks: [src/]}
";

#[test]
fn an_interactive_planner_asks_and_plans_with_the_answer() {
    let Some(stage) = Stage::new(Agent::Claude) else { return };
    let mut asked: Vec<Question> = Vec::new();
    let run = planning(stage).script(ASKS).run_with(|report| {
        let Report::Questions { ticket, questions } = report else { return None };
        asked.extend(questions.clone());
        std::thread::sleep(Duration::from_secs(9));
        let answers = [("Which language?".to_owned(), "French".to_owned())].into();
        Some(Command::Answer { ticket: ticket.clone(), answers })
    });
    assert_eq!(run.end(), "stopped", "{}", run.story());
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].options[1].label, "French");
    let output = run.output().unwrap().to_string();
    let (plan, _) = Plan::read(output.as_bytes(), &PlanContext::of(&configuration())).unwrap();
    assert_eq!(plan.tasks.len(), 1);
}

#[test]
fn the_installed_version_is_the_tested_one() {
    let Some(program) = install::claude() else { return };
    let claude = executor::named("claude").unwrap();
    let found = find::look(claude, &program);
    let Found::Usable { version, warning } = found else { panic!("{found:?}") };
    assert_eq!((version.as_str(), warning), (install::CLAUDE, None));
}

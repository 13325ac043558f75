//! Sessions that have come to each of the questions, for tests.
//!
//! They get there the way real ones do: the core decides, and everything it
//! asks for happens.

use std::fs;
use std::path::PathBuf;

use blueflame_core::config::{self, Config};
use blueflame_core::decide::{Action, decide};
use blueflame_core::event::{
    Event, FoldResult, LandResult, Process, PublishResult, VerifyResult, Work,
};
use blueflame_core::gate::{Answer, ChangesetAnswer, Gate, PlanAnswer, ValidationAnswer};
use blueflame_core::ids::{GroupName, Oid, SessionId, TaskId};
use blueflame_core::money::{Spend, Usage, Usd};
use blueflame_core::outcome::{Fold, Outcome, Product, Verdict};
use blueflame_core::plan::{Plan, PlanContext};
use blueflame_core::state::State;
use jiff::Timestamp;
use tempfile::TempDir;

use super::sheet::Sheet;
use super::{ChangesetPage, FileStat, Forecast, Occasion};

pub const CONFIG: &str = "\
schema_version: 2
permissions:
  allowed_paths: [\"src/**\", \"tests/**\", \"docs/**\"]
  blocked_paths: [\".env*\"]
limits:
  max_retries: 0
  max_session_cost_usd: 10.0
";

pub const PLAN: &str = r#"
tasks:
  - id: task-001
    title: Add JWT middleware
    description: |
      Check the bearer token of every request.
      Answer 401 without a valid one.
    priority: 1
    cohesion_group: auth
    file_locks: [src/auth/]
    risk: high
    acceptance: ["cargo test auth"]
  - id: task-002
    title: Add auth tests
    description: Cover expired, missing and forged tokens.
    priority: 2
    cohesion_group: auth
    dependencies: [task-001]
    file_locks: [tests/auth/]
  - id: task-003
    title: "Describe the routes \u001b[31mof the API"
    description: One page for each route.
    priority: 1
    cohesion_group: docs
    file_locks: [docs/api/]
    risk: low
    executor: embedded
    model: small
"#;

pub fn config() -> Config {
    let reading = config::read(CONFIG.as_bytes());
    assert_eq!(reading.problems, [], "the sample configuration");
    reading.config.unwrap()
}

pub fn plan() -> Plan {
    Plan::read(PLAN.as_bytes(), &PlanContext::of(&config())).unwrap().0
}

/// Draws a page and takes the styles away.
pub fn page(width: usize, draw: impl FnOnce(&mut Sheet)) -> String {
    let mut sheet = Sheet::new(width);
    draw(&mut sheet);
    anstream::adapter::strip_str(&sheet.finish()).to_string()
}

pub struct Sample {
    pub state: Box<State>,
    pub config: Box<Config>,
    pub gate: Gate,
    pub changeset: Option<ChangesetPage>,
    pub directory: TempDir,
    tasks_file: PathBuf,
}

impl Sample {
    fn new(state: State) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tasks_file = directory.path().join("tasks.yaml");
        let gate = state.gate.clone().unwrap();
        let (state, config) = (Box::new(state), Box::new(config()));
        Sample { state, config, gate, changeset: None, directory, tasks_file }
    }

    pub fn plan() -> Self {
        Sample::new(go_on(begin(), &Gate::Plan, |_| Outcome::NoOp))
    }

    /// The validator does not like the first task.
    pub fn disputed() -> Self {
        let gate = Gate::ValidationFailed(id("task-001"));
        Sample::new(go_on(begin(), &gate, |work| match work {
            Work::Validate { task, .. } if task.as_str() == "task-001" => failed_it(),
            work => well(work),
        }))
    }

    /// The validators of the first task crash.
    pub fn unjudged() -> Self {
        let gate = Gate::ValidatorFailed(id("task-001"));
        Sample::new(go_on(begin(), &gate, |work| match work {
            Work::Validate { task, .. } if task.as_str() == "task-001" => crashed(),
            work => well(work),
        }))
    }

    pub fn changeset() -> Self {
        let gate = Gate::Changeset(blueflame_core::ids::ChangesetId::of(&group("auth"), 1));
        let sample = Sample::new(go_on(begin(), &gate, well));
        Sample { changeset: Some(changeset()), ..sample }
    }

    /// One task has failed for good, and the rest was sent back.
    pub fn session() -> Self {
        Sample::new(go_on(begin(), &Gate::Session, |work| match work {
            Work::Develop { task, .. } if task.as_str() == "task-003" => crashed(),
            Work::Validate { task, .. } if task.as_str() == "task-002" => failed_it(),
            work => well(work),
        }))
    }

    /// The first worker costs more than half of what there is.
    pub fn budget() -> Self {
        let text = CONFIG.replace("10.0", "0.5");
        let config = config::read(text.as_bytes()).config.unwrap();
        Sample::new(go_on(begin_with(&config), &Gate::Budget, well))
    }

    pub fn send_plan_back(&mut self) {
        let answer = Answer::Plan(PlanAnswer::Replan { notes: "smaller".to_owned() });
        let answered = Event::GateAnswered { gate: Gate::Plan, answer };
        self.state.apply(Timestamp::UNIX_EPOCH, &answered).unwrap();
        let product = Product::Plan(plan());
        let state = go_on(*self.state.clone(), &Gate::Plan, |_| Outcome::Finished {
            product: product.clone(),
        });
        *self.state = state;
    }

    pub fn task(&self, name: &str) -> &blueflame_core::state::task::Task {
        self.state.board.get(&id(name)).unwrap()
    }

    pub fn occasion(&self) -> Occasion<'_> {
        Occasion {
            changeset: self.changeset.as_ref(),
            diff: Some("diff --git a/src/auth/jwt.rs b/src/auth/jwt.rs\n@@ -0,0 +1 @@\n+x\n"),
            forecast: Some(Forecast {
                least: Usd::from_micros(1_500_000),
                most: Usd::from_micros(4_500_000),
                off_percent: None,
            }),
            ..Occasion::new(
                &self.gate,
                &self.state,
                &self.config,
                self.directory.path(),
                &self.tasks_file,
            )
        }
    }

    pub fn write_beside(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

pub fn changeset() -> ChangesetPage {
    let file = |path: &str, insertions, deletions| FileStat {
        path: path.to_owned(),
        insertions,
        deletions,
        binary: false,
    };
    ChangesetPage {
        number: 1,
        of: 2,
        group: group("auth"),
        tasks: vec![
            (id("task-001"), "Add JWT middleware".to_owned()),
            (id("task-002"), "Add auth tests".to_owned()),
        ],
        commits: vec![
            "auth: check bearer tokens (task-001)".to_owned(),
            "auth: test tokens (task-002)".to_owned(),
        ],
        files: vec![
            file("src/auth/jwt.rs", 120, 0),
            file("src/auth/mod.rs", 3, 1),
            FileStat { binary: true, ..file("tests/auth/key.der", 0, 0) },
            file("tests/auth/tokens.rs", 1240, 0),
        ],
        insertions: 1363,
        deletions: 1,
        checks: "`cargo test` passed on exactly this tree, in 41 s".to_owned(),
        cost: spend(),
        notes: vec!["the group is incomplete: task-007 failed and is not in it".to_owned()],
        diff:
            "diff --git a/src/auth/jwt.rs b/src/auth/jwt.rs\n--- /dev/null\n+++ b/src/auth/jwt.rs\n\
               @@ -0,0 +1 @@\n+pub fn check() {}\n\
               diff --git a/src/auth/mod.rs b/src/auth/mod.rs\n--- a/src/auth/mod.rs\n\
               +++ b/src/auth/mod.rs\n@@ -1 +1 @@\n-mod old;\n+mod jwt;\n"
                .to_owned(),
    }
}

pub fn id(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

pub fn group(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

fn oid(digit: char) -> Oid {
    Oid::new(digit.to_string().repeat(40)).unwrap()
}

fn spend() -> Spend {
    let usage = Usage { input: 40_000, output: 2_000, ..Usage::default() };
    Spend { usage, cost: Usd::from_micros(310_000) }
}

fn well(work: &Work) -> Outcome {
    let product = match work {
        Work::Plan => Product::Plan(plan()),
        Work::Develop { .. } => Product::Commit(oid('a')),
        Work::Validate { .. } => {
            Product::Verdict(Verdict { pass: true, notes: "fine".to_owned(), issues: Vec::new() })
        }
        Work::Resolve { .. } => Product::Unresolvable { report: "no".to_owned() },
    };
    Outcome::Finished { product }
}

fn failed_it() -> Outcome {
    let verdict = Verdict {
        pass: false,
        notes: "Expired tokens are accepted: `exp` is read but never compared with the clock."
            .to_owned(),
        issues: vec!["src/auth/jwt.rs:40 ignores exp".to_owned(), "no test for it".to_owned()],
    };
    Outcome::Finished { product: Product::Verdict(verdict) }
}

fn crashed() -> Outcome {
    Outcome::Crashed { detail: "the connection was lost".to_owned() }
}

fn begin() -> State {
    begin_with(&config())
}

fn begin_with(config: &Config) -> State {
    let started = Event::SessionStarted {
        session: SessionId::new("ses-20260206-143022").unwrap(),
        goal: "Put the API behind JWT\nand keep the docs current".to_owned(),
        rules: Box::new(config.rules()),
        config: "c".to_owned(),
        plan: Some(plan()),
        weaker: Vec::new(),
    };
    State::begin(Timestamp::UNIX_EPOCH, &started).unwrap()
}

/// Goes on until a question is open, with agents that end as `outcome` says.
fn go_on(mut state: State, until: &Gate, outcome: impl Fn(&Work) -> Outcome) -> State {
    let mut number = 0;
    for _ in 0..200 {
        for action in decide(&state) {
            number += 1;
            let intent = action.intent(number, "c");
            let mut happened: Vec<Event> = intent.iter().cloned().collect();
            happened.extend(outcome_of(&action, intent.as_ref(), &outcome, until));
            for event in happened {
                state.apply(Timestamp::UNIX_EPOCH, &event).unwrap();
            }
            if state.gate.as_ref() == Some(until) {
                return state;
            }
        }
    }
    panic!("the session never came to {until:?}");
}

fn outcome_of(
    action: &Action,
    intent: Option<&Event>,
    outcome: &impl Fn(&Work) -> Outcome,
    until: &Gate,
) -> Vec<Event> {
    match action.clone() {
        Action::Spawn { work, .. } => {
            let Some(Event::AgentClaimed { agent, .. }) = intent.cloned() else { unreachable!() };
            let process = Process { pid: 7, start_time: 1, boot_id: "b".to_owned() };
            let started = Event::AgentStarted { agent: agent.clone(), process, skills: Vec::new() };
            let exited = Event::AgentExited { agent, outcome: outcome(&work), spend: spend() };
            vec![started, exited]
        }
        Action::Inspect { task } => {
            vec![Event::InspectionFinished { task, violations: Vec::new() }]
        }
        Action::Accept { task } => vec![Event::AcceptanceFinished { task, failures: Vec::new() }],
        Action::Fold { changeset, .. } => {
            let fold = Fold {
                commit: oid('f'),
                patch: "p".to_owned(),
                files: 1,
                insertions: 1,
                deletions: 0,
            };
            vec![Event::FoldFinished { changeset, result: FoldResult::Folded(fold) }]
        }
        Action::Verify { changeset } => {
            let (result, commands) = (VerifyResult::Passed, Vec::new());
            vec![Event::VerifyFinished { changeset, result, commands }]
        }
        Action::Land { changeset } => {
            vec![Event::LandFinished { changeset, result: LandResult::Landed }]
        }
        Action::Publish { commit } => {
            vec![Event::PublishFinished { commit, result: PublishResult::Published }]
        }
        Action::Ask { gate } if gate != *until => {
            let answer = match gate {
                Gate::Plan => Answer::Plan(PlanAnswer::Approve),
                Gate::ValidationFailed(_) => {
                    Answer::ValidationFailed(ValidationAnswer::Requeue { notes: String::new() })
                }
                Gate::Changeset(_) => Answer::Changeset(ChangesetAnswer::Approve),
                other => panic!("nobody expected {other:?}"),
            };
            vec![Event::GateAnswered { gate, answer }]
        }
        _ => Vec::new(),
    }
}

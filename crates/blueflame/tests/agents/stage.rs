//! A stage for one agent run: a repository, a script, and the attempt process.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blueflame::attempt::directory::{Directory, Standing};
use blueflame::attempt::link::{self, Link, Started};
use blueflame::attempt::messages::{Command, Report};
use blueflame::attempt::sealed::{Ending, Sealed};
use blueflame::attempt::spec::{Author, FORMAT, Limits, Model, Secrets, Snapshots, Spec};
use blueflame::executor::Order;
use blueflame::sandbox::{Terms, Tier};
use blueflame_core::config;
use blueflame_core::event::Work;
use blueflame_core::ids::{AgentId, ExecutorName, Oid, Role, SessionId, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::money::Budget;
use blueflame_core::outcome::Outcome;
use blueflame_core::policy::PolicyRules;
use blueflame_testkit::TestEnv;
use serde_json::Value;

use crate::install;

/// Who plays the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    Opencode,
    Embedded,
}

pub const BLUEFLAME: &str = env!("CARGO_BIN_EXE_blueflame");

/// The first line of every prompt, by which the script knows who asks.
pub const WORKER: &str = "blueflame: role=worker task=task-001 attempt=1\n";

pub struct Stage {
    pub env: TestEnv,
    pub workspace: PathBuf,
    pub spec: Spec,
    pub secrets: Secrets,
}

impl Stage {
    /// `None` if the agent cannot be had here.
    pub fn new(agent: Agent) -> Option<Stage> {
        let (name, program) = match agent {
            Agent::Claude => ("claude", install::claude()?),
            Agent::Codex => ("codex", install::codex()?),
            Agent::Opencode => ("opencode", install::opencode()?),
            Agent::Embedded => ("embedded", BLUEFLAME.into()),
        };
        Some(Stage::with_program(name, &program))
    }

    /// Any program in the place of the agent's.
    pub fn with_program(executor: &str, program: &Path) -> Stage {
        let env = TestEnv::new();
        let repository = env.repository("workspace");
        repository.write("README.md", "A project.\n");
        repository.git(["add", "."]);
        repository.git(["commit", "-q", "-m", "start"]);
        let start = repository.git(["rev-parse", "HEAD"]);
        let workspace = repository.path().to_owned();
        let config = config::read(CONFIG.as_bytes()).config.unwrap();
        let scope = [LockPath::new("src").unwrap(), LockPath::new("hello.txt").unwrap()];
        let spec = Spec {
            format: FORMAT,
            session: SessionId::new("ses-20260101-000000").unwrap(),
            agent: AgentId::from_number(Role::Worker, 1),
            work: Work::Develop { task: TaskId::new("task-001").unwrap(), attempt: 1 },
            executor: ExecutorName::new(executor).unwrap(),
            custom: None,
            program: program.to_owned(),
            workspace: workspace.clone(),
            start: Oid::new(start.trim()).unwrap(),
            path: std::env::var("PATH").unwrap(),
            author: Author { name: "Ada".into(), email: "ada@example.com".into() },
            order: Order {
                model: "sonnet".into(),
                system: "You work on a small project.".into(),
                prompt: format!("{WORKER}Do the task."),
                tools: ["Read", "Write", "Edit", "Glob", "Grep", "Bash"].map(Into::into).into(),
                output_schema: None,
                max_turns: None,
                budget: Budget::Unlimited,
                may_ask: false,
                skills: Vec::new(),
            },
            sandbox: Terms { tier: Tier::Namespaces, ..Terms::default() },
            policy: PolicyRules::of(&config, Role::Worker, &scope),
            limits: Limits {
                // Some take more than a minute to give up, and longer to start.
                wall: Duration::from_secs(400),
                idle: Duration::from_secs(100),
                grace: Duration::from_secs(10),
                cap: Budget::Unlimited,
                grant: Budget::Unlimited,
                grant_wait: Duration::from_secs(60),
                heartbeat: None,
            },
            model: Model {
                gateway: config::Gateway {
                    upstream: config::Upstream::Script("script.yaml".into()),
                    credential_env: "NO_KEY".into(),
                    passthrough_auth: false,
                    ca_file: None,
                    record: true,
                    accounts: BTreeMap::new(),
                    prices: BTreeMap::new(),
                },
                directory: env.root().to_owned(),
                recordings: Vec::new(),
            },
            snapshots: Some(Snapshots {
                every: Duration::from_secs(60),
                objects: workspace.join(".git/objects"),
                exclude: Vec::new(),
            }),
        };
        Stage { env, workspace, spec, secrets: Secrets::default() }
    }

    /// The agent's program behind lines of a script that run first.
    pub fn behind(executor: &str, program: &Path, lines: &str) -> Stage {
        let wrapper = tempfile::tempdir().unwrap().keep().join(executor);
        let script = format!("#!/bin/bash\n{lines}\nexec '{}' \"$@\"\n", program.display());
        fs::write(&wrapper, script).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        let packages = program.ancestors().find(|it| it.ends_with("node_modules"));
        let stage = Stage::with_program(executor, &wrapper);
        stage.with(|spec| spec.sandbox.read.extend(packages.map(Path::to_owned)))
    }

    pub fn script(self, yaml: &str) -> Stage {
        fs::write(self.env.path("script.yaml"), yaml).unwrap();
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Spec)) -> Stage {
        change(&mut self.spec);
        self
    }

    pub fn directory(&self) -> Directory {
        Directory::open(&self.env.path("attempt"))
    }

    /// What still runs of this stage, found by its environment.
    pub fn processes(&self) -> Vec<String> {
        let home = format!("HOME={}", self.directory().home().display());
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let ours = entries.filter(|path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|pair| pair == home.as_bytes())
        });
        ours.map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default()).collect()
    }

    pub fn start(&self) -> Started {
        let directory = Directory::create(&self.env.path("attempt"), &self.spec).unwrap();
        link::start(Path::new(BLUEFLAME), &directory, &self.secrets).unwrap()
    }

    /// Runs to the end, and answers what is asked on the way.
    pub fn run(self) -> Run {
        self.run_with(|_| None)
    }

    pub fn run_with(self, answer: impl FnMut(&Report) -> Option<Command>) -> Run {
        let started = self.start();
        self.follow(started, answer)
    }

    /// Follows a started attempt to its end.
    pub fn follow(
        self,
        mut started: Started,
        mut answer: impl FnMut(&Report) -> Option<Command>,
    ) -> Run {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sockets = started.registered.sockets.clone();
        let reports = runtime.block_on(async {
            let mut link = Link::connect(&sockets).await.unwrap();
            let mut reports = Vec::new();
            while let Ok(Some(report)) = link.next().await {
                if let Some(command) = answer(&report) {
                    link.send(&command).await.unwrap();
                }
                let ended = report == Report::Ended;
                reports.push(report);
                if ended {
                    break;
                }
            }
            reports
        });
        let status = started.child.wait().unwrap();
        assert!(status.success(), "the attempt process: {status}");
        let directory = self.directory();
        let Standing::Ended(sealed) = directory.standing().unwrap() else {
            panic!("no result in {}", directory.root().display())
        };
        assert!(!sockets.exists(), "sockets were left behind");
        Run { stage: self, sealed: *sealed, reports }
    }
}

/// A run that is over.
pub struct Run {
    pub stage: Stage,
    pub sealed: Sealed,
    pub reports: Vec<Report>,
}

impl Run {
    /// One word for how it ended.
    pub fn end(&self) -> &'static str {
        match &self.sealed.ending {
            Ending::Stopped { .. } => "stopped",
            Ending::Failed(outcome) => outcome.name(),
        }
    }

    pub fn output(&self) -> Option<&Value> {
        match &self.sealed.ending {
            Ending::Stopped { output, .. } => output.as_ref(),
            Ending::Failed(_) => None,
        }
    }

    /// Its calls could not be judged, so not one of its requests was answered.
    pub fn was_never_armed(&self) {
        let Ending::Failed(Outcome::Crashed { detail }) = &self.sealed.ending else {
            panic!("{}", self.story())
        };
        for said in ["its tool calls are not judged", "blueflame doctor", "docs/executors.md"] {
            assert!(detail.contains(said), "{detail}");
        }
        assert_eq!(self.requests().len(), 0);
    }

    /// It was ended for a call that was not judged, and what came of that was not
    /// shown to the model.
    pub fn was_caught(&self) {
        let Ending::Failed(Outcome::Violated { violations }) = &self.sealed.ending else {
            panic!("{}", self.story())
        };
        let why = violations.join("\n");
        let reasons = [
            "without a verdict",
            "more calls than were allowed",
            "that was not allowed",
            "although it was denied",
        ];
        assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
        assert_eq!(self.requests().len(), 1, "{}", self.story());
    }

    /// The bodies of the requests that reached the model.
    pub fn requests(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.stage.directory().recording_file()).unwrap_or_default();
        let exchanges = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        exchanges.map(|exchange| exchange["request"].clone()).collect()
    }

    /// What the model was told last.
    pub fn last_message(&self) -> String {
        let requests = self.requests();
        let last = requests.last().unwrap();
        let messages = last["messages"].as_array().or_else(|| last["input"].as_array());
        messages.unwrap().last().unwrap().to_string()
    }

    /// Everything that the model was told in one request.
    pub fn told(&self, request: usize) -> String {
        let request = &self.requests()[request];
        ["system", "messages", "input"].map(|part| request[part].to_string()).join("\n")
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.stage.env.command("git");
        command.args(arguments).current_dir(&self.stage.workspace);
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    }

    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.stage.workspace.join(name)).ok()
    }

    pub fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.stage.directory().audit_file()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Everything there is to say when something is not as expected.
    pub fn story(&self) -> String {
        let output = fs::read_to_string(self.stage.directory().output_file()).unwrap_or_default();
        let output: String =
            output.lines().map(|l| l.chars().take(600).collect::<String>() + "\n").collect();
        format!("{:#?}\n{:#?}\n{output}", self.sealed, self.reports)
    }
}

const CONFIG: &str = "
schema_version: 2
project: {name: demo, repo: .}
permissions:
  allowed_paths: ['src/**', '*.txt']
  bash_rules:
    allowed_commands: ['git add', 'git commit', 'git status', sleep]
";

//! A stage for one session: a repository with a person's checkout, a script
//! beside it, and the real program in an environment of its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blueflame::workspace::Layers;
use blueflame_testkit::TestEnv;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::script::Script;

pub const BLUEFLAME: &str = env!("CARGO_BIN_EXE_blueflame");

/// Nothing here takes this long; a test that would wait for ever fails instead.
const PATIENCE: Duration = Duration::from_secs(120);

/// What goes on with a session, with the answers of its stage.
pub const RESUME: [&str; 3] = ["resume", "--decisions-file", "../decisions.yaml"];

pub struct Stage {
    pub env: TestEnv,
}

impl Stage {
    /// A repository with one commit, and a configuration with these additions.
    pub fn new(more: &str) -> Stage {
        let stage = Stage { env: TestEnv::new() };
        let repository = stage.env.repository("project");
        let waits = format!(
            "#!/bin/sh\nwhile ! test -e {}/$1; do sleep 0.05; done\n",
            stage.signals().display()
        );
        fs::create_dir(stage.signals()).unwrap();
        // Agents see nothing else of what is around the repository.
        let sandbox = format!("sandbox: {{read: ['{}']}}\n", stage.signals().display());
        repository.write("README.md", "A project.\n");
        repository.write("wait.sh", &waits);
        repository.write("blueflame.yaml", &format!("{CONFIG}{sandbox}{more}"));
        repository.commit("chore: a small project");
        stage
    }

    /// Adds a file to the first commit.
    pub fn with_file(self, name: &str, text: &str) -> Stage {
        self.write(name, text);
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "--amend", "--no-edit"]);
        self
    }

    pub fn script(self, script: &Script) -> Stage {
        fs::write(self.env.path("script.yaml"), script.text()).unwrap();
        self
    }

    pub fn plan(self, text: &str) -> Stage {
        fs::write(self.env.path("plan.yaml"), text).unwrap();
        self
    }

    pub fn decisions(self, text: &str) -> Stage {
        self.decide(text);
        self
    }

    /// Other answers from now on.
    pub fn decide(&self, text: &str) {
        fs::write(self.env.path("decisions.yaml"), text).unwrap();
    }

    /// Something waits for this file.
    pub fn signal(&self, name: &str) {
        fs::write(self.signals().join(name), "").unwrap();
    }

    /// Where what is waited for appears.
    pub fn signals(&self) -> PathBuf {
        self.env.path("signals")
    }

    pub fn repository(&self) -> PathBuf {
        self.env.path("project")
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.repository().join(name)).unwrap()
    }

    /// Runs git in the person's checkout; the test fails if git does.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.env.command("git");
        command.args(arguments).current_dir(self.repository());
        self.env.run(command).success().trim_end().to_owned()
    }

    /// The program with these arguments, in the repository.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.command(BLUEFLAME);
        command.args(arguments).current_dir(self.repository());
        command
    }

    /// Runs the program to its end.
    pub fn blueflame(&self, arguments: &[&str]) -> Told {
        self.start(arguments).end()
    }

    /// `run` with the plan and the decisions of this stage.
    pub fn run(&self) -> Told {
        self.begin().end()
    }

    pub fn begin(&self) -> Running<'_> {
        self.start(&self.run_arguments())
    }

    /// The same, with more in its environment.
    pub fn begin_with(&self, variables: &[(&str, &str)]) -> Running<'_> {
        self.start_with(&self.run_arguments(), variables)
    }

    pub fn run_arguments(&self) -> Vec<&'static str> {
        let mut arguments =
            vec!["run", "--task", "Do it.", "--decisions-file", "../decisions.yaml"];
        if self.env.path("plan.yaml").exists() {
            arguments.extend(["--plan", "../plan.yaml"]);
        }
        arguments
    }

    pub fn resume(&self) -> Told {
        self.go_on().end()
    }

    pub fn go_on(&self) -> Running<'_> {
        self.start(&RESUME)
    }

    /// Starts the program and lets it run. What it says goes to files, so that
    /// no pipe can hold it up, and so that agents that outlive it hold nothing.
    pub fn start(&self, arguments: &[&str]) -> Running<'_> {
        self.start_with(arguments, &[])
    }

    pub fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running<'_> {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        self.let_run(command)
    }

    /// The same in the hands of another program, which is given its command line.
    pub fn start_under(&self, wrapper: &[String], arguments: &[&str]) -> Running<'_> {
        let mut command = self.env.command(&wrapper[0]);
        command.args(&wrapper[1..]).arg(BLUEFLAME).args(arguments);
        command.current_dir(self.repository());
        self.let_run(command)
    }

    fn let_run(&self, mut command: Command) -> Running<'_> {
        let number =
            (0..=u32::MAX).find(|number| !self.env.path(format!("out.{number}")).exists()).unwrap();
        let [stdout, stderr] = ["out", "err"].map(|name| self.env.path(format!("{name}.{number}")));
        command.stdin(Stdio::null());
        command.stdout(fs::File::create(&stdout).unwrap());
        command.stderr(fs::File::create(&stderr).unwrap());
        let child = command.spawn().unwrap();
        Running { stage: self, child, stdout, stderr }
    }

    /// Sessions that began, the newest last.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.repository().join(".git/blueflame/sessions"));
        let mut found: Vec<PathBuf> =
            entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| path.join("journal.jsonl").exists());
        found.sort();
        found
    }

    pub fn session(&self) -> PathBuf {
        self.sessions().pop().unwrap()
    }

    pub fn session_id(&self) -> String {
        self.session().file_name().unwrap().to_str().unwrap().to_owned()
    }

    /// What the journal has by now.
    pub fn journal(&self) -> Vec<Value> {
        let Some(session) = self.sessions().pop() else { return Vec::new() };
        let text = fs::read_to_string(session.join("journal.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The events of one kind.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let all = self.journal().into_iter();
        all.filter(|it| it["t"] == kind).map(|it| it["d"].clone()).collect()
    }

    /// How the attempts at a task ended, in order; `finished` for the good ones.
    pub fn outcomes(&self, task: &str) -> Vec<String> {
        let claimed = self.events("agent.claimed").into_iter();
        let mine = claimed.filter(|it| it["work"]["develop"]["task"] == task);
        let agents: Vec<Value> = mine.map(|it| it["agent"].clone()).collect();
        let exited = self.events("agent.exited");
        let ends = agents.iter().filter_map(|agent| exited.iter().find(|it| it["agent"] == *agent));
        ends.map(|it| it["outcome"]["kind"].as_str().unwrap().to_owned()).collect()
    }

    /// Every question and its answer, as the journal has them.
    pub fn gates(&self) -> Vec<String> {
        let opened = self.events("gate.opened").into_iter();
        opened.map(|it| name_of(&it["gate"])).collect()
    }

    /// Subjects of what is on the base branch beyond the first commit.
    pub fn landed(&self) -> Vec<String> {
        let log = self.git(&["log", "--reverse", "--format=%s", "main"]);
        log.lines().skip(1).map(str::to_owned).collect()
    }

    /// All files of the base branch below `src`, with their contents.
    pub fn sources(&self) -> BTreeMap<String, String> {
        let names = self.git(&["ls-tree", "-r", "--name-only", "main", "src"]);
        let content = |name: &str| self.git(&["show", &format!("main:{name}")]);
        names.lines().map(|name| (name.to_owned(), content(name))).collect()
    }

    /// How many requests each attempt made of the model, by the attempt's name.
    pub fn requests(&self) -> BTreeMap<String, usize> {
        let entries = fs::read_dir(self.session().join("attempts")).unwrap();
        let directories = entries.map(|entry| entry.unwrap());
        let count = |path: &Path| {
            fs::read_to_string(path.join("traffic.jsonl")).unwrap_or_default().lines().count()
        };
        directories
            .map(|it| (it.file_name().into_string().unwrap(), count(&it.path())))
            .filter(|(_, requests)| *requests > 0)
            .collect()
    }

    /// What still runs of this stage, found by its environment: numbers and
    /// command lines.
    pub fn running(&self) -> Vec<(i32, String)> {
        let root = self.env.root().as_os_str().as_encoded_bytes().to_vec();
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let ours = entries.filter(|path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            environment.windows(root.len()).any(|window| window == root)
        });
        ours.filter_map(|path| {
            let line = fs::read_to_string(path.join("cmdline")).unwrap_or_default();
            let pid = path.file_name()?.to_str()?.parse().ok()?;
            (!line.is_empty()).then_some((pid, line))
        })
        .collect()
    }

    /// Only their command lines.
    pub fn processes(&self) -> Vec<String> {
        self.running().into_iter().map(|(_, line)| line).collect()
    }

    /// What has to be true after any session that came to its end.
    #[track_caller]
    pub fn assert_tidy(&self) {
        wait_until("no process is left", || self.processes().is_empty());
        assert_eq!(self.workspaces(), Vec::<String>::new(), "workspaces were left");
        assert!(!self.session().join("checkouts").exists(), "checkouts were left");
        assert_eq!(self.git(&["status", "--porcelain"]), "", "the checkout is not clean");
        let replay = self.blueflame(&["replay", &self.session_id()]);
        assert_eq!(replay.code, Some(0), "{replay}");
        assert!(replay.stderr.contains("decisions all as this version takes them"), "{replay}");
    }

    /// Everything that is shown of the state.
    pub fn views(&self) -> [String; 3] {
        ["tasks.yaml", "agents.json", "status.json"]
            .map(|name| self.read(&format!(".blueflame/{name}")))
    }

    /// Where an agent's files are that it wrote in a workspace.
    pub fn written_in(&self, workspace: &str) -> PathBuf {
        let place = self.repository().join(".trees").join(self.session_id()).join(workspace);
        Layers::of(&place).map_or(place, |layers| layers.changes())
    }

    pub fn workspaces(&self) -> Vec<String> {
        let Ok(sessions) = fs::read_dir(self.repository().join(".trees")) else {
            return Vec::new();
        };
        let (bases, sessions): (Vec<_>, Vec<_>) = sessions
            .map(|it| it.unwrap().path())
            .partition(|path| path.file_name().is_some_and(|name| name == ".bases"));
        let named = |places: Vec<PathBuf>| {
            let inside = places.into_iter().flat_map(|place| fs::read_dir(place).unwrap());
            let mut names: Vec<String> =
                inside.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let made = named(sessions);
        // A checkout stays as long as there are workspaces that may be laid over it.
        if made.is_empty() { named(bases) } else { made }
    }
}

/// `changeset:auth.c1` for `{"changeset": "auth.c1"}`, `plan` for `"plan"`.
pub fn name_of(gate: &Value) -> String {
    match gate {
        Value::Object(it) => {
            let (key, value) = it.iter().next().unwrap();
            format!("{key}:{}", value.as_str().unwrap())
        }
        other => other.as_str().unwrap().to_owned(),
    }
}

/// An orchestrator that runs.
pub struct Running<'a> {
    pub stage: &'a Stage,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Running<'_> {
    /// Waits until the journal has something, and says how many records it has.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, found: impl Fn(&[Value]) -> bool) {
        let begun = Instant::now();
        while !found(&self.stage.journal()) {
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() && found(&self.stage.journal()) {
                return;
            }
            assert!(ended.is_none(), "ended before {what}: {}", self.said());
            assert!(begun.elapsed() < PATIENCE, "never {what}: {}", self.said());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the `count`th event of a kind.
    #[track_caller]
    pub fn wait_for_event(&mut self, kind: &str, count: usize) {
        self.wait_for(&format!("{count} of {kind}"), |journal| {
            journal.iter().filter(|it| it["t"] == kind).count() >= count
        });
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills the orchestrator and nobody else.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The same, unless it has ended by itself; how it went says [`end`](Self::end).
    pub fn kill_if_alive(&mut self) {
        let _ = self.child.kill();
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(self) -> Told {
        self.end_within(PATIENCE)
    }

    #[track_caller]
    pub fn end_within(mut self, patience: Duration) -> Told {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > patience {
                let _ = self.child.kill();
                panic!("it does not end: {}", self.said());
            }
            thread::sleep(Duration::from_millis(5));
        };
        let stdout = fs::read_to_string(&self.stdout).unwrap();
        Told { code: status.code(), signal: status.signal(), stdout, stderr: self.said() }
    }
}

/// A stage that fails leaves nobody behind.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.child.kill();
        }
    }
}

/// How the program ended and what it said.
#[derive(Debug)]
pub struct Told {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Told { code, signal, stdout, stderr } = self;
        write!(f, "exit {code:?} signal {signal:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

impl Told {
    #[track_caller]
    pub fn exits(self, code: i32) -> Told {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Told {
        assert!(self.stderr.contains(text), "`{text}` is not in: {self}");
        self
    }
}

/// Whatever fails while this is there, it is said how to repeat it.
pub struct Again(pub String);

impl Drop for Again {
    #[expect(clippy::print_stderr, reason = "a test that fails tells how to repeat it")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("repeat this one with: {}", self.0);
        }
    }
}

/// What a process has in memory now.
pub fn resident_kilobytes(pid: u32) -> u64 {
    kilobytes(pid, "VmRSS:")
}

/// The most that it has had.
pub fn peak_kilobytes(pid: u32) -> u64 {
    kilobytes(pid, "VmHWM:")
}

fn kilobytes(pid: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.and_then(|it| it.trim().strip_suffix(" kB")).map_or(0, |it| it.parse().unwrap())
}

#[track_caller]
pub fn wait_until(what: &str, found: impl Fn() -> bool) {
    let begun = Instant::now();
    while !found() {
        assert!(begun.elapsed() < PATIENCE, "it never came true that {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

const CONFIG: &str = r#"schema_version: 2
project: {name: stage, base_branch: main}
planning: {interactive: false}
executors: {default: embedded}
gateway: {upstream: "script:../script.yaml", record: true}
permissions:
  allowed_paths: ["src/**"]
  bash_rules:
    allowed_commands: ["git add", "git commit", "git status", "sh wait.sh"]
"#;

/// Everyone may be at work at once, whatever the machine has.
pub const MANY: &str = "concurrency: {development: 4, validation: 4, adaptive: false}\n";

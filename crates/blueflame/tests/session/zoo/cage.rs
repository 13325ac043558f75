//! Whole sessions with animals in them: a program named `claude` that behaves
//! badly at the first attempt at some tasks, and well at all others.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::script::{Script, plan, subject, task};
use crate::stage::{Running, Stage, Told, peak_kilobytes};

const DECISIONS: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: []\n";

/// What the orchestrator may have in memory, ever.
const MOST_MEMORY_KB: u64 = 100 << 10;

/// What a process may that reads an agent's output: it puts lines of 32 MiB
/// together, which takes twice as much while they grow.
const MOST_OF_ATTEMPT_KB: u64 = 128 << 10;

/// For the slowest of them on a busy machine.
const PATIENCE: Duration = Duration::from_secs(400);

/// One that misbehaves.
#[derive(Clone, Copy, Debug)]
pub struct Animal {
    pub name: &'static str,
    /// What it does at its first attempt, in bash. If it comes to the end of
    /// this, it leaves.
    pub acts: &'static str,
    /// What becomes of this attempt. Whoever is not `finished` gets another.
    pub ends: &'static str,
    /// What the outcome says of it.
    pub says: &'static str,
}

/// What an agent that behaves does; animals may use the parts of it.
const TRICKS: &str = r#"
open() {
  read -r opening
  echo '{"type":"control_response","response":{"subtype":"success","request_id":"open","response":{}}}'
  read -r prompt
  echo '{"type":"system","subtype":"init"}'
}
work() {
  mkdir -p src
  echo "${text:-by $task}" > "src/$task.txt"
  git add "src/$task.txt"
  git diff --cached --quiet || git commit -q -m "feat($task): write it"
}
finished() { echo '{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","result":"done"}'; }
"#;

/// What a session came to.
pub struct Visit {
    pub stage: Stage,
    pub told: Told,
}

fn id(place: usize) -> String {
    format!("task-{:03}", place + 1)
}

/// This program, parts of which agents run.
fn this_test() -> String {
    std::env::current_exe().unwrap().display().to_string()
}

fn program(animals: &[Animal]) -> String {
    let mut text = format!(
        "#!/bin/bash\n[ \"$1\" = --version ] && {{ echo '2.1.197 (Claude Code)'; exit; }}\n{TRICKS}\n\
         this_test='{}'\nhere=${{PWD##*/}}; task=${{here%.*}}\ncase $here in\n",
        this_test()
    );
    for (place, animal) in animals.iter().enumerate() {
        let _ = writeln!(text, "{}.a1)\n{}\nexit 0;;", id(place), animal.acts);
    }
    text + "esac\nopen; work; finished\n"
}

/// A session in which each animal has a task, and one more is done by somebody
/// who behaves. It ends as the rules say: everything lands, nobody is left, and
/// nothing took more memory than it may.
pub fn visit(more: &str, confined: &str, animals: &[Animal]) -> Visit {
    let config = format!("concurrency: {{development: 8, validation: 4, adaptive: false}}\n{more}");
    let stage = Stage::new(&config);
    let settings = stage
        .read("blueflame.yaml")
        .replace("{default: embedded}", "{default: embedded, worker: claude}")
        .replace("sandbox: {read: [", &format!("sandbox: {{{confined}read: ['{}', ", this_test()));
    let tasks: Vec<_> = (0..=animals.len())
        .map(|place| task(&id(place), "zoo", &format!("src/{}.txt", id(place))))
        .collect();
    let stage = stage
        .with_file("blueflame.yaml", &settings)
        .plan(&plan(&tasks))
        .script(&Script::new().passes())
        .decisions(DECISIONS);
    let path = path_with(&stage, &program(animals));
    let running = stage.begin_with(&[("PATH", &path)]);
    let (told, peaks) = watch(running);
    let visit = Visit { told: told.exits(0), stage };

    for (place, animal) in animals.iter().enumerate() {
        visit.check(&id(place), animal);
    }
    assert_eq!(visit.stage.outcomes(&id(animals.len())), ["finished"], "{}", visit.told);
    let all: Vec<String> = (0..tasks.len()).map(|place| subject(&id(place))).collect();
    assert_eq!(visit.stage.landed(), all, "{}", visit.told);
    visit.stage.assert_tidy();
    let Peaks { orchestrator, attempt } = peaks;
    #[expect(clippy::print_stdout, reason = "a figure for whoever asks for output")]
    let () = println!("peak memory: orchestrator {orchestrator} kB, largest attempt {attempt} kB");
    assert!((1..MOST_MEMORY_KB).contains(&orchestrator), "the orchestrator had {orchestrator} kB");
    assert!((1..MOST_OF_ATTEMPT_KB).contains(&attempt), "an attempt process had {attempt} kB");
    visit
}

/// A `PATH` in which the program comes first.
fn path_with(stage: &Stage, program: &str) -> String {
    let place = stage.env.path("bin");
    fs::create_dir(&place).unwrap();
    let file = place.join("claude");
    fs::write(&file, program).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(place).chain(std::env::split_paths(&rest));
    let all: Vec<PathBuf> = all.collect();
    std::env::join_paths(all).unwrap().into_string().unwrap()
}

/// The most memory that anybody had.
struct Peaks {
    orchestrator: u64,
    attempt: u64,
}

/// Looks on until the orchestrator has ended.
fn watch(mut running: Running<'_>) -> (Told, Peaks) {
    let mut peaks = Peaks { orchestrator: 0, attempt: 0 };
    let begun = std::time::Instant::now();
    while running.is_alive() {
        assert!(begun.elapsed() < PATIENCE, "it does not end: {:?}", running.stage.processes());
        peaks.orchestrator = peaks.orchestrator.max(peak_kilobytes(running.pid()));
        for (pid, line) in running.stage.running() {
            if line.contains("\0__attempt\0") {
                peaks.attempt = peaks.attempt.max(peak_kilobytes(pid.unsigned_abs()));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    (running.end(), peaks)
}

impl Visit {
    fn check(&self, task: &str, animal: &Animal) {
        let name = animal.name;
        let ends = match animal.ends {
            "finished" => vec!["finished"],
            other => vec![other, "finished"],
        };
        let story = || format!("{name}: {}\n{}", self.first(task), self.told);
        assert_eq!(self.stage.outcomes(task), ends, "{}", story());
        let outcome = self.first(task)["outcome"].to_string();
        assert!(outcome.contains(animal.says), "`{}` is not said: {}", animal.says, story());
    }

    /// What the journal has of the end of the first attempt at a task.
    pub fn first(&self, task: &str) -> Value {
        let claimed = self.stage.events("agent.claimed");
        let agent = claimed.iter().find(|it| it["work"]["develop"]["task"] == task).unwrap();
        let exited = self.stage.events("agent.exited").into_iter();
        exited.into_iter().find(|it| it["agent"] == agent["agent"]).unwrap_or_default()
    }

    /// What was sealed of the first attempt of an animal.
    pub fn sealed(&self, animals: &[Animal], name: &str) -> Value {
        let place = animals.iter().position(|it| it.name == name).unwrap();
        let directory = self.stage.session().join("attempts").join(format!("{}.a1", id(place)));
        serde_json::from_slice(&fs::read(directory.join("result.json")).unwrap()).unwrap()
    }
}

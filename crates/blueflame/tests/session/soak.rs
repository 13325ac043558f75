//! A long session: very many tasks through eight workers. What it holds at the
//! end is what it held at the start, and the last tasks take no more work than
//! the first. `BLUEFLAME_SOAK_TASKS` says how many tasks; what is measured is
//! printed.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::script::{Script, Task, bash, commit, plan, subject, task};
use crate::stage::{Again, Running, Stage, resident_kilobytes, wait_until};

const DECISIONS: &str = "plan: [approve]\nchangesets: {'*': approve}\nsession: []\n";

/// Tasks of one group, which land together.
const GROUP: usize = 10;

/// What the orchestrator may know of its tasks at the end that it did not at the
/// start.
const MOST_GROWTH_KB: u64 = 16 << 10;

/// For the whole of it, however many there are.
const PATIENCE: Duration = Duration::from_secs(3_600);

fn id(number: usize) -> String {
    format!("task-{number:03}")
}

fn own(number: usize) -> String {
    format!("src/g{:03}/{number}.txt", (number - 1) / GROUP)
}

/// Everybody needs the first, and the last needs everybody: at these two
/// moments there is one worker and nothing else.
fn tasks(count: usize) -> Vec<Task> {
    let all: Vec<String> = (1..=count).map(id).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let needs = |number: usize| match number {
        1 => &[][..],
        last if last == count => &all[..count - 1],
        _ => &all[..1],
    };
    let group = |number: usize| format!("g{:03}", (number - 1) / GROUP);
    let tasks = 1..=count;
    tasks.map(|it| task(all[it - 1], &group(it), &own(it)).needs(needs(it))).collect()
}

fn script(count: usize) -> Script {
    let waits = |number: usize, signal: &str| {
        let mut calls = vec![bash(&format!("sh wait.sh {signal}"))];
        calls.extend(commit(&id(number), &[(&own(number), "done\n")]));
        calls
    };
    let script = Script::new().attempt(&id(1), 1, &waits(1, "first")).attempt(
        &id(count),
        1,
        &waits(count, "last"),
    );
    (2..count).fold(script, |script, it| script.works(&id(it), &[(&own(it), "done\n")])).passes()
}

/// What an orchestrator holds and has done, at one moment.
#[derive(Clone, Debug)]
struct Sample {
    resident_kb: u64,
    open_files: usize,
    locks: usize,
    processes: usize,
    workspaces: usize,
    sockets: usize,
    events: usize,
    journal_bytes: usize,
    /// Of the orchestrator alone, in hundredths of a second.
    processor_ticks: usize,
    at: Instant,
}

/// Those that are there at every look: a snapshot's git, or the sleep of one who
/// waits, is there for a moment.
fn lasting_processes(stage: &Stage) -> usize {
    let looks = (0..10).map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        stage.processes().iter().filter(|it| !it.starts_with("sleep")).count()
    });
    looks.min().unwrap_or_default()
}

impl Sample {
    fn take(running: &Running<'_>, followed: &Followed) -> Sample {
        let (stage, pid) = (running.stage, running.pid());
        let process = |name: &str| format!("/proc/{pid}/{name}");
        let open: Vec<_> = fs::read_dir(process("fd")).unwrap().flatten().collect();
        let is_socket = |path: &fs::DirEntry| {
            fs::read_link(path.path()).is_ok_and(|it| it.to_string_lossy().starts_with("socket:"))
        };
        let told = fs::read_dir(process("fdinfo")).unwrap().flatten();
        let told = told.map(|it| fs::read_to_string(it.path()).unwrap_or_default());
        Sample {
            resident_kb: resident_kilobytes(pid),
            open_files: open.len(),
            locks: told.map(|it| it.matches("lock:").count()).sum(),
            processes: lasting_processes(stage),
            workspaces: stage.workspaces().len(),
            sockets: open.iter().filter(|it| is_socket(it)).count(),
            events: followed.events,
            journal_bytes: followed.bytes,
            processor_ticks: ticks(pid),
            at: Instant::now(),
        }
    }

    /// All that has to be as it was.
    fn holds(&self) -> [(&'static str, usize); 5] {
        [
            ("open files", self.open_files),
            ("locks", self.locks),
            ("processes", self.processes),
            ("workspaces", self.workspaces),
            ("sockets", self.sockets),
        ]
    }
}

fn ticks(pid: u32) -> usize {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    fields[11].parse::<usize>().unwrap() + fields[12].parse::<usize>().unwrap()
}

/// The journal, read as it grows.
#[derive(Default)]
struct Followed {
    bytes: usize,
    events: usize,
    started: usize,
    validated: usize,
}

impl Followed {
    fn read_on(&mut self, stage: &Stage) {
        let Some(session) = stage.sessions().pop() else { return };
        let mut file = fs::File::open(session.join("journal.jsonl")).unwrap();
        file.seek(SeekFrom::Start(self.bytes as u64)).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.bytes += whole;
        for line in text[..whole].lines() {
            self.events += 1;
            let event: Value = serde_json::from_str(line).unwrap();
            self.started += usize::from(event["t"] == "agent.started");
            let verdict = &event["d"]["outcome"]["product"]["verdict"];
            self.validated += usize::from(!verdict.is_null());
        }
    }

    /// Reads on until something is so.
    fn until(&mut self, running: &mut Running<'_>, so: impl Fn(&Followed) -> bool) {
        let begun = Instant::now();
        loop {
            self.read_on(running.stage);
            if so(self) {
                return;
            }
            assert!(running.is_alive(), "it has ended");
            assert!(begun.elapsed() < PATIENCE, "only {} were validated", self.validated);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_long_session_holds_no_more_at_its_end_than_at_its_start() {
    let count: usize =
        std::env::var("BLUEFLAME_SOAK_TASKS").map_or(60, |text| text.parse().unwrap());
    assert!(count >= 40, "fewer tasks than that show nothing");
    let config = "concurrency: {development: 8, validation: 8, adaptive: false}\n\
         waves: {mode: pipelined}\nlimits:\n  agent_timeout: 1h\n  \
         max_session_cost_usd: 0\n  \
         token_budget: {planner_usd: 0, worker_usd: 0, validator_usd: 0, merger_usd: 0}\n";
    let stage = Stage::new(config).plan(&plan(&tasks(count))).script(&script(count));
    let stage = stage.decisions(DECISIONS);
    let _again = Again(format!(
        "BLUEFLAME_SOAK_TASKS={count} cargo test -p blueflame --test session soak -- --nocapture"
    ));
    let refs = refs_of(&stage);
    let mut running = stage.begin();
    let mut followed = Followed::default();

    one_waits(&mut running, &mut followed, 1);
    let start = Sample::take(&running, &followed);
    stage.signal("first");

    let window = (count / 5).min(100);
    let mut samples = Vec::new();
    for at in [window / 2, window / 2 + window, count - 1 - window, count - 1] {
        followed.until(&mut running, |followed| followed.validated >= at);
        samples.push(Sample::take(&running, &followed));
    }
    one_waits(&mut running, &mut followed, count);
    let end = Sample::take(&running, &followed);
    stage.signal("last");
    running.end_within(PATIENCE).exits(0);

    let early = PerEvent::between(&samples[0], &samples[1]);
    let late = PerEvent::between(&samples[2], &samples[3]);
    let story = format!(
        "{count} tasks, {} events, {:.2} for each task; held at the start {:?}, at the end {:?}; \
         kB of memory {} then {:?} then {}; journal bytes for each event {:.1} then {:.1}; \
         processor ms for each event {:.2} then {:.2}, x{:.2}; time x{:.2}",
        end.events,
        whole(end.events - start.events) / whole(count - 1),
        start.holds(),
        end.holds(),
        start.resident_kb,
        samples.iter().map(|it| it.resident_kb).collect::<Vec<_>>(),
        end.resident_kb,
        early.journal_bytes,
        late.journal_bytes,
        early.processor_ms,
        late.processor_ms,
        late.processor_ms / early.processor_ms,
        (samples[3].at - samples[2].at).as_secs_f64()
            / (samples[1].at - samples[0].at).as_secs_f64(),
    );
    println!("{story}");
    assert_eq!(start.holds(), end.holds(), "{story}");
    assert!(end.resident_kb < samples[0].resident_kb + MOST_GROWTH_KB, "{story}");
    assert!(late.journal_bytes <= early.journal_bytes * 1.25, "{story}");
    // Fewer take too little to be measured in hundredths of a second.
    if window >= 100 {
        assert!(late.processor_ms <= early.processor_ms * 1.5, "{story}");
    }
    let expected: Vec<String> = (1..=count).map(|number| subject(&id(number))).collect();
    assert_eq!(stage.landed(), expected);
    stage.assert_tidy();
    views_are_up_to_date(&stage);
    // What is kept of each attempt is there until somebody says that it may go.
    stage.blueflame(&["cleanup"]).exits(0);
    assert_eq!(refs_of(&stage), refs, "references are left");
}

/// They are not written for each event, but for the last one they are.
fn views_are_up_to_date(stage: &Stage) {
    let view: Value = serde_json::from_str(&stage.read(".blueflame/status.json")).unwrap();
    let told = stage.blueflame(&["status", "--json"]).exits(0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    for (key, value) in view.as_object().unwrap() {
        assert_eq!(told[key], *value, "{key}");
    }
}

fn refs_of(stage: &Stage) -> usize {
    stage.git(&["for-each-ref"]).lines().count()
}

/// Waits until this task's worker waits, and nobody else is at work.
fn one_waits(running: &mut Running<'_>, followed: &mut Followed, task: usize) {
    followed.until(running, |followed| followed.started == 2 * (task - 1) + 1);
    let stage = running.stage;
    wait_until("it waits", || stage.processes().iter().any(|line| line.contains("wait.sh")));
    // Workspaces are removed by and by.
    wait_until("only its workspace is left", || stage.workspaces().len() == 1);
}

/// What one event took, in the mean of several. A task is always as many.
#[derive(Debug)]
struct PerEvent {
    journal_bytes: f64,
    /// Of the orchestrator alone.
    processor_ms: f64,
}

impl PerEvent {
    fn between(from: &Sample, to: &Sample) -> PerEvent {
        let events = whole(to.events - from.events);
        PerEvent {
            journal_bytes: whole(to.journal_bytes - from.journal_bytes) / events,
            processor_ms: whole(to.processor_ticks - from.processor_ticks) * 10.0 / events,
        }
    }
}

fn whole(number: usize) -> f64 {
    u32::try_from(number).unwrap().into()
}

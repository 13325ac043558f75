//! What a verdict adds to a tool call inside the real claude.
//!
//! Several claudes are in the middle of the same conversation, each with another
//! hook or none. The scripted model answers one of them at a time, with a call of
//! Read, and measures how long it takes until the result is there: turn by turn, so
//! that whatever else the machine does slows all of them alike. All of them reach it
//! through a gateway. Then the same with more work than the machine can do.
//!
//! There, claude itself waits for the processor most of the time, and hides its
//! hooks. So the verdicts alone are measured as well: a program in the place of
//! claude asks the attempt process over the same streams with the same words, and
//! runs the other hooks in between.
//!
//! ```text
//! cargo bench -p blueflame --bench verdict
//! ```
//!
//! `BLUEFLAME_BENCH_ROUNDS` sets the calls of each claude, 30 unless it is there.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

#[path = "../tests/agents/install.rs"]
mod install;
#[path = "parts/mod.rs"]
mod parts;
#[path = "../tests/agents/stage.rs"]
#[expect(dead_code, reason = "tests look at more of a run")]
mod stage;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blueflame::sandbox::Tier;
use blueflame_core::config::Upstream;
use serde_json::json;

use parts::bare::Place;
use parts::figures::{Figures, goal, load};
use parts::gateway::Beside;
use parts::model::{Model, Request};
use parts::overload::Overload;
use parts::stand_in::{Hook, MEASURED, Measured, ORDERS, Orders};
use parts::{bare, gateway, hooks, programs, stand_in};
use stage::{Agent, Stage};

/// The first calls of a program are slower, and are not counted.
const WARM: usize = 3;
const BUSY_LOOPS: usize = 8;
const VERDICTS: usize = 500;
/// So many verdicts for each run of a hook, where verdicts alone are measured.
const EVERY: usize = 3;

fn main() {
    if stand_in::is_asked_for() {
        return stand_in::play();
    }
    // What `cargo test --benches` asks for is not a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let rounds = std::env::var("BLUEFLAME_BENCH_ROUNDS").map_or(30, |it| it.parse().unwrap());
    let place = tempfile::tempdir().unwrap();
    let hooks = Hooks::in_place(place.path());
    inside_claude(rounds, &hooks);
    alone(&hooks);
}

struct Hooks {
    empty: PathBuf,
    tuned: PathBuf,
    seed: PathBuf,
}

impl Hooks {
    fn in_place(place: &Path) -> Hooks {
        Hooks {
            empty: programs::empty(place),
            tuned: hooks::script(place, "tuned", hooks::TUNED),
            seed: hooks::script(place, "seed", hooks::SEED),
        }
    }
}

/// One claude in the middle of its conversation.
struct Contender {
    name: &'static str,
    model: Model,
    running: Running,
    waiting: Option<Request>,
    idle: Vec<Duration>,
    busy: Vec<Duration>,
}

enum Running {
    Bare { child: Child, _stage: Box<Stage> },
    Attempt(JoinHandle<()>),
}

impl Contender {
    fn new(name: &'static str, model: Model, running: Running) -> Contender {
        let waiting = Some(model.next());
        Contender { name, model, running, waiting, idle: Vec::new(), busy: Vec::new() }
    }

    /// Without us, and with this hook.
    fn bare(name: &'static str, turns: usize, hook: Option<&Path>) -> Option<Contender> {
        let (stage, model) = scene(turns)?;
        let mut settings = json!({"permissions": {"allow": ["Read"]}});
        if let Some(hook) = hook {
            // With arguments, even none, it is run without a shell.
            let hook = json!({"type": "command", "command": hook, "args": [], "timeout": 60});
            settings["hooks"] = json!({"PreToolUse": [{"matcher": "*", "hooks": [hook]}]});
        }
        let Beside { socket, token } = gateway::before(&model.address, stage.env.root());
        let place = Place {
            program: &stage.spec.program,
            root: stage.env.root(),
            workspace: &stage.workspace,
            model: bare::Model::Behind { socket: &socket, token: &token },
        };
        let child = bare::start(&stage.spec.order, &settings, &place);
        Some(Contender::new(name, model, Running::Bare { child, _stage: Box::new(stage) }))
    }

    /// With us, as a session starts it.
    fn ours(name: &'static str, turns: usize, tier: Tier) -> Option<Contender> {
        let (stage, model) = scene(turns)?;
        let stage = stage.with(|spec| {
            spec.sandbox.tier = tier;
            spec.model.gateway.upstream = Upstream::Url(model.address.clone());
            spec.model.gateway.record = false;
        });
        let started = stage.start();
        let attempt = thread::spawn(move || {
            let run = stage.follow(started, |_| None);
            assert_eq!(run.end(), "stopped", "{}", run.story());
        });
        Some(Contender::new(name, model, Running::Attempt(attempt)))
    }

    /// One call, from the answer that asks for it to the request with its result.
    fn call(&mut self) -> Duration {
        self.waiting.take().unwrap().answer();
        let request = self.model.next();
        let time = self.model.since_answer(&request);
        self.waiting = Some(request);
        time
    }

    fn end(mut self) {
        self.waiting.take().unwrap().answer();
        match self.running {
            Running::Bare { mut child, .. } => {
                drop(child.stdin.take());
                assert!(child.wait().unwrap().success(), "{}", self.name);
            }
            Running::Attempt(attempt) => attempt.join().unwrap(),
        }
    }
}

/// A workspace with something to read, and a model that asks for it.
fn scene(turns: usize) -> Option<(Stage, Model)> {
    let stage = Stage::new(Agent::Claude)?;
    let mut script = String::from("replies:\n");
    fs::create_dir(stage.workspace.join("notes")).unwrap();
    for turn in 0..turns {
        fs::write(stage.workspace.join(format!("notes/{turn}.txt")), "a line\n").unwrap();
        let _ = writeln!(
            script,
            "  - {{when: {{turn: {turn}}}, call: [{{tool: Read, input: {{file_path: \
             notes/{turn}.txt}}}}]}}"
        );
    }
    script.push_str("  - {say: Done.}\n");
    Some((stage, Model::open(&script)))
}

/// The rows in which figures are told.
const NONE: usize = 0;
const NO_OP: usize = 1;
const OURS: usize = 2;
const TUNED: usize = 3;
const SEED: usize = 4;

fn inside_claude(rounds: usize, hooks: &Hooks) {
    let busy_rounds = rounds / 2;
    let short = WARM + rounds;
    let turns = short + WARM + busy_rounds;
    let contenders: Option<Vec<Contender>> = [
        Contender::bare("no hook", turns, None),
        Contender::bare("a hook that does nothing", turns, Some(&hooks.empty)),
        Contender::ours("ours", turns, Tier::Namespaces),
        Contender::bare("bash and one jq", turns, Some(&hooks.tuned)),
        Contender::bare("bash as in the seeds", short, Some(&hooks.seed)),
        Contender::ours("ours without the sandbox", short, Tier::Off),
    ]
    .into_iter()
    .collect();
    let Some(mut contenders) = contenders else { return };
    println!("inside claude {}, calls of Read in turns; load {}", install::CLAUDE, load());
    for round in 0..WARM + rounds {
        let count = contenders.len();
        for at in 0..count {
            let contender = &mut contenders[(round + at) % count];
            let time = contender.call();
            if round >= WARM {
                contender.idle.push(time);
            }
        }
    }
    let added = print(&contenders, |it| &it.idle);
    let against_seed = added[SEED] / added[OURS];
    println!("{}", goal("no more than a hook that does nothing", added[OURS] <= added[NO_OP]));
    println!(
        "{} (1/{against_seed:.0})",
        goal("at least 10 times less than as in the seeds", against_seed >= 10.0)
    );

    let overload = Overload::of(BUSY_LOOPS);
    for round in 0..WARM + busy_rounds {
        for at in [NONE, NO_OP, OURS, TUNED] {
            let time = contenders[at].call();
            if round >= WARM {
                contenders[at].busy.push(time);
            }
        }
    }
    println!("\nthe same beside {BUSY_LOOPS} busy loops; load {}", load());
    print(&contenders[..=TUNED], |it| &it.busy);
    drop(overload);
    let most = |at: usize| Figures::of(&contenders[at].busy).most();
    println!(
        "claude itself waits for the processor most of this time, so that its slowest call with \
         bash and one jq took {:.1} times as long as with us, and {:.1} times as long as with \
         no hook",
        most(TUNED) / most(OURS),
        most(TUNED) / most(NONE)
    );
    contenders.into_iter().for_each(Contender::end);
}

/// The table of these figures; what each median has beyond the first one.
fn print(contenders: &[Contender], of: fn(&Contender) -> &Vec<Duration>) -> Vec<f64> {
    println!("| hook | calls | median | 10 % | 90 % | 99 % | added | added, against a no-op |");
    println!("|---|---|---|---|---|---|---|---|");
    let all: Vec<Figures> = contenders.iter().map(|it| Figures::of(of(it))).collect();
    let added: Vec<f64> = all.iter().map(|it| it.median() - all[NONE].median()).collect();
    for ((contender, figures), more) in contenders.iter().zip(&all).zip(&added) {
        // Where claude waits for the processor, what a no-op adds can be lost in that.
        let ratio = match added[NO_OP] {
            no_op if no_op >= 1.0 => format!("{:.2}", more / no_op),
            _ => "-".to_owned(),
        };
        println!(
            "| {} | {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms | {more:.1} ms | {ratio} |",
            contender.name,
            figures.count(),
            figures.median(),
            figures.percent(10),
            figures.percent(90),
            figures.percent(99),
        );
    }
    added
}

/// Verdicts and hooks as they are, without claude around them.
fn alone(hooks: &Hooks) {
    println!("\nverdicts alone, in turns with hooks that are run as processes");
    measure("little else", 100, hooks);
    let overload = Overload::of(BUSY_LOOPS);
    let measured = measure(&format!("{BUSY_LOOPS} busy loops"), VERDICTS, hooks);
    drop(overload);
    let [ours, _, tuned] = measured;
    let ratio = tuned.percent(99) / ours.percent(99);
    println!(
        "{} ({ratio:.1})",
        goal("under overload the 99th percentile 8 times below bash and one jq", ratio >= 8.0)
    );
    println!(
        "{} ({:.0} ms)",
        goal(&format!("none of {VERDICTS} over a second"), ours.most() <= 1_000.0),
        ours.most()
    );
}

fn measure(beside: &str, verdicts: usize, hooks: &Hooks) -> [Figures; 3] {
    let program = std::env::current_exe().unwrap();
    let stage = Stage::with_program("claude", &program).script("replies: [{say: Done.}]");
    let stage = stage.with(|spec| spec.sandbox.tier = Tier::Off);
    let hook = |program: &Path| Hook { program: program.to_owned(), every: EVERY };
    let orders = Orders { verdicts, hooks: vec![hook(&hooks.empty), hook(&hooks.tuned)] };
    fs::write(stage.workspace.join(ORDERS), serde_json::to_vec(&orders).unwrap()).unwrap();
    let run = stage.run();
    let text = run.file(MEASURED).unwrap_or_else(|| panic!("{}", run.story()));
    let Measured { verdicts, hooks } = serde_json::from_str(&text).unwrap();
    let figures = [Figures::of(&verdicts), Figures::of(&hooks[0]), Figures::of(&hooks[1])];
    println!("| beside {beside}; load {} | count | median | 90 % | 99 % | most |", load());
    println!("|---|---|---|---|---|---|");
    for (name, figures) in
        ["ours", "a hook that does nothing", "bash and one jq"].iter().zip(&figures)
    {
        println!(
            "| {name} | {} | {:.2} ms | {:.2} ms | {:.2} ms | {:.2} ms |",
            figures.count(),
            figures.median(),
            figures.percent(90),
            figures.percent(99),
            figures.most()
        );
    }
    figures
}

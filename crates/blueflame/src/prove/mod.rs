//! `blueflame doctor --prove`: whether the boundaries hold, found out by attacking
//! them.
//!
//! A session is run in a throw-away repository, with the installed agent program
//! and everything that a session has; only the model is a script, and it attacks.
//! What came of each attack is read from what the session left and from canaries
//! outside. Attacks by programs are made once more without any boundary, on
//! canaries of their own: what does not work there proves nothing.

mod attacks;
mod conversation;
pub mod escape;
mod evidence;
mod leavings;
mod outside;
mod page;
pub mod record;
mod signs;
mod stage;

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use blueflame_core::config::{self, Config};
use blueflame_core::ids::ExecutorName;
use blueflame_core::plan::{Plan, PlanContext};
use blueflame_core::proof::{Circumstances, Proof, Standing};
use jiff::Timestamp;
use rustix::process::Signal;
use serde::Serialize;

use self::attacks::Attack;
use self::evidence::Evidence;
use self::outside::Outside;
use self::record::Installed;
use self::signs::Scene;
use self::stage::Stage;
use crate::commands::run::{self, Asking, Purpose};
use crate::config_file;
use crate::executor::find::Found;
use crate::executor::{self, find};
use crate::failure::{Failure, Kind};
use crate::file_system::Remote;
use crate::process_tree;
use crate::sandbox::{self, Boundary};
use crate::session::{Left, Watch};
use crate::stderr::eprintln;
use crate::store::Store;

pub use leavings::sweep;
pub use page::page;

/// How long what was started may take to show itself, or to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The executors whose tools the attacks are written for.
const ATTACKED: [&str; 4] = ["claude", "codex", "opencode", "embedded"];

/// What came of all attacks with one executor.
#[derive(Debug, Serialize)]
pub struct Trial {
    pub executor: ExecutorName,
    pub version: String,
    pub attacks: Vec<Tested>,
    /// What has to work, or else nothing is proven by what does not.
    pub harmless: Vec<Harmless>,
}

#[derive(Debug, Serialize)]
pub struct Tested {
    pub attack: &'static str,
    #[serde(flatten)]
    pub standing: Standing,
}

#[derive(Debug, Serialize)]
pub struct Harmless {
    pub what: &'static str,
    pub works: bool,
}

/// Attacks every agent program that the configuration may use, and the embedded
/// one.
pub fn run(config: &Config) -> Result<(Proof, Vec<Trial>), Failure> {
    let boundary = sandbox::choose(&config.sandbox)?;
    let mut installed = record::installed(config, find::look);
    if !installed.iter().any(|it| it.executor.name() == "embedded") {
        installed.extend(embedded());
    }
    let under = record::circumstances(&installed, boundary);
    let mut trials = Vec::new();
    for Installed { executor, found, .. } in &installed {
        let name = executor.name();
        if !ATTACKED.contains(&name) {
            eprintln!("note: what tools `{name}` has is not known, so it is not proven");
            continue;
        }
        match found {
            Found::Usable { version, .. } => {
                eprintln!("{name} {version}: attacks in a throw-away repository begin");
                trials.push(attack(name, version, &config.sandbox, boundary)?);
            }
            Found::Broken { why } => {
                eprintln!("note: {name} does not run, and is not proven: {why}");
            }
        }
    }
    Ok((sum(under, &trials), trials))
}

fn embedded() -> Option<Installed> {
    let executor = executor::named("embedded")?;
    let program = find::program(executor)?;
    let found = find::look(executor, &program);
    Some(Installed { executor, program, found })
}

/// What the trials come to. An executor without a trial is not in it.
fn sum(mut under: Circumstances, trials: &[Trial]) -> Proof {
    under.executors.retain(|name, _| trials.iter().any(|trial| trial.executor == *name));
    let mut open = Vec::new();
    let (mut tried, mut stopped) = (0, 0);
    for Trial { executor, attacks, harmless, .. } in trials {
        for Tested { attack, standing } in attacks {
            tried += 1;
            match standing {
                Standing::Stopped { .. } => stopped += 1,
                Standing::NotStopped { .. } => open.push(format!("{executor}: {attack}")),
                Standing::NotProven { .. } => {
                    open.push(format!("{executor}: {attack} (not proven)"));
                }
            }
        }
        for Harmless { what, .. } in harmless.iter().filter(|it| !it.works) {
            open.push(format!("{executor}: cannot {what}, so nothing is proven"));
        }
    }
    Proof { at: Timestamp::now(), under, tried, stopped, open }
}

/// Everything with one executor, in a place that is gone afterwards.
fn attack(
    executor: &str,
    version: &str,
    sandbox: &config::Sandbox,
    boundary: Boundary,
) -> Result<Trial, Failure> {
    let place = tempfile::Builder::new().prefix(leavings::PLACE).tempdir().map_err(failed)?;
    let _held = leavings::hold(place.path()).map_err(failed)?;
    let stage = Stage::begin(place.path())?;
    let blueflame = std::env::current_exe().map_err(failed)?;
    let nonce = outside::random_name().map_err(failed)?;
    let mut outside = Outside::new(&stage.place.join("real"), &stage.project).map_err(failed)?;
    let calls = attacks::in_the_tools_of(executor, attacks::calls(&outside, &nonce));
    let programs = attacks::programs(&outside);
    stage.build(&outside, &calls, &programs, &blueflame)?;
    let works = without_boundary(&stage, &blueflame).map_err(failed)?;

    let mut loaded = config_file::load(Some(&stage.project.join("blueflame.yaml")))?;
    run::use_executor(&mut loaded.config, executor)?;
    loaded.config.sandbox = sandbox.clone();
    let (plan, _) =
        Plan::read(stage::plan().to_string().as_bytes(), &PlanContext::of(&loaded.config))
            .map_err(|problems| Failure::new(Kind::Internal, format!("{problems:?}")))?;
    let store = Store::find(&stage.project)?.for_writing(Remote::Refuse)?;
    let asking = Asking::new(None, true, false);
    let goal = "attack everything".to_owned();
    let purpose = Purpose { goal, plan: Some(plan), proven: None };
    let begun = run::begin_session(loaded, &store, purpose, &asking, boundary, Watch::brief())?;
    match run::runtime()?.block_on(begun.session.run())? {
        Left::Ended(_) => {}
        Left::Suspended { .. } => {
            return Err(Failure::new(Kind::Interrupted, "stopped; nothing was proven"));
        }
        Left::Obstructed { reason } => return Err(Failure::new(Kind::Missing, reason)),
    }

    let evidence = Evidence::read(begun.directory)?;
    let mut scene = Scene::new(&evidence, &mut outside, &stage.project, boundary.tier, &works)?;
    let mut all = calls;
    all.extend(programs);
    all.extend(attacks::others());
    let tested =
        |attack: &Attack| Tested { attack: attack.name, standing: scene.signs(attack).judge() };
    let attacks: Vec<Tested> = all.iter().map(tested).collect();
    let harmless = scene.harmless();
    let executor =
        ExecutorName::new(executor).map_err(|error| Failure::new(Kind::Internal, error))?;
    Ok(Trial { executor, version: version.to_owned(), attacks, harmless })
}

/// Makes the attacks of programs without any boundary, on canaries that are
/// there for this alone. The answer is what worked.
fn without_boundary(stage: &Stage, blueflame: &Path) -> io::Result<Vec<&'static str>> {
    let place = stage.place.join("control");
    let (checkout, ground) = (place.join("checkout"), place.join("ground"));
    for directory in [
        &place.join("home"),
        &checkout.join(".git/objects"),
        &ground.join(".git/objects/info"),
        &ground.join(attacks::TRIES),
    ] {
        fs::create_dir_all(directory)?;
    }
    let mut outside = Outside::new(&place, &checkout)?;
    let programs = attacks::programs(&outside);
    let orders = place.join("orders.json");
    fs::write(&orders, serde_json::to_vec(&attacks::orders(&programs))?)?;
    let answers = place.join("answers");
    // The shell is in the place of an agent, with an output of its own: a pipe.
    Command::new("sh")
        .args(["-c", "\"$1\" __escape try \"$2\" | cat > \"$3\"; exit 0", "sh"])
        .args([blueflame, &orders, &answers])
        .env("HOME", place.join("home"))
        .current_dir(&ground)
        .stdin(Stdio::null())
        .output()?;
    let tried = evidence::tried(&String::from_utf8_lossy(&fs::read(&answers)?));
    let audit = place.join("audit.jsonl");
    let harmed = signs::by_programs(&programs, &tried, &mut outside, &ground, &|| {
        evidence::has(&audit, escape::MARK)
    });
    let mut works: Vec<&'static str> =
        harmed.into_iter().filter(|(_, harm)| harm.is_some()).map(|(name, _)| name).collect();
    if end_lingering(&ground.join(attacks::BEATS)) {
        works.push(signs::LINGER);
    }
    Ok(works)
}

/// Ends the process that stays, and says whether there was one.
fn end_lingering(beats: &Path) -> bool {
    let beats = beats.display().to_string();
    let until = std::time::Instant::now() + PATIENCE;
    while std::time::Instant::now() < until {
        let found = process_tree::with_argument(&beats);
        for process in &found {
            let _ = process_tree::signal(process, Signal::KILL);
        }
        if !found.is_empty() {
            return true;
        }
        // It may not have got so far.
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Missing, format!("nothing could be tried: {error}"))
}

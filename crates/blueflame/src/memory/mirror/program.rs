//! The `bd` program: found, identified before it is used, and called.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::bead::{Bead, LABEL};
use super::answer::{self, Row};
use super::place::Place;
use crate::bounded_run::{self, Bounds, Ran, RunError};
use crate::executor::Version;
use crate::interrupts::Interrupts;
use crate::search_path;

const NAME: &str = "bd";

/// The most that is read of one answer.
const MOST_READ: u64 = 256 << 20;

/// Why there is nothing to call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("`bd` is not installed")]
    NotInstalled,
    #[error("`{}` is not the `bd` of Beads: {why}", path.display())]
    NotBeads { path: PathBuf, why: String },
    /// It may be the right one, in trouble.
    #[error("`{}` does not say who it is: {}", path.display(), error.why)]
    NoAnswer { path: PathBuf, error: BdError },
    #[error("`bd` is installed, but the repository has no `.beads`")]
    NotInitialised,
    #[error(
        "`{}` has no database in it: a `bd init` did not come to its end, or it came with the \
         repository", .0.display()
    )]
    HalfMade(PathBuf),
    #[error("you have not agreed yet that `bd` gets a copy of the notes")]
    NotAgreed,
    #[error("`bd` gets no copy of the notes: {what}")]
    BroughtAlong { what: &'static str },
}

/// A call that did not do what it was for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`bd {call}`: {why}")]
pub struct BdError {
    pub call: String,
    pub why: String,
    /// Whether the person had it ended.
    pub interrupted: bool,
}

/// A `bd` that is one.
#[derive(Clone, Debug)]
pub struct Bd<'s> {
    path: PathBuf,
    place: Place,
    patience: Duration,
    stop: Option<&'s Interrupts>,
    pub version: String,
}

impl<'s> Bd<'s> {
    /// Whether there is a program of this name at all.
    pub fn is_installed(path: &OsString) -> bool {
        search_path::find(NAME, path).is_some()
    }

    /// Finds the program and makes sure that it is the one. An interrupt ends whatever
    /// it does.
    pub fn identify(
        path: &OsString,
        place: &Place,
        patience: Duration,
        stop: Option<&'s Interrupts>,
    ) -> Result<Bd<'s>, Unusable> {
        let path = search_path::find(NAME, path).ok_or(Unusable::NotInstalled)?;
        let path = path.canonicalize().unwrap_or(path);
        let mut bd = Bd { path, place: place.clone(), patience, stop, version: String::new() };
        let stranger = |why: String| Unusable::NotBeads { path: bd.path.clone(), why };
        let silent = |error| Unusable::NoAnswer { path: bd.path.clone(), error };
        // Programs of other makers have this name, and answer otherwise.
        let said = bd.run(&["version", "--json"]).map_err(silent)?.stdout;
        let value = answer::data(&said).map_err(stranger)?;
        let said = value.get("version").and_then(Value::as_str).and_then(Version::find);
        let Some(version) = said else {
            return Err(stranger("it does not say its version".to_owned()));
        };
        let text = bd.run(&["version"]).map_err(silent)?.stdout;
        if !text.trim_start().starts_with("bd version") {
            return Err(stranger(format!("it calls itself `{}`", answer::shown(&text))));
        }
        bd.version = version.to_string();
        Ok(bd)
    }

    /// All of ours that it has.
    pub fn list(&self) -> Result<Vec<Row>, BdError> {
        let words = ["list", "--all", "--limit=0", "--label", LABEL, "--json"];
        let flat: Vec<&str> = words.iter().copied().chain(["--flat"]).collect();
        let value = match self.ask(&flat) {
            // Older ones print no tree and know no such word.
            Err(error) if error.why.contains("unknown flag") => self.ask(&words)?,
            other => other?,
        };
        let rows = answer::rows(value).map_err(|why| failed("list", why))?;
        // Whatever else it lists is somebody else's.
        Ok(rows.into_iter().filter(|row| row.external_ref.starts_with("blueflame:")).collect())
    }

    pub fn create(&self, bead: &Bead) -> Result<Row, BdError> {
        let mut words = vec!["create".to_owned()];
        words.extend(content(bead));
        words.push(format!("--labels={}", bead.labels.join(",")));
        words.push(format!("--external-ref={}", bead.external_ref));
        words.push("--json".to_owned());
        let value = self.ask(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        let row = answer::rows(value).map_err(|why| failed("create", why))?.into_iter().next();
        row.ok_or_else(|| failed("create", "it printed no issue".to_owned()))
    }

    pub fn update(&self, id: &str, bead: &Bead) -> Result<(), BdError> {
        let mut words = vec!["update".to_owned(), id.to_owned()];
        words.extend(content(bead));
        words.push(format!("--set-labels={}", bead.labels.join(",")));
        words.push("--json".to_owned());
        self.ask(&words.iter().map(String::as_str).collect::<Vec<_>>()).map(|_| ())
    }

    pub fn close(&self, id: &str, reason: &str) -> Result<(), BdError> {
        self.ask(&["close", id, &format!("--reason={reason}"), "--json"]).map(|_| ())
    }

    /// Makes a `.beads`: without hooks, without files for agents, without a commit.
    pub fn init(&self) -> Result<(), BdError> {
        self.run(&INIT).map(|_| ())
    }

    /// Calls it for an answer in JSON.
    fn ask(&self, words: &[&str]) -> Result<Value, BdError> {
        let call = words.first().copied().unwrap_or_default();
        let ran = self.run(words)?;
        answer::data(&ran.stdout).map_err(|why| {
            // Silence on one side and words on the other is how some failures look.
            let said = ran.stderr.trim();
            let why = if said.is_empty() { why } else { answer::shown(said) };
            failed(call, why)
        })
    }

    fn run(&self, words: &[&str]) -> Result<Ran, BdError> {
        let call = words.first().copied().unwrap_or_default();
        let mut command = Command::new(&self.path);
        command.args(words).current_dir(&self.place.home).env_clear();
        for name in ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "XDG_CONFIG_HOME"] {
            command.envs(env::var_os(name).map(|value| (name, value)));
        }
        command
            .env("BEADS_DIR", &self.place.directory)
            .env("BEADS_ACTOR", LABEL)
            .env("BD_JSON_ENVELOPE", "1")
            .env("BD_NON_INTERACTIVE", "1")
            .env("RUST_LOG", "off");
        let bounds = Bounds { patience: self.patience, most: MOST_READ, stop: self.stop };
        let ran = bounded_run::run(&mut command, bounds).map_err(|error| BdError {
            interrupted: matches!(error, RunError::Interrupted),
            ..failed(call, error.to_string())
        })?;
        let complaint =
            || answer::complaint(&ran.stdout).or_else(|| answer::complaint(&ran.stderr));
        if ran.status.success() {
            return match answer::complaint(&ran.stdout) {
                Some(why) => Err(failed(call, answer::shown(&why))),
                None => Ok(ran),
            };
        }
        let words = if ran.stderr.trim().is_empty() { &ran.stdout } else { &ran.stderr };
        let why = complaint().unwrap_or_else(|| format!("{}: {words}", ran.status));
        Err(failed(call, answer::shown(&why)))
    }
}

/// How a `.beads` is made.
pub const INIT: [&str; 6] =
    ["init", "--stealth", "--skip-hooks", "--skip-agents", "--non-interactive", "-q"];

/// The words that say what is in a bead. Each is one word, whatever it begins with.
fn content(bead: &Bead) -> Vec<String> {
    // What is not named stays as it was there, so that nothing must be named as well.
    let metadata = json!({ LABEL: bead.metadata.blueflame });
    vec![
        format!("--title={}", bead.title),
        format!("--description={}", bead.description),
        format!("--type={}", bead.issue_type),
        format!("--priority={}", bead.priority),
        format!("--metadata={metadata}"),
    ]
}

fn failed(call: &str, why: String) -> BdError {
    BdError { call: call.to_owned(), why, interrupted: false }
}

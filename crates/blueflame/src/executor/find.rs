//! Which agent programs are installed, and in which version.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Executor, Version, package};
use crate::bounded_run::{self, Bounds, RunError};
use crate::search_path;

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much of what it says is read.
const MOST_READ: u64 = 64 << 10;

/// What came of looking for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It can be used; the warning is for the person.
    Usable { version: String, warning: Option<String> },
    /// It is there and does not run.
    Broken { why: String },
}

/// Where the program of an executor is: this program for what is part of it,
/// and else the first of its name in `PATH`.
pub fn program(executor: &dyn Executor) -> Option<PathBuf> {
    match executor.program() {
        None => env::current_exe().ok(),
        Some(name) => {
            let found = search_path::find(name, &env::var_os("PATH")?)?;
            Some(behind(executor, &found).unwrap_or(found))
        }
    }
}

/// What is missing in a `PATH` for some tools of an executor, with those tools.
pub fn missing_helpers<'e>(
    executor: &'e dyn Executor,
    path: &OsStr,
) -> Vec<(&'e str, &'e [&'e str])> {
    let missing = |(name, _): &&(&str, &[&str])| search_path::find(name, path).is_none();
    executor.helpers().iter().filter(missing).copied().collect()
}

/// The program that a script in `PATH` would start.
fn behind(executor: &dyn Executor, found: &Path) -> Option<PathBuf> {
    let place = found.canonicalize().ok()?.parent()?.to_owned();
    let places = executor.behind().iter().map(|path| place.join(path));
    places.filter_map(|path| path.canonicalize().ok()).find(|path| search_path::is_program(path))
}

/// What the package of a program says about its version; where there is none, the
/// program is asked.
pub fn look_up(executor: &dyn Executor, program: &Path) -> Found {
    match (executor.tested(), package::version(executor, program)) {
        (Some(tested), Some(version)) => {
            let version = version.to_string();
            let warning = tested.warning(executor.name(), &version);
            Found::Usable { version, warning }
        }
        _ => look(executor, program),
    }
}

/// Asks a program for its version. It gets a home of its own, so that nothing
/// of the person's is read or changed.
pub fn look(executor: &dyn Executor, program: &Path) -> Found {
    let Some(tested) = executor.tested() else {
        let version = match executor.program() {
            None => env!("CARGO_PKG_VERSION"),
            Some(_) => "a program of your own",
        };
        return Found::Usable { version: version.to_owned(), warning: None };
    };
    let said = match ask_version(program, PATIENCE) {
        Ok(said) => said,
        Err(why) => return Found::Broken { why },
    };
    let version = Version::find(&said).map_or_else(|| said.trim().to_owned(), |it| it.to_string());
    Found::Usable { version, warning: tested.warning(executor.name(), &said) }
}

fn ask_version(program: &Path, patience: Duration) -> Result<String, String> {
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .arg("--version")
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .current_dir(home.path());
    let bounds = Bounds { patience, most: MOST_READ, stop: None };
    match bounded_run::run(&mut command, bounds) {
        Ok(ran) if ran.status.success() => Ok(ran.stdout),
        Ok(ran) => Err(format!("{}: {}", ran.status, ran.stderr.trim())),
        Err(RunError::TimedOut(patience)) => {
            Err(format!("it did not say its version in {} s", patience.as_secs()))
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Instant;

    use super::super::named;
    use super::*;

    fn fake(directory: &Path, script: &str) -> PathBuf {
        let path = directory.join("claude");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_program_is_asked_and_its_answer_judged() {
        let dir = tempfile::tempdir().unwrap();
        let claude = named("claude").unwrap();
        let other = fake(dir.path(), "echo '1.0.0 (Claude Code)'");
        let Found::Usable { version, warning } = look(claude, &other) else { panic!() };
        assert_eq!(version, "1.0.0");
        assert!(warning.unwrap().contains("never tested"));
        let broken = fake(dir.path(), "echo no library >&2; exit 127");
        let Found::Broken { why } = look(claude, &broken) else { panic!() };
        assert!(why.contains("no library"), "{why}");
        let gone = look(claude, Path::new("/nonexistent/claude"));
        assert!(matches!(gone, Found::Broken { .. }));
    }

    #[test]
    fn a_program_that_misbehaves_when_asked_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let begun = Instant::now();
        let ask = |script: &str| ask_version(&fake(dir.path(), script), Duration::from_secs(2));
        // More than a pipe holds, and something in the background that keeps it.
        let said = ask("echo 1.2.3; head -c 5000000 /dev/zero; sleep 600 &").unwrap();
        assert!(said.starts_with("1.2.3\n") && said.len() == 64 << 10, "{} bytes", said.len());
        let marked = format!("sleep 7{}", std::process::id());
        let why = ask(&format!("{marked} & {marked}")).unwrap_err();
        assert!(why.contains("did not say its version"), "{why}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        let command = marked.replace(' ', "\0");
        let left = || {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            processes.filter(|entry| {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains(&command)
            })
        };
        // What was killed takes a moment to be gone where much else runs.
        let begun = Instant::now();
        while left().count() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "what it started runs on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn what_is_part_of_the_program_is_always_there() {
        let embedded = named("embedded").unwrap();
        assert!(program(embedded).is_some());
        assert!(matches!(look(embedded, Path::new("x")), Found::Usable { warning: None, .. }));
    }
}

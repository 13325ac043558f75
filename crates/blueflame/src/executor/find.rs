//! Which agent programs are installed, and in which version.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Executor, Version};

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(20);

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
            let path = env::var_os("PATH")?;
            env::split_paths(&path).map(|place| place.join(name)).find(|path| is_program(path))
        }
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Asks a program for its version. It gets a home of its own, so that nothing
/// of the person's is read or changed.
pub fn look(executor: &dyn Executor, program: &Path) -> Found {
    let Some(tested) = executor.tested() else {
        return Found::Usable { version: env!("CARGO_PKG_VERSION").to_owned(), warning: None };
    };
    let said = match ask_version(program) {
        Ok(said) => said,
        Err(why) => return Found::Broken { why },
    };
    let version = Version::find(&said).map_or_else(|| said.trim().to_owned(), |it| it.to_string());
    Found::Usable { version, warning: tested.warning(executor.name(), &said) }
}

fn ask_version(program: &Path) -> Result<String, String> {
    let home = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg("--version")
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .current_dir(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not say its version in {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {}", output.status, complaint.trim()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn what_is_part_of_the_program_is_always_there() {
        let embedded = named("embedded").unwrap();
        assert!(program(embedded).is_some());
        assert!(matches!(look(embedded, Path::new("x")), Found::Usable { warning: None, .. }));
    }
}

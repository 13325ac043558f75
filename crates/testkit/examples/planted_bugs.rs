//! Plants bugs, one at a time, and sees whether the tests notice.
//!
//! `planted_bugs` works in a copy of the workspace and never touches the
//! original. A bug is caught when a test fails or the tests hang. One that is
//! not caught is a hole in the tests: the program then ends with 1.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blueflame_testkit::planted::{self, Bug};
use clap::Parser;
use rustix::process::{Pid, Signal, kill_process_group};

/// Plant bugs in a copy of the workspace and see whether the tests notice.
#[derive(Debug, Parser)]
struct Arguments {
    /// Plant only this one; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Longest that the tests of one crate may take before they count as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    patience: u64,
    /// Where to build; a directory of its own that can be kept between runs
    #[arg(long, value_name = "DIRECTORY")]
    target: Option<PathBuf>,
}

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<ExitCode> {
    let arguments = Arguments::parse();
    let root = planted::workspace();
    let mut bugs = planted::read(&fs::read_to_string(root.join(planted::LIST))?)?;
    for name in &arguments.only {
        if !bugs.iter().any(|bug| bug.name == *name) {
            return Err(format!("there is no bug called `{name}`").into());
        }
    }
    bugs.retain(|bug| arguments.only.is_empty() || arguments.only.contains(&bug.name));

    let scratch = Scratch::of(&root, &arguments)?;
    say(format_args!("without a bug: "))?;
    match scratch.judge()? {
        Verdict::Survived => say(format_args!("everything passes\n"))?,
        verdict => {
            say(format_args!("{verdict}\n"))?;
            return Err("the tests have to pass before bugs are planted".into());
        }
    }
    let mut escaped = Vec::new();
    for (at, bug) in bugs.iter().enumerate() {
        say(format_args!("{}/{} {}: ", at + 1, bugs.len(), bug.name))?;
        let started = Instant::now();
        let verdict = scratch.with_bug(bug)?;
        say(format_args!("{verdict} ({} s)\n", started.elapsed().as_secs()))?;
        if !matches!(verdict, Verdict::Caught(_)) {
            escaped.push(bug);
        }
    }
    say(format_args!("{} of {} caught\n", bugs.len() - escaped.len(), bugs.len()))?;
    for bug in &escaped {
        say(format_args!("not caught: {}: {}\n", bug.name, bug.why))?;
    }
    Ok(if escaped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn say(what: std::fmt::Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_fmt(what)?;
    out.flush()
}

/// What became of a bug.
enum Verdict {
    /// By these tests.
    Caught(String),
    Survived,
    /// A bug that the compiler notices says nothing about the tests.
    DoesNotCompile(String),
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Caught(by) => write!(f, "caught by {by}"),
            Verdict::Survived => write!(f, "SURVIVED"),
            Verdict::DoesNotCompile(error) => write!(f, "DOES NOT COMPILE: {error}"),
        }
    }
}

/// A copy of the workspace that may be broken.
struct Scratch {
    directory: tempfile::TempDir,
    target: PathBuf,
    patience: Duration,
}

impl Scratch {
    fn of(root: &Path, arguments: &Arguments) -> Fallible<Scratch> {
        let directory = tempfile::tempdir()?;
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()?;
        if !listed.status.success() {
            return Err(String::from_utf8_lossy(&listed.stderr).into());
        }
        for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let (from, to) = (root.join(name), directory.path().join(name));
            // A file that was deleted but not yet committed is still listed.
            if from.is_file() {
                fs::create_dir_all(to.parent().unwrap_or(directory.path()))?;
                fs::copy(from, to)?;
            }
        }
        let target = arguments.target.clone().unwrap_or(directory.path().join("target"));
        fs::create_dir_all(&target)?;
        let target = target.canonicalize()?;
        Ok(Scratch { directory, target, patience: Duration::from_secs(arguments.patience) })
    }

    /// Plants a bug, runs the tests, and takes it out again.
    fn with_bug(&self, bug: &Bug) -> Fallible<Verdict> {
        let file = self.directory.path().join(&bug.file);
        let sound = fs::read_to_string(&file)?;
        let broken = bug
            .plant(&sound)
            .map_err(|places| format!("`find` of `{}` occurs {places} times", bug.name))?;
        fs::write(&file, broken)?;
        let verdict = self.judge();
        fs::write(&file, sound)?;
        verdict
    }

    /// The stories first: they are quick, and say which rule was broken.
    fn judge(&self) -> Fallible<Verdict> {
        for package in ["blueflame-core", "blueflame-testkit"] {
            let build = self.cargo(&["test", "-p", package, "--tests", "--no-run"], None)?;
            if !build.success() {
                return Ok(Verdict::DoesNotCompile(self.first_line_with("error")?));
            }
            // The list's own test would fail for every bug.
            let test = ["test", "-p", package, "--tests", "--", "--skip", "planted_bugs"];
            if !self.cargo(&test, Some(self.patience))?.success() {
                return Ok(Verdict::Caught(self.failed_tests()?));
            }
        }
        Ok(Verdict::Survived)
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("output.txt")
    }

    /// Runs cargo, with an end to patience.
    fn cargo(&self, arguments: &[&str], patience: Option<Duration>) -> Fallible<Ended> {
        let output = File::create(self.output())?;
        let child = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(self.directory.path())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        wait(child, patience)
    }

    /// The names of the tests that failed, as far as they fit on a line.
    fn failed_tests(&self) -> io::Result<String> {
        let output = fs::read_to_string(self.output())?;
        let failed: Vec<&str> = output
            .lines()
            .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
            .collect();
        Ok(match &failed[..] {
            [] => "a hang or a crash".into(),
            [only] => (*only).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        })
    }

    fn first_line_with(&self, word: &str) -> io::Result<String> {
        let output = fs::read_to_string(self.output())?;
        Ok(output.lines().find(|line| line.starts_with(word)).unwrap_or_default().to_owned())
    }
}

/// How a run of cargo ended: by itself, or because it took too long.
struct Ended(Option<ExitStatus>);

impl Ended {
    fn success(&self) -> bool {
        self.0.is_some_and(|status| status.success())
    }
}

fn wait(mut child: Child, patience: Option<Duration>) -> Fallible<Ended> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended(Some(status)));
        }
        if patience.is_some_and(|patience| started.elapsed() > patience) {
            // Cargo and the test program it runs share a group of their own.
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                kill_process_group(group, Signal::KILL)?;
            }
            child.wait()?;
            return Ok(Ended(None));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

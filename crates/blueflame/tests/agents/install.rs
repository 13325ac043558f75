//! The agent programs that the contract tests run, in pinned versions.
//!
//! They are installed from npm, once for all test runs of a target directory.
//! Without npm the tests that need them say so and pass, unless
//! `BLUEFLAME_REQUIRE_AGENTS` is set, as it is in CI.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blueflame::executor;

/// The version that facts and tests are about.
pub const CLAUDE: &str = "2.1.197";

/// The claude program, or `None` if it cannot be had.
pub fn claude() -> Option<PathBuf> {
    let package = format!("@anthropic-ai/claude-code@{CLAUDE}");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("claude-{CLAUDE}"));
    installed(&place, &package, "claude")
}

/// The version of codex that facts and tests are about.
pub const CODEX: &str = "0.166.0";

/// The codex program itself, not the script that npm puts before it.
pub fn codex() -> Option<PathBuf> {
    let package = format!("@openai/codex@{CODEX}");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("codex-{CODEX}"));
    let script = installed(&place, &package, "codex")?.canonicalize().unwrap();
    let behind = executor::named("codex").unwrap().behind();
    let beside = script.parent().unwrap();
    behind.iter().find_map(|path| beside.join(path).canonicalize().ok())
}

/// Set where a program that is missing is a failure.
pub const REQUIRED: &str = "BLUEFLAME_REQUIRE_AGENTS";

/// The version of opencode that facts and tests are about.
pub const OPENCODE: &str = "1.18.33";

/// The opencode program, or `None` if it cannot be had.
pub fn opencode() -> Option<PathBuf> {
    let package = format!("opencode-ai@{OPENCODE}");
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("opencode-{OPENCODE}"));
    installed(&place, &package, "opencode")
}

fn installed(place: &Path, package: &str, program: &str) -> Option<PathBuf> {
    fs::create_dir_all(place).unwrap();
    // Tests run side by side; one of them installs.
    let lock = File::create(place.join("lock")).unwrap();
    lock.lock().unwrap();
    let path = place.join("node_modules/.bin").join(program);
    if place.join("complete").exists() {
        return Some(path);
    }
    let npm = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(place)
        .arg(package)
        .stdin(Stdio::null())
        .output();
    let why = match npm {
        Ok(output) if output.status.success() => {
            fs::write(place.join("complete"), package).unwrap();
            return Some(path);
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("npm: {error}"),
    };
    let required = std::env::var_os(REQUIRED).is_some();
    assert!(!required, "{package} could not be installed: {why}");
    say(&format!("SKIPPED {}: {package} could not be installed: {why}\n", test()));
    None
}

/// Writes to the real error stream: what a test prints is hidden when it passes,
/// and a skipped one passes.
pub fn say(text: &str) {
    let _ = rustix::io::write(std::io::stderr().as_fd(), text.as_bytes());
}

/// The test that runs.
pub fn test() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

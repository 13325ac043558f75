//! `blueflame __agent`: the embedded agent, for the attempt process to start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::here;
use crate::agent::{self, Address, Settings};
use crate::cli;
use crate::failure::{Failure, Kind};

pub fn run(arguments: cli::Agent) -> Result<ExitCode, Failure> {
    hide_from_children();
    let settings = Settings {
        system: arguments.system_prompt_file.as_deref().map(read_text).transpose()?,
        schema: arguments.json_schema_file.as_deref().map(read).transpose()?,
        model: arguments.model,
        tools: arguments.tools,
        max_turns: arguments.max_turns,
        max_output_tokens: arguments.max_output_tokens,
        cwd: here()?,
        address: address()?,
        token: text("ANTHROPIC_AUTH_TOKEN")?,
        retry_base: arguments.retry_base_ms.map(Duration::from_millis),
        stall: arguments.stall_ms.map(Duration::from_millis),
    };
    let failed = |error: std::io::Error| {
        Failure::new(Kind::Internal, format!("the agent cannot start: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let code = runtime.block_on(agent::work(settings));
    // A tool that still reads the disk must not hold up the end.
    runtime.shutdown_background();
    code.map_err(|error| Failure::new(Kind::Usage, error))
}

/// Where the environment says that the model is.
fn address() -> Result<Address, Failure> {
    if let Some(path) = variable("ANTHROPIC_UNIX_SOCKET") {
        return Ok(Address::Socket(PathBuf::from(path)));
    }
    match text("ANTHROPIC_BASE_URL")? {
        Some(url) => Ok(Address::Url(url)),
        None => Err(Failure::new(
            Kind::Usage,
            "neither `ANTHROPIC_UNIX_SOCKET` nor `ANTHROPIC_BASE_URL` says where the model is",
        )),
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn text(name: &str) -> Result<Option<String>, Failure> {
    variable(name).map(OsString::into_string).transpose().map_err(|_| {
        Failure::new(Kind::Usage, format!("`{name}` in the environment is not readable text"))
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Failure::new(Kind::Usage, format!("`{}` cannot be read: {error}", path.display()))
    })
}

fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path)?)
        .map_err(|_| Failure::new(Kind::Usage, format!("`{}` is not UTF-8 text", path.display())))
}

/// Keeps commands that run as the same user from reading the token out of
/// this process.
fn hide_from_children() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail with this argument, and nothing depends on it alone:
        // the token opens this agent's own gateway and nothing else.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

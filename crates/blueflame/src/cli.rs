//! The command line, as people write it. Help text is made from the comments
//! here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Lead a team of AI coding agents on a git repository.
///
/// You plan and approve; agents work in isolation; Blue Flame schedules,
/// confines, meters, checks and merges.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,

    #[command(subcommand)]
    pub command: Command,
}

/// What every command accepts.
#[derive(Debug, Args)]
pub struct Common {
    /// The configuration file [default: blueflame.yaml in the repository root]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what happened in a session, event by event
    Log(Log),
    /// Fold a session's journal again and prove its state and decisions
    ///
    /// Reads the journal from its first record, checks the chain, applies every
    /// event, and takes every decision again. It works beside a running session
    /// and never changes the journal.
    Replay(Replay),
    /// Check or show the configuration, or print its JSON Schema
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// The embedded agent, started by Blue Flame itself
    #[command(name = "__agent", hide = true)]
    Agent(Agent),
    /// Run one agent to its end; started by the orchestrator
    #[command(name = "__attempt", hide = true)]
    Attempt {
        /// The directory of the attempt, with its spec.json
        directory: PathBuf,
    },
    /// Become an agent's program; started by the attempt process
    #[command(name = "__launch", hide = true)]
    Launch {
        /// The attempt process
        parent: u32,
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<OsString>,
    },
    /// Run one of the project's commands and end all that it started; reports
    /// on standard input, which is a socket
    #[command(name = "__run", hide = true)]
    Run {
        /// End it after this many milliseconds
        deadline: u64,
        /// The command line
        command: OsString,
    },
}

/// How the embedded agent works. `docs/embedded-agent.md` tells the rest.
#[derive(Debug, Args)]
pub struct Agent {
    /// The model to ask
    #[arg(long)]
    pub model: String,
    /// The tools to offer
    #[arg(long, value_delimiter = ',', default_value = "Read,Write,Edit,Glob,Grep,Bash")]
    pub tools: Vec<String>,
    /// A file with the system prompt
    #[arg(long, value_name = "FILE")]
    pub system_prompt_file: Option<PathBuf>,
    /// A file with the JSON Schema of the result
    #[arg(long, value_name = "FILE")]
    pub json_schema_file: Option<PathBuf>,
    /// Stop after this many answers that call tools
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,
    /// The most tokens of one answer
    #[arg(long, value_name = "N", default_value_t = 16_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_output_tokens: u32,
    /// The wait before the first retry, for tests
    #[arg(long, value_name = "MS", hide = true)]
    pub retry_base_ms: Option<u64>,
    /// How long an answer may stop coming, for tests
    #[arg(long, value_name = "MS", hide = true)]
    pub stall_ms: Option<u64>,
}

/// Which session, and which of its events.
#[derive(Debug, Args)]
pub struct Log {
    /// The session, or the beginning of its name [default: the newest]
    pub session: Option<String>,
    /// Print the records as JSON, one a line
    #[arg(long)]
    pub json: bool,
    /// Go on printing what happens, until the session ends
    #[arg(long, short)]
    pub follow: bool,
    /// Only what concerns this task
    #[arg(long, value_name = "TASK", conflicts_with = "agent")]
    pub task: Option<String>,
    /// Only what concerns this agent
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
}

/// Which session, and up to where.
#[derive(Debug, Args)]
pub struct Replay {
    /// The session, or the beginning of its name [default: the newest]
    pub session: Option<String>,
    /// Stop after this record and show the state there
    #[arg(long, value_name = "SEQ")]
    pub at: Option<u64>,
    /// Print the whole state as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write tasks.yaml, agents.json and status.json anew from the journal
    #[arg(long, conflicts_with = "at")]
    pub rebuild: bool,
}

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Check the configuration and report every problem at once
    Check,
    /// Print the configuration with all defaults filled in
    Show,
    /// Print the JSON Schema of the configuration, for editors
    Schema,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    all work landed, or there was nothing to do
  1    ended with failed, blocked or skipped work
  2    usage or configuration error
  3    a prerequisite or boundary is missing; nothing was started
  4    the person quit or rejected, or a gate had no answer
  5    stopped by a budget
  6    another orchestrator holds this repository
  70   internal error, such as a damaged journal
  130  interrupted; can be resumed";

//! The command line, as people write it. Help text is made from the comments
//! here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod memory;

pub use memory::{
    Memory, MemoryArguments, MemoryExport, MemoryForget, MemoryImport, MemoryInit, MemoryList,
    MemoryShow,
};

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
    /// See a whole session in a small repository, without a key or a network
    ///
    /// Makes a small project in a temporary directory and runs a session in it:
    /// plan, development, validation, merge. Git, processes, gates, policy and
    /// gateway are the real ones; only the model is a script.
    Demo(Demo),
    /// Plan, develop, validate, merge and review, until the work has landed
    ///
    /// A planner breaks the task down, you approve the plan, agents work on it side
    /// by side, what they made is checked, and you approve each changeset before
    /// it lands. Ctrl-C stops in good order; `blueflame resume` goes on.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Go on with a session that was stopped or interrupted
    Resume(Resume),
    /// Bring landed changesets to the base branch
    ///
    /// What landed in a session is published at once, unless something of yours is
    /// in the way: a changed file, an unfinished rebase, a base that moved. Then it
    /// waits, and this brings it there. Nothing that you have not committed is
    /// touched: what is still in the way is named, and it goes on waiting. If the
    /// base moved, both are joined and checked with `merge.verify` first.
    #[command(after_help = PUBLISH_EXAMPLES)]
    Publish(Publish),
    /// Take a landed changeset back
    ///
    /// One new commit undoes what the changeset changed, on top of everything that
    /// came after. It is shown, checked with `merge.verify`, landed and published
    /// like any other work. Where later work changed the same places, nothing is
    /// done and the files are named.
    #[command(after_help = REVERT_EXAMPLES)]
    Revert(Revert),
    /// Remove what sessions that ended have left behind
    ///
    /// Workspaces, homes of attempts, checkouts, references that nothing needs any
    /// more, sockets of attempts that are dead, and logs beyond a limit of age or size. Journals
    /// stay, and so does everything of a session that can go on. Work that did not
    /// land is listed and stays, unless you say otherwise; what landed and is not on
    /// the base branch stays in any case.
    #[command(after_help = CLEANUP_EXAMPLES)]
    Cleanup(Cleanup),
    /// Write a first configuration for this repository
    ///
    /// Looks for the base branch, the kind of project with its test and lint
    /// commands, the directories that agents may change, build output, and the agent
    /// programs that are installed; shows what it found, asks, and writes a
    /// `blueflame.yaml` with a comment for each key. A file that is there already is
    /// checked and left alone; nothing else is written.
    Init(Init),
    /// Show where a session stands
    ///
    /// Its stage, its tasks and the agents at work, what it has spent, whether it
    /// waits for an answer, and whether anybody is working on it. It reads the
    /// journal only, so it can be asked from any other terminal while the session
    /// runs.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(Status),
    /// Show what a session has spent, and on what
    ///
    /// Tokens of each kind and dollars, by role, by task, by executor and for each
    /// agent run. Every table adds up to the same total. Agents at work are
    /// included, with what they have reported so far.
    #[command(after_help = COST_EXAMPLES)]
    Cost(Cost),
    /// Show what happened in a session, event by event
    Log(Log),
    /// Fold a session's journal again and prove its state and decisions
    ///
    /// Reads the journal from its first record, checks the chain, applies every
    /// event, and takes every decision again. It works beside a running session
    /// and never changes the journal.
    Replay(Replay),
    /// See what is there and what is missing, with what to type
    ///
    /// Looks at git, the repository, the configuration, the executors, the model
    /// provider, the sandbox, memory and disk. Nothing is changed, and no request
    /// is made.
    /// Exits with 3 if no session could begin.
    ///
    /// With --prove the boundaries are attacked instead of looked at.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Doctor),
    /// Look at what sessions have left to know, and forget it
    ///
    /// Every session leaves notes: what failed and why, what you decided, what went
    /// wrong more than once, what landed and what it took. The next planner is told
    /// of them within a bound, and each worker of those that touch its files. They
    /// follow from the journals, cost no tokens, and stay in this repository's git
    /// directory.
    #[command(after_help = memory::MEMORY_EXAMPLES)]
    Memory(MemoryArguments),
    /// Check or show the configuration, or print its JSON Schema
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// Ask the policy what agents may do, and why
    Policy {
        #[command(subcommand)]
        command: Policy,
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
    /// Save what an agent left that has not finished; started by the orchestrator
    #[command(name = "__snapshot", hide = true)]
    Snapshot {
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
    /// Go into a workspace and become a program there
    #[command(name = "__within", hide = true)]
    Within {
        /// The workspace
        workspace: PathBuf,
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<OsString>,
    },
    /// Try to break out of a sandbox, and say what worked; started by the probe
    #[command(name = "__probe", hide = true)]
    Probe {
        /// What to try, as JSON
        orders: String,
    },
    /// Try to break out, from inside a command that was allowed; started by what
    /// `doctor --prove` lets an agent run
    #[command(name = "__escape", hide = true)]
    Escape {
        /// What to do
        step: crate::prove::escape::Step,
        /// What to try, or where to leave signs of life
        file: PathBuf,
    },
    /// Run one of the project's commands and end all that it started; reports
    /// on standard input, which is a socket
    #[command(name = "__run", hide = true)]
    Runner {
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

/// How the first configuration is written.
#[derive(Debug, Args)]
pub struct Init {
    /// Write without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// Which session, and how to show it.
#[derive(Debug, Args)]
pub struct Status {
    /// The session, or the beginning of its name [default: the newest]
    pub session: Option<String>,
    /// Print one JSON document: what `status.json` has, and more
    #[arg(long)]
    pub json: bool,
    /// Show it again whenever something happens, until the session ends
    ///
    /// In a terminal the page is replaced in place; elsewhere one page follows
    /// the other, and with --json one document a line.
    #[arg(long, short)]
    pub watch: bool,
    /// Show what it came to so far, as at the end of `run`
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub summary: bool,
}

/// How to show it.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Attack the boundaries, and show which layer stops each attack
    ///
    /// Runs the agent programs that the configuration may use, and the embedded
    /// one, in a throw-away repository against a scripted model that tries to
    /// break out, to connect, to overspend, to leave a process behind and to
    /// commit what is forbidden. Needs no key and no network, takes less than a
    /// minute, and leaves nothing behind but its result, which the next sessions
    /// have in their journals. Exits with 3 if anything was not stopped, or was
    /// not proven to be.
    #[arg(long)]
    pub prove: bool,
}

/// Which session, and how to show it.
#[derive(Debug, Args)]
pub struct Cost {
    /// The session, or the beginning of its name [default: the newest]
    pub session: Option<String>,
    /// Print one JSON document; amounts are whole millionths of a dollar
    #[arg(long)]
    pub json: bool,
}

/// How the demo is run.
#[derive(Debug, Args)]
pub struct Demo {
    /// Who plays the agents: `embedded`, or an agent program that is installed
    #[arg(long, value_name = "EXECUTOR")]
    pub executor: Option<String>,
    /// Approve the plan and every changeset
    #[arg(long)]
    pub yes: bool,
    /// Build the project in this directory and leave it there
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// What is to be done, and who answers.
#[derive(Debug, Args)]
pub struct Run {
    /// What is to be done, in your words
    #[arg(long, value_name = "TEXT", conflicts_with = "task_file")]
    pub task: Option<String>,
    /// A file that says what is to be done
    #[arg(long, value_name = "FILE")]
    pub task_file: Option<PathBuf>,
    /// A plan of your own, in place of a planner's
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Answers to all questions, for running unattended
    #[arg(long, value_name = "FILE")]
    pub decisions_file: Option<PathBuf>,
    /// Show the whole plan on paper, with a forecast, and do nothing
    ///
    /// Order, workspaces, commands, cost and time for each number of workers.
    /// Nothing is started and nothing is written. Best with --plan.
    #[arg(long)]
    pub dry_run: bool,
    /// Print every event as JSON, one a line; with --dry-run, one document
    #[arg(long)]
    pub json: bool,
    /// Run all agents with this executor, but for tasks that name their own
    #[arg(long, value_name = "EXECUTOR")]
    pub executor: Option<String>,
    /// Approve the plan and every changeset, and go on while work remains
    #[arg(long)]
    pub yes: bool,
}

/// Which session, and who answers.
#[derive(Debug, Args)]
pub struct Resume {
    /// The session, or the beginning of its name [default: the newest]
    pub session: Option<String>,
    /// Answers to all questions, for running unattended
    #[arg(long, value_name = "FILE")]
    pub decisions_file: Option<PathBuf>,
    /// Print every event as JSON, one a line
    #[arg(long)]
    pub json: bool,
    /// Approve the plan and every changeset, and go on while work remains
    #[arg(long)]
    pub yes: bool,
}

/// Which session.
#[derive(Debug, Args)]
pub struct Publish {
    /// The session, or the beginning of its name [default: the newest with
    /// something that waits]
    pub session: Option<String>,
}

/// Which changeset.
#[derive(Debug, Args)]
pub struct Revert {
    /// The changeset, as `auth.c1`; if several sessions have landed one of that
    /// name, as `ses-20260206-143022/auth.c1`
    pub changeset: String,
    /// Take it back without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// What is removed.
#[derive(Debug, Args)]
pub struct Cleanup {
    /// List what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Remove work that did not land as well; it cannot be had back
    #[arg(long)]
    pub unlanded: bool,
    /// Keep the logs of attempts for this many days after their session
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    pub keep_logs: u32,
    /// Keep at most this many megabytes of them; the oldest sessions' go first
    #[arg(long, value_name = "MB", default_value_t = 1000)]
    pub keep_logs_mb: u64,
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

#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Judge tool calls without running them
    ///
    /// Reads one tool call a line from standard input, as the `PreToolUse` hook of
    /// an agent gets it: a JSON object with `tool_name`, `tool_input` and `cwd`.
    /// Prints one JSON verdict a line: `decision` (allow or deny), the `rule`
    /// that decided, and `details`, which say what to do instead. The workspace
    /// is the repository. A line that cannot be read is denied. The exit code is
    /// 0 whatever the verdicts are.
    #[command(after_help = POLICY_EXAMPLE)]
    Check(PolicyCheck),
}

/// Whose calls are judged.
#[derive(Debug, Args)]
pub struct PolicyCheck {
    /// The role of the agent
    #[arg(long, value_enum, default_value = "worker", value_name = "ROLE")]
    pub role: RoleName,
    /// The task's file locks, separated by commas [default: all allowed paths]
    #[arg(long, value_delimiter = ',', value_name = "PATHS")]
    pub locks: Vec<String>,
    /// Also try the examples that the rules carry; exit code 2 if one fails
    ///
    /// The examples are tried first, and told about on standard error. At a
    /// terminal nothing is read then.
    #[arg(long)]
    pub prove_examples: bool,
}

/// The roles, as people write them.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RoleName {
    Planner,
    Worker,
    Validator,
    Merger,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  $ blueflame status               the newest session
  $ blueflame status --watch       keep an eye on it
  $ blueflame status 20260206      the session of that day
  $ blueflame status --json | jq .waiting_for";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  $ blueflame doctor
  $ blueflame doctor --prove
  $ blueflame doctor --prove --json | jq '.trials[].attacks[] | select(.standing != \"stopped\")'";

const PUBLISH_EXAMPLES: &str = "\
Examples:
  $ git stash                      what was in the way
  $ blueflame publish
  $ git stash pop";

const CLEANUP_EXAMPLES: &str = "\
Examples:
  $ blueflame cleanup --dry-run
  $ blueflame cleanup
  $ blueflame cleanup --unlanded --keep-logs 0";

const REVERT_EXAMPLES: &str = "\
Examples:
  $ blueflame log | grep landed    which changesets there are
  $ blueflame revert auth.c1
  $ blueflame revert --yes ses-20260206-143022/auth.c1";

const COST_EXAMPLES: &str = "\
Examples:
  $ blueflame cost
  $ blueflame cost --json | jq '.by_task[] | {name, cost_micro_usd}'";

const POLICY_EXAMPLE: &str = r#"Example:
  $ echo '{"tool_name":"Bash","tool_input":{"command":"git push"}}' | blueflame policy check
  {"decision":"deny","rule":"commands.blocked","details":"..."}

Rules and how to allow something: docs/policy.md"#;

const RUN_EXAMPLES: &str = "\
Examples:
  blueflame run --task \"Add rate limiting to the API\"
  blueflame run --task-file goal.md --yes
  blueflame run --plan tasks.yaml --decisions-file answers.yaml --json";

const EXIT_CODES: &str = "\
Exit codes:
  0    all work landed, or there was nothing to do
  1    ended with failed, blocked or skipped work
  2    usage or configuration error
  3    a prerequisite or boundary is missing, or only you can put something right
  4    the person quit or rejected, or a gate had no answer
  5    stopped by a budget
  6    another orchestrator holds this repository
  70   internal error, such as a damaged journal
  130  interrupted; can be resumed";

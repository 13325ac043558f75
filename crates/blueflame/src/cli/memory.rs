//! The words of `blueflame memory`.

use std::path::PathBuf;

use blueflame_core::memory::Kind;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MemoryArguments {
    #[command(subcommand)]
    pub command: Option<Memory>,
    #[command(flatten)]
    pub list: MemoryList,
}

#[derive(Debug, Subcommand)]
pub enum Memory {
    /// List the notes, the newest session first
    List(MemoryList),
    /// Show a note in full; without one, what the next planner would be told
    ///
    /// A planner is told at most `beads.context_tokens` tokens: failures that nobody
    /// has put right first, then what you decided, what went wrong more than once,
    /// what sessions came to, what agents took, and what came off. What there is no
    /// room for is counted.
    Show(MemoryShow),
    /// Forget notes, or all that sessions left, for good
    ///
    /// What is forgotten is not worked out again from the journals, and not taken over
    /// from elsewhere. A copy that `bd` has of it is emptied and closed.
    Forget(MemoryForget),
    /// Write the notes as beads, one JSON object a line
    Export(MemoryExport),
    /// Take over notes that were exported elsewhere
    ///
    /// Of two notes on the same thing the newer one stays, and what you wanted
    /// forgotten stays forgotten. Lines that are no notes of Blue Flame's are passed
    /// over and counted.
    Import(MemoryImport),
    /// Agree that `bd` gets a copy, and make a place for it
    Init(MemoryInit),
}

/// Which notes.
#[derive(Debug, Default, Args)]
pub struct MemoryList {
    /// Only notes of this kind
    #[arg(long, value_parser = kinds(), value_name = "KIND")]
    pub kind: Option<Kind>,
    /// Only failures that nobody has put right
    #[arg(long)]
    pub unresolved: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct MemoryShow {
    /// The note, or the beginning of its id
    pub note: Option<String>,
    /// What the planner would be asked to do: what it names counts for more
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "note")]
    pub task: String,
    /// Show what a worker on these files would be told, separated by commas
    #[arg(long, value_name = "PATHS", value_delimiter = ',', conflicts_with_all = ["note", "task"])]
    pub locks: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct MemoryForget {
    /// Notes by id, or sessions by name
    #[arg(required = true, value_name = "NOTE or SESSION")]
    pub what: Vec<String>,
}

#[derive(Debug, Args)]
pub struct MemoryExport {
    /// The file to write [default: standard output]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct MemoryImport {
    /// The file to read
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct MemoryInit {
    /// Let `bd` get a copy, and make its `.beads` directory if there is none
    #[arg(long, required = true)]
    pub beads: bool,
    /// Do it without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// The kinds of notes, by their names.
fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name))
        .try_map(|name| Kind::named(&name).ok_or("there is no such kind"))
}

pub const MEMORY_EXAMPLES: &str = "\
Examples:
  $ blueflame memory                       what is remembered
  $ blueflame memory --unresolved          what still has to be put right
  $ blueflame memory show                  what the next planner would be told
  $ blueflame memory show bf-bf3k
  $ blueflame memory forget ses-20260206-143022
  $ blueflame memory export notes.jsonl

How notes are made, kept and bounded: docs/memory.md";

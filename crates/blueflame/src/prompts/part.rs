//! The kinds of text that a prompt is made of: how each is called, and how much
//! of it an agent is given.

const KIB: usize = 1024;

/// What the person asked for.
pub const GOAL_LIMIT: usize = 64 * KIB;
/// Title and description of a task.
pub const TASK_LIMIT: usize = 32 * KIB;
/// Lists of files and of commands.
pub const LIST_LIMIT: usize = 16 * KIB;
/// The change that a validator judges.
pub const DIFF_LIMIT: usize = 200 * KIB;
/// What one check printed.
pub const CHECK_LIMIT: usize = 8 * KIB;
/// What the policy has to say about a run.
pub const AUDIT_LIMIT: usize = 8 * KIB;
/// What became of one earlier attempt.
pub const HISTORY_LIMIT: usize = 4 * KIB;
/// What one note to the next planner says.
pub const NOTE_LIMIT: usize = 4 * KIB;
/// The plan that was sent back, or the tasks that are still open.
pub const PLAN_LIMIT: usize = 64 * KIB;
/// What earlier sessions left to know.
pub const MEMORY_LIMIT: usize = 64 * KIB;
/// One `CLAUDE.md` or `AGENTS.md`.
pub const CONVENTIONS_LIMIT: usize = 32 * KIB;
/// One file with conflict markers.
pub const CONFLICT_LIMIT: usize = 64 * KIB;

/// A kind of text in a prompt that was written by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Goal,
    Task,
    Files,
    Acceptance,
    Diff,
    Checks,
    Audit,
    History,
    Notes,
    Plan,
    Memory,
    Conventions,
    Conflicts,
}

impl Part {
    pub const ALL: [Part; 13] = [
        Part::Goal,
        Part::Task,
        Part::Files,
        Part::Acceptance,
        Part::Diff,
        Part::Checks,
        Part::Audit,
        Part::History,
        Part::Notes,
        Part::Plan,
        Part::Memory,
        Part::Conventions,
        Part::Conflicts,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Part::Goal => "goal",
            Part::Task => "task",
            Part::Files => "files",
            Part::Acceptance => "acceptance",
            Part::Diff => "diff",
            Part::Checks => "checks",
            Part::Audit => "audit",
            Part::History => "history",
            Part::Notes => "notes",
            Part::Plan => "plan",
            Part::Memory => "memory",
            Part::Conventions => "conventions",
            Part::Conflicts => "conflicts",
        }
    }

    /// How many bytes of one such text are given to an agent.
    pub fn limit(self) -> usize {
        match self {
            Part::Goal => GOAL_LIMIT,
            Part::Task => TASK_LIMIT,
            Part::Files | Part::Acceptance => LIST_LIMIT,
            Part::Diff => DIFF_LIMIT,
            Part::Checks => CHECK_LIMIT,
            Part::Audit => AUDIT_LIMIT,
            Part::History => HISTORY_LIMIT,
            Part::Notes => NOTE_LIMIT,
            Part::Plan => PLAN_LIMIT,
            Part::Memory => MEMORY_LIMIT,
            Part::Conventions => CONVENTIONS_LIMIT,
            Part::Conflicts => CONFLICT_LIMIT,
        }
    }
}

//! Verdicts, and the rules that they name.
//!
//! The names are an interface: they stand in audit lines, and agents and
//! scripts read them. `docs/policy.md` describes each.

use serde::{Deserialize, Serialize};

/// What is to happen with a tool call, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    /// The name of the [`Rule`] that decided.
    pub rule: String,
    /// For a denial: what was wrong and what to do instead. Empty otherwise.
    pub details: String,
    /// The path or command that was judged.
    pub target: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Allow,
    Deny,
}

impl Verdict {
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }

    /// A denial by a rule: what was wrong, and what to do instead.
    pub fn denied(rule: Rule, target: impl Into<String>, details: impl Into<String>) -> Self {
        Verdict {
            decision: Decision::Deny,
            rule: rule.name().to_owned(),
            details: details.into(),
            target: target.into(),
        }
    }

    pub(super) fn of(judged: Judged, target: impl Into<String>) -> Self {
        match judged {
            Ok(rule) => Verdict {
                decision: Decision::Allow,
                rule: rule.name().to_owned(),
                details: String::new(),
                target: target.into(),
            },
            Err(denial) => Verdict::denied(denial.rule, target, denial.details),
        }
    }
}

/// The rule that allows, or a denial.
pub(super) type Judged = Result<Rule, Denial>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    pub rule: Rule,
    pub details: String,
}

pub(super) fn deny<T>(rule: Rule, details: impl Into<String>) -> Result<T, Denial> {
    Err(Denial { rule, details: details.into() })
}

macro_rules! rules {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// The rules that verdicts name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $meaning] $variant,)*
        }

        impl Rule {
            pub const ALL: &[Rule] = &[$(Rule::$variant,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Rule::$variant => $name,)*
                }
            }

            /// What the rule says, in one sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Rule::$variant => $meaning,)*
                }
            }
        }
    };
}

rules! {
    ToolHarmless "tools.harmless" "A tool that touches nothing may be used.",
    ToolBlocked "tools.blocked" "A tool in `permissions.blocked_tools` is never used.",
    ToolNotAllowed "tools.not-allowed" "A tool has to be in `permissions.allowed_tools`.",
    ToolUnknown "tools.unknown" "A tool whose input cannot be judged is never used, even if it is allowed.",
    ToolRole "tools.role" "Planners and validators change nothing; only planners ask questions.",
    ToolInput "tools.input" "A tool's input has to have the form that the tool is known to have.",
    ToolBackground "tools.background" "Nothing is left running behind a tool call.",
    ToolSkill "tools.skill" "An agent uses the skills that it was given, and no others.",
    PathRead "paths.read" "Files in the workspace may be read.",
    PathWrite "paths.write" "Files that are allowed, not blocked and within the task's locks may be written.",
    PathOutside "paths.outside" "Nothing outside of the workspace is read or written.",
    PathBlocked "paths.blocked" "What `permissions.blocked_paths` matches is not written.",
    PathSecret "paths.secret" "Blocked files that look like secrets are not read either.",
    PathProtected "paths.protected" "Files that git, agents, Blue Flame or the tools of people go by are written only as far as a task names them; those of git, Claude and Blue Flame never.",
    PathNotAllowed "paths.not-allowed" "A file that is written has to match `permissions.allowed_paths`.",
    PathScope "paths.scope" "A task writes only what its `file_locks` cover.",
    PathStrange "paths.strange" "A path that reads differently from what it is, or cannot be resolved, is not used.",
    PathLinks "paths.links" "A file that has several names, or is no plain file, is not written.",
    CommandAllowed "commands.allowed" "Every command in the line may be run.",
    CommandSyntax "commands.syntax" "A command line is run only if all of it is understood.",
    CommandTooLong "commands.too-long" "A command line is at most 64 KiB long.",
    CommandNotAllowed "commands.not-allowed" "A command has to be in `permissions.bash_rules.allowed_commands`, or to be a known filter.",
    CommandBlocked "commands.blocked" "What `permissions.bash_rules.blocked_patterns` finds is not run.",
    CommandFlag "commands.flag" "Options that run other programs or leave the workspace are not used.",
    CommandArgument "commands.argument" "Arguments are written out, so that they can be judged.",
    CommandEnvironment "commands.environment" "Variables that change what commands do are not set.",
    CommandRole "commands.role" "Planners only look, and validators run only the diagnostic commands.",
    CommitFormat "commit.format" "Commit messages fit `validation.commit_format`.",
    CommitMessage "commit.message" "Commit messages are given on the command line, and are plain text.",
    CommitAuthor "commit.author" "Commits are made in the name that the agent was given.",
    CommitHeaders "commit.headers" "Commits hold nothing that git does not show: no signatures, encodings or other headers.",
    NameStyle "names.style" "New files are named in the style of `validation.file_naming`.",
    ChangeTests "changes.tests" "Changed sources come with changed tests.",
    NameConfusable "names.confusable" "New files have names that nobody and no file system takes for another one.",
    ChangeKind "changes.kind" "Changes consist of plain files: no symbolic links, no submodules.",
    ChangeBinary "changes.binary" "Changes hold no binary files, apart from pictures, sounds and fonts.",
    ChangeSize "changes.size" "A change, and each file in it, is small enough to be looked over.",
    ChangeSecret "changes.secret" "No commit holds a key or a token.",
    ChangeConflict "changes.conflict" "No marks of an unfinished merge are left.",
    ChangeHistory "changes.history" "Work is built on the commit that the task started from.",
}

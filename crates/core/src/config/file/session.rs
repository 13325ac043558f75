//! The repository, and how a session runs in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts;
use crate::memory::learned::SetByHand;
use crate::rules::PerRole;
use crate::yaml::{DurationText, Spanned};

/// The repository that is worked on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Project {
    /// Name of the project, shown to people and agents. Empty means the name
    /// of the repository's directory.
    pub name: Spanned<String>,
    /// Path of the git repository. A relative path starts at the directory of
    /// this file.
    pub repo: Spanned<String>,
    /// The branch that work starts from and lands on.
    pub base_branch: Spanned<String>,
    /// Directory for the working copies of agents, inside the repository.
    pub worktree_dir: Spanned<String>,
    /// Where the task list is shown for people to read and edit, inside the
    /// repository.
    pub tasks_file: Spanned<String>,
}

impl Default for Project {
    fn default() -> Self {
        Project {
            name: "".into(),
            repo: ".".into(),
            base_branch: "main".into(),
            worktree_dir: ".trees".into(),
            tasks_file: ".blueflame/tasks.yaml".into(),
        }
    }
}

/// How the plan is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Planning {
    /// Whether the planner may ask you questions before it answers. Use false
    /// for automation.
    pub interactive: Spanned<bool>,
}

impl Default for Planning {
    fn default() -> Self {
        Planning { interactive: true.into() }
    }
}

/// How finished work comes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Merge {
    /// Commands that must succeed on the merged tree before it lands.
    pub verify: Vec<Spanned<String>>,
    /// Where approved changesets go.
    pub target: Spanned<MergeTarget>,
}

/// Where approved changesets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MergeTarget {
    /// On to the base branch.
    #[default]
    Base,
    /// They stay on a branch of their own; the base branch is not touched.
    Branch,
}

/// How the steps of a session follow each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Waves {
    /// Whether validation waits until all development is done.
    pub mode: Spanned<WavePace>,
}

/// Whether validation waits until all development is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WavePace {
    /// All development, then all validation, then the merge.
    #[default]
    Strict,
    /// Each task is validated as soon as it is done.
    Pipelined,
}

/// Well-known ways of working that agents are taught, if you have them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Superpowers {
    /// Whether agents get the skills below.
    pub enabled: Spanned<bool>,
    /// Names of skills, each of which goes to the role that it is for. Names
    /// that they had before are understood.
    pub skills: Vec<Spanned<String>>,
}

impl Default for Superpowers {
    fn default() -> Self {
        Superpowers {
            enabled: true.into(),
            skills: texts(&[
                "test-driven-development",
                "systematic-debugging",
                "requesting-code-review",
                "brainstorm",
                "write-plan",
            ]),
        }
    }
}

/// Skills of your own, by the role that gets them, and where they are found
/// besides the usual places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Skills {
    /// Names of skills for the planner.
    pub planner: Vec<Spanned<String>>,
    /// Names of skills for workers.
    pub worker: Vec<Spanned<String>>,
    /// Names of skills for validators.
    pub validator: Vec<Spanned<String>>,
    /// Names of skills for the merger.
    pub merger: Vec<Spanned<String>>,
    /// Directories with skills in them, absolute or starting with `~/`. They
    /// come before the usual places.
    pub folders: Vec<Spanned<String>>,
    /// Whether skills that the repository brings along may be named as well.
    /// Whoever can change them tells your agents what to do.
    pub trust_repository: Spanned<bool>,
}

impl Default for Skills {
    fn default() -> Self {
        Skills {
            planner: Vec::new(),
            worker: texts(&["verification-before-completion"]),
            validator: Vec::new(),
            merger: Vec::new(),
            folders: Vec::new(),
            trust_repository: false.into(),
        }
    }
}

/// What is remembered from one session to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Beads {
    /// Whether sessions remember earlier ones.
    pub enabled: Spanned<bool>,
    /// Whether finished tasks are put into memory after each cycle.
    pub archive_after_wave: Spanned<bool>,
    /// Whether the reasons of failures are remembered too.
    pub include_failure_notes: Spanned<bool>,
    /// The most tokens that a planner is told of earlier sessions; a worker gets
    /// a quarter of it. 0 tells nobody anything.
    #[schemars(range(max = 16_000))]
    pub context_tokens: Spanned<u32>,
    /// Whether `bd` gets a copy, where it is installed. Each person is asked for
    /// consent first, by `blueflame memory init --beads`: nothing in a repository
    /// can give it, because `bd` runs hooks that it finds there.
    pub mirror: Spanned<bool>,
    /// Whether old memories are shortened over time.
    pub memory_decay: Spanned<bool>,
    pub decay_policy: DecayPolicy,
}

impl Default for Beads {
    fn default() -> Self {
        Beads {
            enabled: true.into(),
            archive_after_wave: true.into(),
            include_failure_notes: true.into(),
            context_tokens: 8_000.into(),
            mirror: false.into(),
            memory_decay: true.into(),
            decay_policy: DecayPolicy::default(),
        }
    }
}

/// When memories are shortened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecayPolicy {
    /// Finished tasks are summarised after this many sessions.
    #[schemars(range(min = 1))]
    pub summarize_after_sessions: Spanned<u32>,
    /// Failures are kept in full for this many sessions.
    #[schemars(range(min = 1))]
    pub preserve_failures_sessions: Spanned<u32>,
}

impl Default for DecayPolicy {
    fn default() -> Self {
        DecayPolicy { summarize_after_sessions: 3.into(), preserve_failures_sessions: 5.into() }
    }
}

/// Your own commands, run at certain moments. An empty text runs nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hooks {
    /// Run after you approved the plan.
    pub post_plan: Spanned<String>,
    /// Run before validation starts.
    pub pre_validation: Spanned<String>,
    /// Run after a changeset landed.
    pub post_merge: Spanned<String>,
    /// Run when a task failed for good.
    pub on_failure: Spanned<String>,
    /// How long each of them may take before it is stopped.
    pub timeout: Spanned<DurationText>,
}

impl Default for Hooks {
    fn default() -> Self {
        Hooks {
            post_plan: "".into(),
            pre_validation: "".into(),
            post_merge: "".into(),
            on_failure: "".into(),
            timeout: "60s".into(),
        }
    }
}

/// What one agent run usually takes and costs. Forecasts are made from it, and
/// nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Forecast {
    /// Time of one planner.
    pub planner_time: Spanned<DurationText>,
    /// Dollars of one planner.
    #[schemars(range(min = 0.0))]
    pub planner_usd: Spanned<f64>,
    /// Time of one worker, for a task whose plan says no `estimate_minutes`.
    pub worker_time: Spanned<DurationText>,
    /// Dollars of one worker that takes that long.
    #[schemars(range(min = 0.0))]
    pub worker_usd: Spanned<f64>,
    /// Time of one validator.
    pub validator_time: Spanned<DurationText>,
    /// Dollars of one validator.
    #[schemars(range(min = 0.0))]
    pub validator_usd: Spanned<f64>,
    /// Time of the acceptance commands of one task, and of `merge.verify` on one
    /// changeset.
    pub check_time: Spanned<DurationText>,
}

impl Forecast {
    /// What the person said about it, which nothing that is learned replaces.
    pub fn by_hand(&self) -> PerRole<SetByHand> {
        let set = |time: &Spanned<DurationText>, usd: &Spanned<f64>| SetByHand {
            time: time.span.is_some(),
            cost: usd.span.is_some(),
        };
        PerRole {
            planner: set(&self.planner_time, &self.planner_usd),
            worker: set(&self.worker_time, &self.worker_usd),
            validator: set(&self.validator_time, &self.validator_usd),
            merger: SetByHand::default(),
        }
    }
}

impl Default for Forecast {
    fn default() -> Self {
        Forecast {
            planner_time: "2m".into(),
            planner_usd: 0.30.into(),
            worker_time: "4m".into(),
            worker_usd: 0.45.into(),
            validator_time: "1m".into(),
            validator_usd: 0.02.into(),
            check_time: "1m".into(),
        }
    }
}

//! Agent Skills: folders with a `SKILL.md` that teach an agent a way of working.
//!
//! What a skill says of itself, which roles get it, and why some are given to
//! nobody. Where skills are found and how programs are handed them is the shell's
//! affair.

mod choice;
mod conduct;
mod file;
mod names;

use serde::{Deserialize, Serialize};

pub use choice::{Found, Selection, Verdict, Why, choose};
pub use conduct::Conduct;
pub use file::{BadSkill, SkillFile};
pub use names::{newer_name, plain, usual_names, usual_roles};

use crate::ids::SkillName;

/// A skill that an agent was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handed {
    pub name: SkillName,
    /// Identifies all that was in its folder.
    pub digest: String,
}

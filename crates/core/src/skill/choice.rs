//! Which of the skills that were found are given to whom.

use std::fmt;

use super::Conduct;
use super::names::ASKING;
use crate::config;
use crate::ids::{Role, SkillName};

/// A skill that is there and can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub name: SkillName,
    /// Where it was found, in words.
    pub place: String,
    pub conduct: Option<Conduct>,
}

/// What becomes of a skill that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Never empty.
    GivenTo(Vec<Role>),
    LeftOut(Why),
}

/// Why nobody gets a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    NotNamed,
    Conduct(Conduct),
    /// Another of the same name comes first.
    Second {
        place: String,
    },
    NobodyToAsk,
    ToolBlocked,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotNamed => f.write_str("the configuration gives it to no role"),
            Why::Conduct(conduct) => conduct.fmt(f),
            Why::Second { place } => write!(f, "the one in {place} comes first"),
            Why::NobodyToAsk => f.write_str("there is nobody to ask: planning is not interactive"),
            Why::ToolBlocked => f.write_str("`permissions.blocked_tools` has `Skill`"),
        }
    }
}

/// What becomes of all skills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// One for each that was found, in the same order.
    pub verdicts: Vec<Verdict>,
    /// Named by the person, and not there.
    pub missing: Vec<SkillName>,
}

/// Chooses among the skills that were found, those that come first first.
pub fn choose(wishes: &config::Skills, found: &[Found], interactive: bool) -> Selection {
    let verdict = |(at, skill): (usize, &Found)| {
        let wanted = |role: &Role| wishes.wanted.of(*role).contains(&skill.name);
        let roles: Vec<Role> = Role::ALL.into_iter().filter(wanted).collect();
        let first = found[..at].iter().find(|earlier| earlier.name == skill.name);
        let why = if let Some(conduct) = skill.conduct {
            Why::Conduct(conduct)
        } else if roles.is_empty() {
            Why::NotNamed
        } else if let Some(first) = first {
            Why::Second { place: first.place.clone() }
        } else if wishes.tool_blocked {
            Why::ToolBlocked
        } else if skill.name.as_str() == ASKING && !interactive {
            Why::NobodyToAsk
        } else {
            return Verdict::GivenTo(roles);
        };
        Verdict::LeftOut(why)
    };
    let there = |name: &&SkillName| found.iter().any(|skill| skill.name == **name);
    Selection {
        verdicts: found.iter().enumerate().map(verdict).collect(),
        missing: wishes.named.iter().filter(|name| !there(name)).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(yaml: &str) -> config::Skills {
        config::read(format!("schema_version: 2\n{yaml}").as_bytes()).config.unwrap().skills
    }

    fn found(names: &[&str]) -> Vec<Found> {
        let one = |name: &&str| {
            let (name, place) = name.split_once('@').unwrap_or((name, "home"));
            let conduct = Conduct::of_name(name);
            Found { name: SkillName::new(name).unwrap(), place: place.to_owned(), conduct }
        };
        names.iter().map(one).collect()
    }

    fn chosen(yaml: &str, names: &[&str], interactive: bool) -> Vec<String> {
        let found = found(names);
        let selection = choose(&wishes(yaml), &found, interactive);
        let words = |(skill, verdict): (&Found, &Verdict)| match verdict {
            Verdict::GivenTo(roles) => format!("{}: {roles:?}", skill.name),
            Verdict::LeftOut(why) => format!("{}: no, {why}", skill.name),
        };
        let missing = selection.missing.iter().map(|name| format!("{name} is missing"));
        found.iter().zip(&selection.verdicts).map(words).chain(missing).collect()
    }

    #[test]
    fn well_known_skills_go_to_their_roles() {
        let all = ["test-driven-development", "writing-plans", "requesting-code-review", "mine"];
        assert_eq!(
            chosen("", &all, true),
            [
                "test-driven-development: [Worker]",
                "writing-plans: [Planner]",
                "requesting-code-review: [Validator]",
                "mine: no, the configuration gives it to no role",
            ]
        );
        let off = "superpowers: {enabled: false}\nskills: {worker: [mine], merger: [mine]}\n";
        assert_eq!(chosen(off, &all[2..], true)[1], "mine: [Worker, Merger]");
        assert!(chosen(off, &all[..1], true)[0].contains("no, "));
        let blocked = "permissions: {blocked_tools: [Skill]}\n";
        assert!(chosen(blocked, &all[..1], true)[0].contains("`Skill`"));
    }

    #[test]
    fn a_skill_for_asking_needs_someone_to_ask() {
        assert_eq!(chosen("", &["brainstorming"], true), ["brainstorming: [Planner]"]);
        assert!(chosen("", &["brainstorming"], false)[0].contains("nobody to ask"));
    }

    const ORCHESTRATING: [&str; 5] = [
        "subagent-driven-development",
        "dispatching-parallel-agents",
        "using-git-worktrees",
        "finishing-a-development-branch",
        "executing-plans",
    ];

    /// The whole of Superpowers, and somebody who never wrote a line about it.
    #[test]
    fn without_any_configuration_a_worker_gets_three_skills_and_none_that_orchestrates() {
        let harmless = [
            "brainstorming",
            "receiving-code-review",
            "requesting-code-review",
            "systematic-debugging",
            "test-driven-development",
            "using-superpowers",
            "verification-before-completion",
            "writing-plans",
            "writing-skills",
        ];
        let all = [&harmless[..], &ORCHESTRATING].concat();
        for yaml in ["", "skills: {}\n", "superpowers: {enabled: true}\n"] {
            let said = chosen(yaml, &all, true);
            let of_workers: Vec<&String> =
                said.iter().filter(|line| line.contains("Worker")).collect();
            assert_eq!(
                of_workers,
                [
                    "systematic-debugging: [Worker]",
                    "test-driven-development: [Worker]",
                    "verification-before-completion: [Worker]",
                ]
            );
            let refused = said.iter().filter(|line| line.contains("which only Blue Flame does"));
            assert_eq!(refused.count(), ORCHESTRATING.len(), "{said:?}");
        }
    }

    #[test]
    fn no_configuration_gives_anyone_a_skill_that_acts_as_the_orchestrator() {
        for name in ORCHESTRATING {
            let yaml = format!(
                "superpowers: {{skills: [{name}]}}\nskills: {{planner: [{name}], worker: \
                 [{name}], validator: [{name}], merger: [{name}]}}\n"
            );
            let said = chosen(&yaml, &[name], true);
            assert!(said[0].contains("which only Blue Flame does"), "{said:?}");
        }
    }

    #[test]
    fn the_first_of_a_name_counts_and_what_is_not_there_is_missed_only_if_it_was_written() {
        let yaml = "superpowers: {skills: [brainstorm]}\nskills: {worker: [mine, other]}\n";
        assert_eq!(
            chosen(yaml, &["mine@a", "mine@b"], true),
            [
                "mine: [Worker]",
                "mine: no, the one in a comes first",
                "brainstorming is missing",
                "other is missing",
            ]
        );
        assert!(chosen("", &[], true).is_empty());
    }
}

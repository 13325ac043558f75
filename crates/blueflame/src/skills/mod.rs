//! Agent Skills: found where people have them, read with care, and handed to
//! agents as copies that have nothing else in them.
//!
//! Who gets which is decided in the core. What is read here is kept in memory for
//! the whole session, so that what an agent is given is what was looked at.

mod copy;
mod folder;
mod places;
mod superpowers;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use blueflame_core::config::{self, Config};
use blueflame_core::ids::{Role, SkillName};
use blueflame_core::skill::{self, Found, Handed, Verdict, Why};
use blueflame_core::yaml::closest;
use serde::{Deserialize, Serialize};

use crate::narrate::plain;

pub use copy::{FOLDER, SET, write};
use folder::Candidate;
pub use folder::Skill;
pub use places::Person;
use places::Place;

/// A skill as an agent is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offered {
    pub name: SkillName,
    pub description: String,
    pub digest: String,
}

impl From<&Skill> for Offered {
    fn from(skill: &Skill) -> Self {
        let Skill { name, description, digest, .. } = skill;
        let (name, description, digest) = (name.clone(), description.clone(), digest.clone());
        Offered { name, description, digest }
    }
}

impl From<&Offered> for Handed {
    fn from(offered: &Offered) -> Self {
        Handed { name: offered.name.clone(), digest: offered.digest.clone() }
    }
}

/// All skills that were found, and what becomes of each.
#[derive(Clone, Debug, Default)]
pub struct Skills {
    pub given: Vec<Given>,
    pub left_out: Vec<LeftOut>,
    /// Named by the person, and not there.
    pub missing: Vec<SkillName>,
}

#[derive(Clone, Debug)]
pub struct Given {
    pub skill: Arc<Skill>,
    /// Where it was found, in words.
    pub place: String,
    pub roles: Vec<Role>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    pub place: String,
    pub why: String,
    /// Whether the configuration could have it given to somebody.
    pub usable: bool,
}

/// Looks for skills wherever the person and the configuration have them.
pub fn look(config: &Config, repository: &Path, person: &Person, interactive: bool) -> Skills {
    let places = places::all(config, repository, person);
    let mut skills = Skills::default();
    let mut candidates: Vec<(Place, Candidate)> = Vec::new();
    for place in places {
        for found in folder::candidates(&place) {
            match found {
                Ok(candidate) => candidates.push((place.clone(), candidate)),
                Err((name, why)) => {
                    let place = place.name.clone();
                    skills.left_out.push(LeftOut { name, place, why, usable: false });
                }
            }
        }
    }
    // One that cannot be copied makes way for another of its name.
    loop {
        let found: Vec<Found> = candidates
            .iter()
            .map(|(place, it)| Found {
                name: it.name.clone(),
                place: place.name.clone(),
                conduct: it.conduct,
            })
            .collect();
        let selection = skill::choose(&config.skills, &found, interactive);
        let chosen = candidates.iter().zip(&selection.verdicts).map(|((place, it), verdict)| {
            matches!(verdict, Verdict::GivenTo(_)).then(|| Skill::read(place, it)).transpose()
        });
        let mut read: Vec<Result<Option<Skill>, String>> = chosen.collect();
        if let Some(at) = read.iter().position(Result::is_err) {
            let (place, candidate) = candidates.remove(at);
            let why = read.swap_remove(at).err().unwrap_or_default();
            let name = candidate.name.to_string();
            skills.left_out.push(LeftOut { name, place: place.name, why, usable: false });
            continue;
        }
        for ((found, verdict), skill) in found.into_iter().zip(selection.verdicts).zip(read) {
            let Found { name, place, .. } = found;
            match (verdict, skill) {
                (Verdict::GivenTo(roles), Ok(Some(skill))) => {
                    skills.given.push(Given { skill: Arc::new(skill), place, roles });
                }
                (Verdict::LeftOut(why), _) => {
                    let usable = !matches!(why, Why::Conduct(_));
                    let (name, why) = (name.to_string(), why.to_string());
                    skills.left_out.push(LeftOut { name, place, why, usable });
                }
                (Verdict::GivenTo(_), _) => {}
            }
        }
        skills.missing = selection.missing;
        return skills;
    }
}

impl Skills {
    pub fn of(&self, role: Role) -> Vec<Arc<Skill>> {
        let given = self.given.iter().filter(|given| given.roles.contains(&role));
        given.map(|given| Arc::clone(&given.skill)).collect()
    }

    /// Each skill with its place: who gets it, or why nobody does.
    pub fn page(&self) -> String {
        if self.given.is_empty() && self.left_out.is_empty() {
            return "none: agents work without".to_owned();
        }
        let given = self.given.iter().map(|Given { skill, place, roles }| {
            let roles: Vec<&str> = roles.iter().map(|role| role.name()).collect();
            format!("{} for {}, from {place}", skill.name, roles.join(", "))
        });
        let left_out = self.left_out.iter().map(|LeftOut { name, place, why, .. }| {
            format!("left out: {name} from {place}: {why}")
        });
        // Folders may have any name.
        let lines = given.chain(left_out).map(|line| plain(&line).into_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What a person should hear of the names in the configuration: those that are
    /// not there, with the names that are, and those that are others now.
    pub fn complaints(&self, wishes: &config::Skills) -> Vec<String> {
        let given = self.given.iter().map(|it| it.skill.name.as_str());
        let left_out = self.left_out.iter().filter(|it| it.usable).map(|it| it.name.as_str());
        let all: BTreeSet<&str> = given.chain(left_out).collect();
        let renamed = wishes.renamed.iter().map(|(old, new)| {
            format!("the skill `{old}` is called `{new}` now; write that in the configuration")
        });
        let missing = self.missing.iter().map(|name| self.missed(name.as_str(), &all));
        renamed.chain(missing).collect()
    }

    fn missed(&self, name: &str, all: &BTreeSet<&str>) -> String {
        if let Some(LeftOut { place, why, .. }) = self.left_out.iter().find(|it| it.name == name) {
            let why = format!("the skill `{name}` in {place} cannot be used: {why}");
            return plain(&why).into_owned();
        }
        let hint = match closest(name, all.iter().copied()) {
            Some(meant) => format!(" Did you mean `{meant}`?"),
            None => String::new(),
        };
        let names: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
        let there = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
        format!("the skill `{name}` is not there.{hint} There are: {there}")
    }
}

//! Which skills agents should get.

use std::collections::BTreeSet;

use super::super::Skills;
use super::super::file::{self, ConfigFile};
use super::values::Check;
use crate::ids::{Role, SkillName};
use crate::rules::PerRole;
use crate::skill::{self, Conduct};
use crate::yaml::Spanned;

pub(super) fn skills(check: Check<'_>, file: &ConfigFile) -> Skills {
    let mut wanted = PerRole::<Vec<SkillName>>::default();
    let mut want = |name: SkillName, role: Role| {
        let wanted = wanted.of_mut(role);
        if !wanted.contains(&name) {
            wanted.push(name);
        }
    };
    let well_known = &file.superpowers;
    for (index, written) in well_known.skills.iter().enumerate() {
        let path = format!("superpowers.skills[{index}]");
        let Some(name) = name(check, &path, written) else { continue };
        let roles = skill::usual_roles(name.as_str());
        if roles.is_empty() {
            let hint = match check.problems.closest(written, skill::usual_names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "name it under `skills.worker`, or the role that should get it".to_owned(),
            };
            let message = format!("is for no role that is known, got `{name}`");
            check.warning(&path, written, message, &hint);
        }
        for role in roles.iter().filter(|_| well_known.enabled.value) {
            want(name.clone(), *role);
        }
    }
    for (role, list) in by_role(&file.skills) {
        for (index, written) in list.iter().enumerate() {
            if let Some(name) = name(check, &format!("skills.{role}[{index}]"), written)
                && (well_known.enabled.value || !is_usual(&file.skills, role))
            {
                want(name, role);
            }
        }
    }
    let named = written(file).filter_map(|it| known(it).filter(|name| conduct(name).is_none()));
    let newer = |it: &Spanned<String>| Some((it.value.clone(), skill::newer_name(plain(it))?));
    Skills {
        wanted,
        // Once, however many roles it is for.
        named: named.collect::<BTreeSet<_>>().into_iter().collect(),
        renamed: written(file).filter_map(newer).collect(),
        folders: folders(check, &file.skills.folders),
        trust_repository: file.skills.trust_repository.value,
        tool_blocked: file.permissions.blocked_tools.iter().any(|tool| tool.value == "Skill"),
    }
}

fn by_role(skills: &file::Skills) -> [(Role, &[Spanned<String>]); 4] {
    Role::ALL.map(|role| (role, of_role(skills, role)))
}

fn of_role(skills: &file::Skills, role: Role) -> &[Spanned<String>] {
    match role {
        Role::Planner => &skills.planner,
        Role::Worker => &skills.worker,
        Role::Validator => &skills.validator,
        Role::Merger => &skills.merger,
    }
}

/// Whether the list says what it would say by itself.
fn is_usual(skills: &file::Skills, role: Role) -> bool {
    of_role(skills, role) == of_role(&file::Skills::default(), role)
}

/// What the person wants in particular: all lists that are not the usual ones.
fn written(file: &ConfigFile) -> impl Iterator<Item = &Spanned<String>> {
    let well_known = Some(&file.superpowers)
        .filter(|it| it.enabled.value && it.skills != file::Superpowers::default().skills);
    let own = by_role(&file.skills).into_iter().filter(|(role, _)| !is_usual(&file.skills, *role));
    well_known.map_or(&[][..], |it| &it.skills).iter().chain(own.flat_map(|(_, list)| list))
}

fn plain(written: &Spanned<String>) -> &str {
    skill::plain(written.trim())
}

/// The name that is meant, if it is one.
fn known(written: &Spanned<String>) -> Option<SkillName> {
    let plain = plain(written);
    SkillName::new(skill::newer_name(plain).unwrap_or(plain)).ok()
}

fn conduct(name: &SkillName) -> Option<Conduct> {
    Conduct::of_name(name.as_str())
}

/// The name of a skill that agents can be given.
fn name(check: Check<'_>, path: &str, written: &Spanned<String>) -> Option<SkillName> {
    let Some(name) = known(written) else {
        let message = format!("is no name of a skill, got `{}`", written.value);
        check.error(path, written, message, "use a-z, 0-9 and single `-` between them");
        return None;
    };
    if let Some(conduct) = conduct(&name) {
        let message = format!("is never given to agents: {conduct}, got `{name}`");
        check.warning(path, written, message, "remove the line");
        return None;
    }
    Some(name)
}

fn folders(check: Check<'_>, list: &[Spanned<String>]) -> Vec<String> {
    for (index, folder) in list.iter().enumerate() {
        let path = format!("skills.folders[{index}]");
        check.no_strange_characters(&path, folder);
        if !folder.starts_with('/') && !folder.starts_with("~/") {
            let message = format!("must be absolute or start with `~/`, got `{}`", folder.value);
            let hint = "for skills of the repository there is `skills.trust_repository`";
            check.error(&path, folder, message, hint);
        }
    }
    list.iter().map(|folder| folder.value.clone()).collect()
}

//! Which skills agents should get.

use super::super::Skills;
use super::super::file::ConfigFile;
use super::values::Check;
use crate::ids::{Role, SkillName};
use crate::rules::PerRole;
use crate::skill::{self, Conduct};
use crate::yaml::Spanned;

pub(super) fn skills(check: Check<'_>, file: &ConfigFile) -> Skills {
    let mut skills = Skills {
        wanted: PerRole::default(),
        named: Vec::new(),
        renamed: renamed(file),
        folders: folders(check, &file.skills.folders),
        trust_repository: file.skills.trust_repository.value,
        tool_blocked: file.permissions.blocked_tools.iter().any(|tool| tool.value == "Skill"),
    };
    let mut want = |name: SkillName, roles: &[Role], written: &Spanned<String>| {
        for role in roles {
            let wanted = skills.wanted.of_mut(*role);
            if !wanted.contains(&name) {
                wanted.push(name.clone());
            }
        }
        if written.span.is_some() && !skills.named.contains(&name) {
            skills.named.push(name);
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
        if well_known.enabled.value {
            want(name, roles, written);
        }
    }
    for role in Role::ALL {
        let own = &file.skills;
        let list = match role {
            Role::Planner => &own.planner,
            Role::Worker => &own.worker,
            Role::Validator => &own.validator,
            Role::Merger => &own.merger,
        };
        // What nobody wrote is there for those who want the well-known ones.
        let meant = |it: &Spanned<String>| it.span.is_some() || well_known.enabled.value;
        for (index, written) in list.iter().enumerate().filter(|(_, written)| meant(written)) {
            if let Some(name) = name(check, &format!("skills.{role}[{index}]"), written) {
                want(name, &[role], written);
            }
        }
    }
    skills
}

/// The name of a skill that agents can be given.
fn name(check: Check<'_>, path: &str, written: &Spanned<String>) -> Option<SkillName> {
    let plain = skill::plain(written.trim());
    let Ok(name) = SkillName::new(skill::newer_name(plain).unwrap_or(plain)) else {
        let message = format!("is no name of a skill, got `{}`", written.value);
        check.error(path, written, message, "use a-z, 0-9 and single `-` between them");
        return None;
    };
    if let Some(conduct) = Conduct::of_name(name.as_str()) {
        let message = format!("is never given to agents: {conduct}, got `{name}`");
        check.warning(path, written, message, "remove the line");
        return None;
    }
    Some(name)
}

/// Names that the person wrote and that are others now, each with the new one.
fn renamed(file: &ConfigFile) -> Vec<(String, &'static str)> {
    let own = &file.skills;
    let lists = [&file.superpowers.skills, &own.planner, &own.worker, &own.validator, &own.merger];
    let written = lists.into_iter().flatten().filter(|written| written.span.is_some());
    written
        .filter_map(|it| Some((it.value.clone(), skill::newer_name(skill::plain(it.trim()))?)))
        .collect()
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

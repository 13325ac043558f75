//! Names of sessions, tasks, agents, groups and changesets.
//!
//! Each one is checked once, where it enters, because it goes on into branch
//! names, directory names and commit trailers where a surprise would hurt.

use std::fmt;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A name that was refused, with what a good one looks like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}: {rule}")]
pub struct BadName {
    pub what: &'static str,
    pub text: String,
    pub rule: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Result<Self, BadName> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) {
                    Ok(Self(text))
                } else {
                    Err(BadName { what: $what, text, rule: $rule })
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

name!(
    /// One run of the whole program on one repository: `ses-YYYYMMDD-HHMMSS`.
    SessionId,
    "session id",
    "it looks like ses-20260206-143022",
    |text| {
        let Some(rest) = text.strip_prefix("ses-") else { return false };
        let bytes = rest.as_bytes();
        bytes.len() == 15
            && bytes.iter().enumerate().all(|(at, byte)| {
                if at == 8 { *byte == b'-' } else { byte.is_ascii_digit() }
            })
    }
);

name!(
    /// A task of the plan. It becomes part of a branch and a directory name.
    TaskId,
    "task id",
    "use letters, digits, `-` and `_`, starting with a letter or digit, at most 64",
    |text| is_slug(text, 64)
);

name!(
    /// One agent run: `<role>-<8 hex>`.
    AgentId,
    "agent id",
    "it looks like worker-1a2b3c4d",
    |text| {
        text.split_once('-').is_some_and(|(role, hex)| {
            Role::ALL.iter().any(|known| known.name() == role)
                && hex.len() == 8
                && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        })
    }
);

name!(
    /// A cohesion group: the tasks that land together as one changeset.
    GroupName,
    "cohesion group",
    "use letters, digits, `-` and `_`, starting with a letter or digit, at most 64",
    |text| is_slug(text, 64)
);

name!(
    /// What runs an agent: `claude`, `codex`, `opencode`, `embedded` or a name
    /// defined under `executors.custom`.
    ExecutorName,
    "executor name",
    "use letters, digits, `-` and `_`, starting with a letter or digit, at most 64",
    |text| is_slug(text, 64)
);

name!(
    /// An account at a provider, with a key and limits of its own: `main` for the
    /// one that `gateway` itself describes, or a name from `gateway.accounts`.
    AccountName,
    "account name",
    "use letters, digits, `-` and `_`, starting with a letter or digit, at most 64",
    |text| is_slug(text, 64)
);

name!(
    /// A skill, and the folder that it is in.
    SkillName,
    "name of a skill",
    "use a-z, 0-9 and single `-` between them, at most 64",
    |text| {
        let is_part = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        text.len() <= 64 && text.split('-').all(is_part)
    }
);

impl AccountName {
    /// The one that `gateway` itself describes.
    pub const MAIN: &'static str = "main";

    /// The same as a name.
    pub fn main() -> &'static AccountName {
        static MAIN: LazyLock<AccountName> = LazyLock::new(AccountName::default);
        &MAIN
    }

    pub fn is_main(&self) -> bool {
        self.as_str() == AccountName::MAIN
    }
}

impl Default for AccountName {
    fn default() -> AccountName {
        AccountName(AccountName::MAIN.to_owned())
    }
}

name!(
    /// One presentation of a group to the person: `<group>.c<cycle>`.
    ChangesetId,
    "changeset id",
    "it looks like auth.c1",
    |text| {
        text.rsplit_once(".c").is_some_and(|(group, cycle)| {
            is_slug(group, LONGEST_GROUP)
                && !cycle.is_empty()
                && cycle.len() <= 9
                && cycle.bytes().all(|byte| byte.is_ascii_digit())
        })
    }
);

name!(
    /// A git object name.
    Oid,
    "git object name",
    "it is 40 or 64 lowercase hexadecimal digits",
    |text| {
        matches!(text.len(), 40 | 64)
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    }
);

/// Bytes of a group's name.
const LONGEST_GROUP: usize = 64;

fn is_slug(text: &str, longest: usize) -> bool {
    let first = text.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.len() <= longest
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

impl AgentId {
    /// The id for a role and a number that the shell drew at random.
    pub fn from_number(role: Role, number: u32) -> Self {
        Self(format!("{}-{number:08x}", role.name()))
    }
}

impl ChangesetId {
    pub fn of(group: &GroupName, cycle: u32) -> Self {
        Self(format!("{group}.c{cycle}"))
    }

    /// A name for what undoes this changeset, for the `number`th time.
    #[must_use]
    pub fn undoing(&self, number: u32) -> Self {
        let word = if number <= 1 { "revert".to_owned() } else { format!("revert{number}") };
        let (group, cycle) = self.0.rsplit_once(".c").unwrap_or((&self.0, "0"));
        let room = LONGEST_GROUP - word.len() - 1;
        let group = &group[..group.len().min(room)];
        Self(format!("{word}-{group}.c{cycle}"))
    }
}

/// What an agent is there for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Planner,
    Worker,
    Validator,
    Merger,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Planner, Role::Worker, Role::Validator, Role::Merger];

    pub fn name(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Worker => "worker",
            Role::Validator => "validator",
            Role::Merger => "merger",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_hurt_in_a_branch_or_a_path_are_refused() {
        for bad in ["", "-x", "a b", "a/b", "..", "a.lock", "é", "a\n", &"x".repeat(65)] {
            assert!(TaskId::new(bad).is_err(), "{bad:?} was accepted as a task id");
            assert!(GroupName::new(bad).is_err(), "{bad:?} was accepted as a group");
        }
        for good in ["task-001", "T1", "a_b", "0"] {
            assert!(TaskId::new(good).is_ok(), "{good:?} was refused");
        }
    }

    #[test]
    fn session_agent_and_changeset_ids_have_one_shape() {
        assert!(SessionId::new("ses-20260206-143022").is_ok());
        for bad in ["ses-20260206143022", "ses-2026020-6143022", "ses-20260206-14302x", "x"] {
            assert!(SessionId::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(AgentId::from_number(Role::Worker, 0x1a2b).as_str(), "worker-00001a2b");
        for bad in ["worker-123", "boss-00001a2b", "worker-0000ZZZZ", "worker"] {
            assert!(AgentId::new(bad).is_err(), "{bad:?}");
        }
        let group = GroupName::new("auth").unwrap();
        assert_eq!(ChangesetId::of(&group, 2).as_str(), "auth.c2");
        assert!(ChangesetId::new("auth.c").is_err());
    }

    #[test]
    fn what_undoes_a_changeset_has_a_name_of_its_own_that_is_a_good_one() {
        for (id, number, name) in [
            ("auth.c1", 1, "revert-auth.c1".to_owned()),
            ("auth.c1", 2, "revert2-auth.c1".to_owned()),
            ("revert-auth.c12", 1, "revert-revert-auth.c12".to_owned()),
            (&format!("{}.c3", "x".repeat(64)), 1, format!("revert-{}.c3", "x".repeat(57))),
        ] {
            let undoing = ChangesetId::new(id).unwrap().undoing(number);
            assert_eq!(undoing.as_str(), name);
            assert_eq!(ChangesetId::new(name), Ok(undoing));
        }
    }

    #[test]
    fn a_bad_name_in_a_file_is_an_error_and_not_a_panic() {
        let refused = serde_json::from_str::<TaskId>("\"a/b\"").unwrap_err().to_string();
        assert!(refused.contains("`a/b` is no task id"), "{refused}");
    }
}

//! Names of files that others go by: git, agents, and the tools of people.

use super::paths::lies_in;
use super::rules::{Scope, fold};

/// Names that tell git, an agent or Blue Flame what to do, or hold what the person
/// has to do; in any directory.
const PROTECTED: &[&str] = &[
    ".git",
    "git~1",
    ".gitmodules",
    ".gitattributes",
    ".claude",
    ".blueflame",
    ".beads",
    ".mcp.json",
    "blueflame.yaml",
];

/// Names of files and directories by which agents, editors, package managers
/// and git hooks of people run what stands in them; in any directory. A task
/// that is about one of them has it in its `file_locks`.
const STEERING: &[&str] = &[
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    ".codex",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".cursor",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".gemini",
    ".idea",
    ".husky",
    ".npmrc",
    ".pnpmfile.cjs",
    ".lfsconfig",
    ".envrc",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".devcontainer",
    ".devcontainer.json",
    ".cargo",
    ".mvn",
    ".bazelrc",
    ".gitconfig",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    "bunfig.toml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
];

/// There are several of them, with endings.
const STEERING_BEGINNING: &str = ".yarnrc";

/// What steers only in its directory.
const STEERING_IN: &[(&str, &str)] = &[
    (".vscode", "tasks.json"),
    (".vscode", "settings.json"),
    (".vscode", "launch.json"),
    (".github", "copilot-instructions.md"),
];

/// How file systems that are generous about names would read one.
fn plain_name(name: &str) -> String {
    fold(name).trim_end_matches([' ', '.']).to_owned()
}

pub(super) fn is_protected(name: &str) -> bool {
    let name = plain_name(name);
    PROTECTED.contains(&name.as_str())
}

pub(super) fn is_git(name: &str) -> bool {
    matches!(plain_name(name).as_str(), ".git" | "git~1")
}

/// The files and directories on the way to a path, itself included, that steer
/// the tools of people.
pub(super) fn steering(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain(std::iter::once(path.len()));
    ends.map(|end| &path[..end]).filter(|named| steers(named))
}

fn steers(path: &str) -> bool {
    let mut names = path.rsplit('/').map(plain_name);
    let (name, parent) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
    STEERING.contains(&name.as_str())
        || name.starts_with(STEERING_BEGINNING)
        || STEERING_IN.contains(&(parent.as_str(), name.as_str()))
}

impl Scope {
    /// Whether the task names this file or directory, or something in it. What
    /// only lies in a directory that it names was not thought of.
    pub(super) fn names(&self, path: &str) -> bool {
        match self {
            Scope::Everything => false,
            Scope::Locks(locks) => locks.iter().any(|lock| lies_in(lock.as_str(), path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config;
    use crate::ids::Role;
    use crate::lock_path::LockPath;
    use crate::policy::{Policy, PolicyRules};

    fn may_change(lock: &str, path: &str) -> bool {
        let config = config::read(b"schema_version: 2\npermissions: {allowed_paths: ['**']}\n");
        let config = config.into_result().unwrap().0;
        let locks = [LockPath::new(lock).unwrap()];
        Policy::new(PolicyRules::of(&config, Role::Worker, &locks)).unwrap().may_commit(path)
    }

    #[test]
    fn what_steers_tools_is_changed_only_by_a_task_that_names_it() {
        for (lock, path, may) in [
            ("web", "web/a.ts", true),
            ("web", "web/AGENTS.md", false),
            ("web", "web/agents.MD", false),
            ("web", "web/Claude.md", false),
            ("web", "web/.codex/config.toml", false),
            ("web", "web/.opencode/plugin/a.js", false),
            ("web", "web/opencode.json", false),
            ("web", "web/.cursor/rules/a.mdc", false),
            ("web", "web/.vscode/tasks.json", false),
            ("web", "web/.vscode/settings.json", false),
            ("web", "web/.vscode/launch.json", false),
            ("web", "web/.vscode/extensions.json", true),
            ("web", "web/tasks.json", true),
            ("web", "web/.idea/workspace.xml", false),
            ("web", "web/.husky/pre-commit", false),
            ("web", "web/.npmrc", false),
            ("web", "web/.yarnrc", false),
            ("web", "web/.yarnrc.yml", false),
            ("web", "web/.lfsconfig", false),
            ("web", "web/.envrc", false),
            ("web", "web/.envrc.", false),
            ("web", "web/.pre-commit-config.yaml", false),
            ("web", "web/.devcontainer/devcontainer.json", false),
            ("web", "web/.cargo/config.toml", false),
            ("web", "web/.mvn/jvm.config", false),
            ("web", "web/lefthook.yml", false),
            ("web", "web/Cargo.toml", true),
            ("web/.cargo/config.toml", "web/.cargo/config.toml", true),
            ("web/AGENTS.md", "web/AGENTS.md", true),
            ("web/.vscode", "web/.vscode/tasks.json", false),
            ("web/.vscode/tasks.json", "web/.vscode/tasks.json", true),
            ("web/.husky", "web/.husky/pre-commit", true),
            ("web/.husky/pre-commit", "web/.husky/pre-commit", true),
            ("web/.husky/pre-commit", "web/.husky/pre-push", false),
            ("web/.husky", "web/.husky/.npmrc", false),
            ("web/.gitattributes", "web/.gitattributes", false),
            ("web/.beads", "web/.beads/issues.jsonl", false),
        ] {
            assert_eq!(may_change(lock, path), may, "{path} with {lock}");
        }
    }
}

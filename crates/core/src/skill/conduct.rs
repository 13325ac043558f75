//! Why a skill is given to no agent, whatever the configuration says.

use std::fmt;

/// What a skill would have an agent do that is the orchestrator's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    StartsAgents,
    ManagesBranches,
}

/// Skills that are known by their names.
const KNOWN: [(&str, Conduct); 5] = [
    ("dispatching-parallel-agents", Conduct::StartsAgents),
    ("subagent-driven-development", Conduct::StartsAgents),
    ("executing-plans", Conduct::ManagesBranches),
    ("finishing-a-development-branch", Conduct::ManagesBranches),
    ("using-git-worktrees", Conduct::ManagesBranches),
];

/// Tools that start agents.
const AGENTS: [&str; 2] = ["Task", "Agent"];

/// What git does with branches.
const BRANCHES: [&str; 7] = ["branch", "checkout", "merge", "push", "rebase", "switch", "worktree"];

impl Conduct {
    pub fn of_name(name: &str) -> Option<Conduct> {
        KNOWN.into_iter().find(|(known, _)| *known == name).map(|(_, conduct)| conduct)
    }

    /// What the tools that a skill asks for are good for.
    pub(super) fn of_tools(tools: &str) -> Option<Conduct> {
        let apart = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | ':' | '*');
        let words: Vec<&str> = tools.split(apart).filter(|word| !word.is_empty()).collect();
        let git = words.windows(2).any(|pair| pair[0] == "git" && BRANCHES.contains(&pair[1]));
        if words.iter().any(|word| AGENTS.contains(word)) {
            Some(Conduct::StartsAgents)
        } else {
            git.then_some(Conduct::ManagesBranches)
        }
    }
}

impl fmt::Display for Conduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conduct::StartsAgents => "it has agents start agents, which only Blue Flame does",
            Conduct::ManagesBranches => "it has agents manage branches, which only Blue Flame does",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_tell_what_a_skill_is_up_to() {
        for (tools, conduct) in [
            ("Read, Grep", None),
            ("Bash(git status:*) Read", None),
            ("Bash(npm run task)", None),
            ("Read,Task", Some(Conduct::StartsAgents)),
            ("Agent(reviewer)", Some(Conduct::StartsAgents)),
            ("Bash(git worktree:*)", Some(Conduct::ManagesBranches)),
            ("Bash(git push *), Bash(ls:*)", Some(Conduct::ManagesBranches)),
        ] {
            assert_eq!(Conduct::of_tools(tools), conduct, "{tools}");
        }
    }
}

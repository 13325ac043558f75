//! How far an agent's hands reach in its workspace: what the sandbox lets it
//! write, told by the same rules that its tool calls are judged by.

use super::rules::{PolicyRules, Scope};
use crate::lock_path::LockPath;

/// What may be written in a workspace. The git directory is told of elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Everything,
    /// What these cover, and build output.
    Only {
        locks: Vec<LockPath>,
        scratch: Vec<LockPath>,
    },
}

impl PolicyRules {
    pub fn reach(&self) -> Reach {
        let scratch = self.scratch.clone();
        match &self.scope {
            _ if !self.writes() => Reach::Only { locks: Vec::new(), scratch },
            Scope::Everything => Reach::Everything,
            Scope::Locks(locks) => Reach::Only { locks: locks.clone(), scratch },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::ids::Role;

    #[test]
    fn who_writes_nothing_reaches_build_output_only() {
        let text = b"schema_version: 2\nworktree: {scratch: [target]}\n";
        let config = config::read(text).config.expect("a good file");
        let (lock, target) = (LockPath::new("src/a.rs"), LockPath::new("target"));
        let (lock, target) = (lock.expect("a path"), target.expect("a path"));
        let reach = |role| PolicyRules::of(&config, role, std::slice::from_ref(&lock)).reach();
        for (role, locks) in [
            (Role::Worker, vec![lock.clone()]),
            (Role::Merger, vec![lock.clone()]),
            (Role::Validator, Vec::new()),
            (Role::Planner, Vec::new()),
        ] {
            let scratch = vec![target.clone()];
            assert_eq!(reach(role), Reach::Only { locks, scratch }, "{role:?}");
        }
        let mut rules = PolicyRules::of(&config, Role::Worker, &[]);
        rules.scope = Scope::Everything;
        assert_eq!(rules.reach(), Reach::Everything);
    }
}

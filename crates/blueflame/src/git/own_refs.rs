//! References of our own, which nobody else moves: set and removed by a git that stays.
//! No hook of the person's is run for them.

use std::path::Path;

use super::GitError;
use super::resident::Resident;

const COMMAND: [&str; 8] = [
    "-c",
    "core.hooksPath=/dev/null",
    // Someone else's short work on all references is waited for.
    "-c",
    "core.packedRefsTimeout=5000",
    "-c",
    "core.filesRefLockTimeout=5000",
    "update-ref",
    "--stdin",
];

#[derive(Debug)]
pub struct OwnRefs(Resident);

impl OwnRefs {
    /// Those of a git directory. Nothing is started before something is changed.
    pub fn of(git_dir: &Path) -> OwnRefs {
        OwnRefs(Resident::of(git_dir, &COMMAND))
    }

    /// Has a reference hold what git understands by a name, whatever it held.
    pub fn set(&self, reference: &str, to: &str) -> Result<(), GitError> {
        self.change(&format!("update {reference} {to}\n"))
    }

    /// Removes references, all of them or none. It is fine if one is not there.
    pub fn delete<'a>(&self, references: impl Iterator<Item = &'a str>) -> Result<(), GitError> {
        let lines: String = references.flat_map(|reference| ["delete ", reference, "\n"]).collect();
        if lines.is_empty() { Ok(()) } else { self.change(&lines) }
    }

    fn change(&self, lines: &str) -> Result<(), GitError> {
        self.0.ask(|git| {
            git.tell(format!("start\n{lines}commit\n").as_bytes())?;
            for expected in ["start: ok", "commit: ok"] {
                let line = git.line()?;
                if line != expected {
                    return Err(git.strange(&line));
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use blueflame_testkit::TestEnv;

    use super::*;

    #[test]
    fn references_come_and_go_and_no_hook_runs() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("file", "x");
        let commit = repository.commit("start").trim().to_owned();
        let hook = repository.path().join(".git/hooks/reference-transaction");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&hook, mode).unwrap();

        let refs = OwnRefs::of(&repository.path().join(".git"));
        let there = || repository.git(["for-each-ref", "--format=%(refname)", "refs/blueflame"]);
        for name in ["refs/blueflame/a", "refs/blueflame/b"] {
            refs.set(name, &format!("{commit}^{{commit}}")).unwrap();
        }
        assert_eq!(there(), "refs/blueflame/a\nrefs/blueflame/b\n");
        let error = refs.set("refs/blueflame/c", &"1".repeat(40)).unwrap_err();
        assert!(error.to_string().contains("refs/blueflame/c"), "{error}");
        refs.delete(["refs/blueflame/a", "refs/blueflame/none"].into_iter()).unwrap();
        assert_eq!(there(), "refs/blueflame/b\n");
        refs.delete(std::iter::empty()).unwrap();
    }
}

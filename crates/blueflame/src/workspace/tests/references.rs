//! The references of a workspace, known without git where there is only its branch.

use super::*;

/// What is known without git after this was done, and what git lists.
fn known_and_listed(script: &str) -> (Option<Oid>, Vec<(String, Oid)>, Workspace) {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1\n").commit("start"));
    let workspaces = workspaces(&repository);
    let path = env.path("workspace");
    let workspace = Workspace { path, ..workspaces.of(&order("t1", &start)) };
    fs::create_dir(&workspace.path).unwrap();
    let git_dir = workspace.path.join(".git");
    git_dir::make_common(&git_dir, &workspace.author, &workspaces.plain).unwrap();
    git_dir::make_own(&git_dir, &workspace, &start, &workspaces.plain).unwrap();
    agent(&env, &workspace, &format!("branch=$(git symbolic-ref HEAD); {script}"));
    let looked = git_dir::look_through(&git_dir).unwrap();
    let listed = bring::references(&git_dir).unwrap().unwrap();
    (looked.only_branch(&workspace), listed, workspace)
}

const COMMIT: &str = "git commit -q --allow-empty -m two";

#[test]
fn one_branch_is_known_as_git_knows_it() {
    for script in ["true", COMMIT, "git commit -q --amend --allow-empty -m other"] {
        let (known, listed, workspace) = known_and_listed(script);
        let branch = git_dir::reference(&workspace);
        assert_eq!(listed, [(branch, known.unwrap())], "{script}");
    }
}

#[test]
fn whatever_else_there_is_is_left_to_git() {
    for (script, listed_by_git) in [
        ("git branch other", 2),
        ("git tag v1", 2),
        ("git update-ref refs/replace/1111111111111111111111111111111111111111 HEAD", 2),
        ("git pack-refs --all", 1),
        ("git branch other; git pack-refs --all", 2),
        ("git update-ref -d $branch", 0),
        ("git branch other; git symbolic-ref $branch refs/heads/other", 2),
        ("echo nonsense > .git/$branch", 0),
        ("printf %s $(git rev-parse HEAD) > .git/$branch", 1),
        ("echo $(git rev-parse HEAD) refs/heads/other >> .git/packed-refs", 2),
    ] {
        let (known, listed, _) = known_and_listed(&format!("{COMMIT}; {script}"));
        assert_eq!((known, listed.len()), (None, listed_by_git), "{script}: {listed:?}");
    }
}

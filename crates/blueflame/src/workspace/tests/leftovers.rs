//! What sessions leave, found and removed.

use super::*;

#[test]
fn directories_of_any_session_are_found_and_removed() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1").commit("start"));
    let workspaces = workspaces(&repository);
    assert_eq!(workspaces.list().unwrap(), []);
    let workspace = workspaces.create(&order("t1", &start)).unwrap().workspace;
    let other = SessionId::new("ses-20250101-000000").unwrap();
    let trees = repository.path().join(".trees");
    let stale = trees.join(other.as_str()).join(".t9.a1.new");
    fs::create_dir_all(&stale).unwrap();
    fs::create_dir_all(trees.join("of the person/x")).unwrap();
    let found = workspaces.list().unwrap();
    assert_eq!(
        found,
        [
            Leftover { session: other, name: None, path: stale },
            Leftover {
                session: session(),
                name: Some(workspace.name.clone()),
                path: workspace.path.clone()
            },
        ]
    );
    for leftover in &found {
        workspaces.remove_leftover(leftover).unwrap();
    }
    assert_eq!(workspaces.list().unwrap(), []);
    assert!(trees.join("of the person/x").exists());
    let elsewhere = Leftover { path: repository.path().join(".git"), ..found[0].clone() };
    assert!(workspaces.remove_leftover(&elsewhere).is_err());
    let climbing = Leftover { path: trees.join("../.git"), ..found[0].clone() };
    assert!(workspaces.remove_leftover(&climbing).is_err());
    assert!(repository.path().join(".git").exists());
}

#[test]
fn a_workspace_goes_and_harvested_work_stays() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1").commit("start"));
    let workspaces = workspaces(&repository);
    let workspace = workspaces.create(&order("t1", &start)).unwrap().workspace;
    workspaces.harvest(&workspace).unwrap();
    repository.git(["update-ref", "refs/blueflame/ses-20250101-000000/base/x", start.as_str()]);
    let refs = || repository.git(["for-each-ref", "--format=%(refname)", "refs/blueflame"]);
    assert_eq!(refs().lines().count(), 3);
    workspaces.remove(&workspace).unwrap();
    // The harvested work stays.
    assert_eq!(refs().lines().count(), 2);
    let attempt = workspaces.attempt_ref(&workspace.name);
    assert_eq!(refs(), format!("refs/blueflame/ses-20250101-000000/base/x\n{attempt}\n"));
}

#[test]
fn the_place_is_ignored_once() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1").commit("start"));
    for task in ["t1", "t2"] {
        workspaces(&repository).create(&order(task, &start)).unwrap();
    }
    let exclude = fs::read_to_string(repository.path().join(".git/info/exclude")).unwrap();
    assert_eq!(exclude.matches("/.trees/\n").count(), 1, "{exclude}");
    assert_eq!(repository.git(["status", "--porcelain"]), "");
}

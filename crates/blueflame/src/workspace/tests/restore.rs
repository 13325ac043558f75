//! Unfinished work, put back for the next attempt.

use super::*;
use crate::attempt::snapshot::Camera;
use crate::attempt::spec::Snapshots;

/// A snapshot of a workspace, as an attempt process takes it.
fn snapshot(env: &TestEnv, repository: &Repository<'_>, workspace: &Workspace) -> Restore {
    let git_dir = env.path("snapshots.git");
    let spec = Snapshots {
        every: std::time::Duration::from_secs(1),
        objects: repository.path().join(".git/objects"),
        exclude: workspace.hidden.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let commit = runtime.block_on(async {
        let (path, author) = (workspace.path.clone(), workspace.author.clone());
        let mut camera = Camera::new(git_dir.clone(), path, author, workspace.start.clone(), spec);
        camera.take().await.unwrap().unwrap()
    });
    Restore { git_dir, commit }
}

#[test]
fn the_next_attempt_finds_it_as_it_was() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    repository.write("gone", "1\n").write("a", "1\n");
    let start = oid(&repository.write("same", "1\n").commit("start"));
    let workspaces = workspaces(&repository);
    let first = workspaces.create(&order("t1", &start)).unwrap().workspace;
    agent(
        &env,
        &first,
        "echo 2 > a; git commit -qam two; rm gone; mkdir d; echo n > d/new; echo 1 > same",
    );
    let restore = snapshot(&env, &repository, &first);
    workspaces.remove(&first).unwrap();
    let second = Order { restore: Some(restore), ..order("t2", &start) };
    let created = workspaces.create(&second).unwrap();
    assert_eq!(created.conflicts, [""; 0]);
    let second = created.workspace;
    assert_eq!(read(&second, "a"), "2\n");
    assert_eq!(read(&second, "d/new"), "n\n");
    agent(&env, &second, "git status --porcelain -uall > ../status; git rev-parse HEAD > ../head");
    let beside = second.path.parent().unwrap();
    let status = fs::read_to_string(beside.join("status")).unwrap();
    assert_eq!(status, " M a\n D gone\n?? d/new\n");
    assert_eq!(oid(&fs::read_to_string(beside.join("head")).unwrap()), start);
    let harvest = workspaces.harvest(&second).unwrap();
    assert_eq!(harvest.uncommitted, ["a", "d/new", "gone"]);
    assert_eq!(harvest.left_behind(|_| true).outcome(), Outcome::Uncommitted);
}

#[test]
fn a_start_that_has_moved_on_keeps_what_is_new_in_it() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    repository.write("a", "1\n").write("both", "1\n");
    let start = oid(&repository.write("other", "1\n").commit("start"));
    let workspaces = workspaces(&repository);
    let first = workspaces.create(&order("t1", &start)).unwrap().workspace;
    agent(&env, &first, "echo agent > a; echo agent > both");
    let restore = snapshot(&env, &repository, &first);
    let moved = oid(&repository.write("other", "2\n").write("both", "base\n").commit("moved"));
    let second = Order { restore: Some(restore), ..order("t2", &moved) };
    let created = workspaces.create(&second).unwrap();
    assert_eq!(created.conflicts, ["both"]);
    assert_eq!(read(&created.workspace, "a"), "agent\n");
    assert_eq!(read(&created.workspace, "other"), "2\n");
    assert!(read(&created.workspace, "both").contains("<<<<<<<"));
}

/// Git would not have it, and whoever tries again gets the same answer: that is no reason
/// to keep the others from working.
#[test]
fn unfinished_work_that_git_refuses_is_the_tasks_own_affair() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1\n").commit("start"));
    let workspaces = workspaces(&repository);
    let first = workspaces.create(&order("t1", &start)).unwrap().workspace;
    agent(&env, &first, "head -c 3000 /dev/zero | tr '\\0' x > .gitattributes");
    let restore = snapshot(&env, &repository, &first);
    let second = Order { restore: Some(restore), ..order("t2", &start) };
    let error = workspaces.create(&second).unwrap_err();
    assert!(matches!(error, WorkspaceError::Restore(_)) && error.is_of_the_work(), "{error}");
}

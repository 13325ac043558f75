//! Repositories of all shapes.

use super::*;

/// Makes a workspace, commits in it and harvests that.
fn round(env: &TestEnv, root: &Path, start: &Oid) -> (Created, Harvest) {
    let place = LockPath::new(".trees").unwrap();
    let workspaces =
        Workspaces::new(&root.join(".git"), root, &place, session()).unwrap().keep_free(0);
    let created = workspaces.create(&order("t1", start)).unwrap();
    agent(env, &created.workspace, "test -z \"$(git status --porcelain)\"; git log --oneline -2");
    agent(env, &created.workspace, "echo more > more; git add more; git commit -qm more");
    let harvest = workspaces.harvest(&created.workspace).unwrap();
    assert_eq!((harvest.commits, harvest.tree_changed), (1, true));
    assert_eq!(harvest.uncommitted, [""; 0]);
    (created, harvest)
}

#[test]
fn names_with_blanks_and_other_letters() {
    let env = TestEnv::new();
    let repository = env.repository("mein Projekt #1 50% ü");
    let start = oid(&repository.write("Über uns/a b\tc.txt", "1").commit("start"));
    round(&env, repository.path(), &start);
}

/// A repository made by `git init` with one more option; `None` if this git
/// does not know it.
fn unusual(env: &TestEnv, option: &str) -> Option<Oid> {
    let root = env.path("project");
    fs::create_dir(&root).unwrap();
    let git = |words: &[&str]| {
        let mut git = env.command("git");
        git.args(words).current_dir(&root);
        env.run(git)
    };
    if !git(&["init", "-q", option]).status.success() {
        return None;
    }
    git(&["commit", "-q", "--allow-empty", "-m", "start"]).success();
    let start = oid(&git(&["rev-parse", "HEAD"]).success());
    round(env, &root, &start);
    Some(start)
}

#[test]
fn objects_named_by_sha256() {
    let env = TestEnv::new();
    let start = unusual(&env, "--object-format=sha256").unwrap();
    assert_eq!(start.as_str().len(), 64);
}

#[test]
fn references_in_tables() {
    let env = TestEnv::new();
    // Known since git 2.45.
    let _ = unusual(&env, "--ref-format=reftable");
}

#[test]
fn a_detached_head_and_a_linked_work_tree() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1").commit("start"));
    repository.git(["checkout", "-q", "--detach"]);
    round(&env, repository.path(), &start);
    let linked = env.path("linked");
    repository.git(["worktree", "add", "-q", linked.to_str().unwrap()]);
    let place = LockPath::new(".trees").unwrap();
    let common = repository.path().join(".git");
    let workspaces = Workspaces::new(&common, &linked, &place, session()).unwrap().keep_free(0);
    let created = workspaces.create(&order("t2", &start)).unwrap();
    assert!(created.workspace.path.starts_with(&linked));
}

#[test]
fn submodules_stay_empty_and_are_named() {
    let env = TestEnv::new();
    let inner = env.repository("inner");
    inner.write("x", "x").commit("inner");
    let repository = env.repository("project");
    let from = inner.path().to_str().unwrap();
    repository.git([
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        from,
        "lib/in",
    ]);
    let start = oid(&repository.commit("start"));
    let (created, _) = round(&env, repository.path(), &start);
    let workspaces = workspaces(&repository);
    assert_eq!(workspaces.submodules(&start).unwrap(), ["lib/in"]);
    assert_eq!(fs::read_dir(created.workspace.path.join("lib/in")).unwrap().count(), 0);
}

#[test]
fn pointers_to_large_files_stay_pointers() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    repository.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    let start = oid(&repository.write("a.bin", "version https://git-lfs\n").commit("start"));
    let marker = env.path("marker");
    let evil = format!("touch '{}'; cat", marker.display());
    for key in ["clean", "smudge"] {
        repository.git(["config", &format!("filter.lfs.{key}"), &evil]);
    }
    let (created, _) = round(&env, repository.path(), &start);
    assert_eq!(read(&created.workspace, "a.bin"), "version https://git-lfs\n");
    assert!(!marker.exists(), "the person's filter was run");
}

#[test]
fn a_shallow_clone() {
    let env = TestEnv::new();
    let origin = env.repository("origin");
    for number in 0..4 {
        origin.write("a", &number.to_string()).commit("a commit");
    }
    let root = env.path("project");
    let mut git = env.command("git");
    let from = format!("file://{}", origin.path().display());
    git.args(["clone", "-q", "--depth=2", &from]).arg(&root);
    env.run(git).success();
    let mut git = env.command("git");
    git.args(["rev-parse", "HEAD"]).current_dir(&root);
    let start = oid(&env.run(git).success());
    let before = fs::read(root.join(".git/shallow")).unwrap();
    let (_, harvest) = round(&env, &root, &start);
    assert_eq!(fs::read(root.join(".git/shallow")).unwrap(), before);
    // A merge looks for where the two sides parted.
    let place = LockPath::new(".trees").unwrap();
    let workspaces = Workspaces::new(&root.join(".git"), &root, &place, session()).unwrap();
    let point = workspaces.starting_point(&start, std::slice::from_ref(&harvest.head)).unwrap();
    assert_eq!(point, StartPoint::Ready(harvest.head));
}

#[test]
fn a_repository_that_borrows_its_objects_itself() {
    let env = TestEnv::new();
    let origin = env.repository("origin");
    let start = oid(&origin.write("a", "1").commit("start"));
    let repository = env.repository("project");
    let alternates = repository.path().join(".git/objects/info/alternates");
    fs::create_dir_all(alternates.parent().unwrap()).unwrap();
    // Relative, to its own directory of objects.
    fs::write(alternates, "../../../origin/.git/objects\n").unwrap();
    repository.git(["reset", "-q", "--hard", start.as_str()]);
    round(&env, repository.path(), &start);
}

#[test]
fn repositories_in_which_it_would_go_wrong_are_refused() {
    for (key, value, expected) in [
        ("core.worktree", "../elsewhere", "the repository's work tree is elsewhere"),
        ("extensions.partialClone", "origin", "the repository is a partial clone"),
        ("remote.origin.promisor", "true", "the repository is a partial clone"),
    ] {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("a", "1").commit("start");
        repository.git(["config", key, value]);
        let place = LockPath::new(".trees").unwrap();
        let root = repository.path();
        let refused =
            Workspaces::new(&root.join(".git"), root, &place, session()).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn commits_are_counted_along_all_parents() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1\n").commit("start"));
    let workspaces = workspaces(&repository);
    let workspace = workspaces.create(&order("t1", &start)).unwrap().workspace;
    agent(
        &env,
        &workspace,
        "work=$(git symbolic-ref --short HEAD)
         git checkout -q -b side; echo s > s; git add s; git commit -qm side
         git checkout -q $work; echo m > m; git add m; git commit -qm main
         git merge -q -m merge side
         git checkout -q --orphan root; git rm -rqf .; echo r > r; git add r; git commit -qm root
         git checkout -q $work; git merge -q --allow-unrelated-histories -m unrelated root",
    );
    let harvest = workspaces.harvest(&workspace).unwrap();
    assert_eq!(harvest.commits, 5);
    assert_eq!(changed(&repository, &harvest), "m\nr\ns\n");
}

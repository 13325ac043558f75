//! What is in a workspace besides its commit.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn paths(all: &[&str]) -> Vec<LockPath> {
    all.iter().map(|path| LockPath::new(path).unwrap()).collect()
}

fn left(path: &str, why: Reason) -> LeftOut {
    LeftOut { path: path.into(), why }
}

#[test]
fn copies_shared_directories_and_scratch_are_there_and_are_not_work() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1\n").write("tracked", "1\n").commit("start"));
    repository.write("conf/.env.test", "KEY=1\n").write("tracked", "person\n");
    repository.write("node_modules/x/cli.js", "x\n").write("node_modules/ro/f", "f\n");
    let root = repository.path();
    let mode = |path: &str, mode| {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("conf/.env.test", 0o600);
    mode("node_modules/x/cli.js", 0o755);
    mode("node_modules/ro", 0o555);
    fs::create_dir(root.join("node_modules/.bin")).unwrap();
    symlink("../x/cli.js", root.join("node_modules/.bin/x")).unwrap();
    symlink(root, root.join("node_modules/out")).unwrap();
    let workspaces = workspaces(&repository);
    let mut order = order("t1", &start);
    order.fittings = config::Worktree {
        prepare: vec!["npm ci".into()],
        copy: paths(&["conf/.env.test", "missing", "tracked", "node_modules"]),
        share: paths(&["node_modules", "a", "none"]),
        scratch: paths(&["target/deep"]),
        layers: false,
    };
    let created = workspaces.create(&order).unwrap();
    mode("node_modules/ro", 0o755);
    assert_eq!(
        created.left_out,
        [
            left("missing", Reason::Missing),
            left("tracked", Reason::InTheWay),
            left("node_modules", Reason::NotAFile),
            left("node_modules/out", Reason::LinkOut),
            left("a", Reason::NotADirectory),
            left("none", Reason::Missing),
        ]
    );
    let workspace = created.workspace;
    assert_eq!(workspace.prepare, ["npm ci"]);
    assert_eq!(read(&workspace, "tracked"), "1\n");
    assert_eq!(read(&workspace, "conf/.env.test"), "KEY=1\n");
    assert_eq!(read(&workspace, "node_modules/.bin/x"), "x\n");
    let found = |path: &str| fs::metadata(workspace.path.join(path)).unwrap().permissions().mode();
    assert_eq!(found("conf/.env.test") & 0o777, 0o600);
    assert_eq!(found("node_modules/x/cli.js") & 0o777, 0o755);
    assert_eq!(found("node_modules/ro") & 0o777, 0o555);
    assert!(workspace.path.join("target/deep").is_dir());
    agent(&env, &workspace, "echo > target/deep/o; test -z \"$(git status --porcelain)\"");
    assert_eq!(workspaces.harvest(&workspace).unwrap().uncommitted, [""; 0]);
    // What an agent does to its copy stays in it.
    agent(&env, &workspace, "echo changed > node_modules/x/cli.js");
    assert_eq!(fs::read_to_string(root.join("node_modules/x/cli.js")).unwrap(), "x\n");
    workspaces.remove(&workspace).unwrap();
    assert!(!workspace.path.exists());
}

#[test]
fn nothing_is_read_or_written_through_links_that_lead_out() {
    let env = TestEnv::new();
    let outside = env.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    let repository = env.repository("project");
    symlink(&outside, repository.path().join("committed")).unwrap();
    let start = oid(&repository.write("a", "1\n").commit("start"));
    symlink(outside.join("secret"), repository.path().join("link")).unwrap();
    symlink(".git/config", repository.path().join("config")).unwrap();
    let workspaces = workspaces(&repository);
    for (copy, scratch) in [
        (paths(&["link"]), vec![]),
        (paths(&["config"]), vec![]),
        (paths(&["committed/secret"]), vec![]),
        (vec![], paths(&["committed/out"])),
        (vec![], paths(&["committed"])),
    ] {
        let mut order = order("t1", &start);
        (order.fittings.copy, order.fittings.scratch) = (copy, scratch);
        let refused = workspaces.create(&order).unwrap_err();
        assert!(matches!(refused, WorkspaceError::LeadsOut { .. }), "{refused}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(workspaces.list().unwrap(), []);
}

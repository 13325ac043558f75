//! Workspaces on real repositories.

use blueflame_core::event::Work;
use blueflame_core::ids::TaskId;
use blueflame_core::outcome::{Outcome, Product};
use blueflame_testkit::{Repository, TestEnv};

use super::*;

fn session() -> SessionId {
    SessionId::new("ses-20260206-143022").unwrap()
}

fn oid(text: &str) -> Oid {
    Oid::new(text.trim()).unwrap()
}

fn workspaces(repository: &Repository<'_>) -> Workspaces {
    let place = LockPath::new(".trees").unwrap();
    let root = repository.path();
    Workspaces::new(&root.join(".git"), root, &place, session()).unwrap().keep_free(0)
}

fn order(task: &str, start: &Oid) -> Order {
    let work = Work::Develop { task: TaskId::new(task).unwrap(), attempt: 1 };
    Order {
        name: WorkspaceName::of(&work),
        branch: branch(&session(), &work),
        start: start.clone(),
        author: Author { name: "Agent".into(), email: "agent@example.com".into() },
        restore: None,
        fittings: config::Worktree {
            prepare: Vec::new(),
            copy: Vec::new(),
            share: Vec::new(),
            scratch: Vec::new(),
        },
    }
}

/// A shell in a workspace, as an agent has it.
fn agent(env: &TestEnv, workspace: &Workspace, script: &str) {
    let mut command = env.command("sh");
    command.args(["-ec", script]).current_dir(&workspace.path);
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"] {
        command.env_remove(name);
    }
    env.run(command).success();
}

fn read(workspace: &Workspace, name: &str) -> String {
    fs::read_to_string(workspace.path.join(name)).unwrap()
}

#[test]
fn an_agent_works_in_it_and_its_commits_are_harvested() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("src/a.txt", "one\n").write("b", "b\n").commit("start"));
    let workspaces = workspaces(&repository);
    let workspace = workspaces.create(&order("t1", &start)).unwrap().workspace;
    assert_eq!(read(&workspace, "src/a.txt"), "one\n");
    agent(&env, &workspace, "test -z \"$(git status --porcelain)\"; test -z \"$(git remote)\"");

    let nothing = workspaces.harvest(&workspace).unwrap();
    assert_eq!(nothing.left_behind().outcome(), Outcome::NoOp);

    agent(&env, &workspace, "echo two > src/a.txt; echo new > c");
    let uncommitted = workspaces.harvest(&workspace).unwrap();
    assert_eq!(uncommitted.uncommitted, ["c", "src/a.txt"]);
    assert_eq!(uncommitted.left_behind().outcome(), Outcome::Uncommitted);

    agent(&env, &workspace, "git add -A; git commit -qm 'feat: two\n\nbecause'; git stash list");
    let harvest = workspaces.harvest(&workspace).unwrap();
    assert_eq!(harvest.uncommitted, [""; 0]);
    assert_eq!(harvest.commits.len(), 1);
    assert_eq!(harvest.commits[0].subject, "feat: two");
    assert_eq!(harvest.commits[0].message, "feat: two\n\nbecause\n");
    assert_eq!(harvest.commits[0].author, workspace.author);
    assert_eq!(harvest.commits[0].parents, [start.clone()]);
    let product = Product::Commit(harvest.head.clone());
    assert_eq!(harvest.left_behind().outcome(), Outcome::Finished { product });
    let reference = workspaces.attempt_ref(&workspace.name);
    assert_eq!(oid(&repository.git(["rev-parse", &reference])), harvest.head);
    let changed = workspaces.changes(&start, &harvest.head).unwrap();
    let paths: Vec<&str> = changed.iter().map(|file| file.change.path.as_str()).collect();
    assert_eq!(paths, ["c", "src/a.txt"]);
}

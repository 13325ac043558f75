//! Workspaces on real repositories.

use std::os::unix::fs::PermissionsExt as _;

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
        restore: None,
        in_one_place: false,
        fittings: config::Worktree {
            prepare: Vec::new(),
            copy: Vec::new(),
            share: Vec::new(),
            scratch: Vec::new(),
            layers: false,
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

/// The paths that differ between the start and the end.
fn changed(repository: &Repository<'_>, harvest: &Harvest) -> String {
    let range = [harvest.start.as_str(), harvest.head.as_str()];
    repository.git(["diff-tree", "-r", "--no-renames", "--name-only", range[0], range[1]])
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
    assert_eq!(nothing.left_behind(|_| true).outcome(), Outcome::NoOp);

    agent(&env, &workspace, "echo two > src/a.txt; echo new > c");
    let uncommitted = workspaces.harvest(&workspace).unwrap();
    assert_eq!(uncommitted.uncommitted, ["c", "src/a.txt"]);
    assert_eq!(uncommitted.left_behind(|_| true).outcome(), Outcome::Uncommitted);

    agent(&env, &workspace, "git add -A; git commit -qm 'feat: two\n\nbecause'; git stash list");
    let harvest = workspaces.harvest(&workspace).unwrap();
    assert_eq!(harvest.uncommitted, [""; 0]);
    assert_eq!((harvest.commits, harvest.tree_changed), (1, true));
    let told = repository.git(["log", "-1", "--format=%B%P%n%an <%ae>", harvest.head.as_str()]);
    let Author { name, email } = &workspace.author;
    assert_eq!(told, format!("feat: two\n\nbecause\n{start}\n{name} <{email}>\n"));
    let product = Product::Commit(harvest.head.clone());
    assert_eq!(harvest.left_behind(|_| true).outcome(), Outcome::Finished { product });
    let reference = workspaces.attempt_ref(&workspace.name);
    assert_eq!(oid(&repository.git(["rev-parse", &reference])), harvest.head);
    assert_eq!(changed(&repository, &harvest), "c\nsrc/a.txt\n");
}

#[test]
fn a_workspace_is_asked_for_once_and_from_something_real() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1").commit("start"));
    let workspaces = workspaces(&repository);
    workspaces.create(&order("t1", &start)).unwrap();
    let again = workspaces.create(&order("t1", &start)).unwrap_err();
    assert!(matches!(again, WorkspaceError::Exists { .. }), "{again}");
    let nowhere = workspaces.create(&order("t2", &oid(&"1".repeat(40)))).unwrap_err();
    assert!(matches!(nowhere, WorkspaceError::NoSuchStart(_)), "{nowhere}");
    assert!(!workspaces.of(&order("t2", &start)).path.exists());
}

#[test]
fn one_that_does_not_fit_on_the_disk_is_refused() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    let start = oid(&repository.write("a", "1").commit("start"));
    let workspaces = workspaces(&repository).keep_free(u64::MAX / 2);
    let refused = workspaces.create(&order("t1", &start)).unwrap_err();
    assert!(matches!(refused, WorkspaceError::NoSpace { need_mb: 1, .. }), "{refused}");
    assert_eq!(repository.git(["for-each-ref", "refs/blueflame"]), "");
}

#[test]
fn eight_are_made_at_once() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    for number in 0..200 {
        repository.write(&format!("d{}/f{number}", number % 7), &format!("{number}\n"));
    }
    let start = oid(&repository.commit("start"));
    let workspaces = workspaces(&repository);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (env, workspaces, start) = (&env, &workspaces, &start);
                scope.spawn(move || {
                    let order = order(&format!("t{number}"), start);
                    let workspace = workspaces.create(&order).unwrap().workspace;
                    agent(env, &workspace, "test -z \"$(git status --porcelain)\"");
                    agent(env, &workspace, "echo $$ > n; git add n; git commit -qm n");
                    let harvest = workspaces.harvest(&workspace).unwrap();
                    assert_eq!((harvest.commits, harvest.uncommitted.len()), (1, 0));
                    workspaces.remove(&workspace).unwrap();
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(repository.git(["for-each-ref", "refs/blueflame"]).lines().count(), 8);
    repository.git(["fsck", "--strict"]);
}

#[test]
fn nothing_of_the_person_changes() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    repository.write(".gitignore", "secret\n").write("a", "1\n").commit("start");
    repository.write("a", "2\n").git(["stash", "--quiet"]);
    let start = oid(&repository.git(["rev-parse", "HEAD"]));
    repository.write("a", "staged\n").git(["add", "a"]);
    repository.write("a", "dirty\n").write("new", "new\n").write("secret", "s\n");
    repository.git(["tag", "v1"]);
    repository.git(["config", "remote.origin.url", "/nowhere"]);
    let marker = env.path("marker");
    for hook in ["reference-transaction", "post-checkout", "post-commit", "pre-auto-gc"] {
        let hook = repository.path().join(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", marker.display())).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
    // The one line that is ours.
    drop(workspaces(&repository));
    let fingerprint = || {
        let git_dir = repository.path().join(".git");
        let files = ["index", "config", "HEAD", "logs/HEAD", "info/exclude"]
            .map(|name| fs::read(git_dir.join(name)).unwrap());
        let texts = [
            repository.git(["--no-optional-locks", "status", "--porcelain=v2", "-z", "--ignored"]),
            repository
                .git(["for-each-ref"])
                .lines()
                .filter(|l| !l.contains("refs/blueflame/"))
                .fold(String::new(), |text, line| text + line + "\n"),
            fs::read_to_string(repository.path().join("a")).unwrap(),
            format!("{:?}", git_dir.join("FETCH_HEAD").exists()),
        ];
        (files, texts.map(|text| text.replace("! .trees/\0", "")))
    };
    let before = fingerprint();
    let workspaces = workspaces(&repository);
    let mut order = order("t1", &start);
    order.fittings.copy = vec![LockPath::new("secret").unwrap()];
    order.fittings.scratch = vec![LockPath::new("target").unwrap()];
    let workspace = workspaces.create(&order).unwrap().workspace;
    agent(&env, &workspace, "git commit -q --allow-empty -m x; echo > b; git stash -uq; git gc -q");
    let head = workspaces.harvest(&workspace).unwrap().head;
    let _ = workspaces.starting_point(&start, &[head]).unwrap();
    assert_eq!(fingerprint(), before);
    workspaces.remove(&workspace).unwrap();
    assert_eq!(fingerprint(), before);
    assert!(!marker.exists(), "a hook was run");
}

mod fittings;
mod hostile;
mod leftovers;
mod objects;
mod references;
mod repositories;
mod restore;
mod starting_point;

/// What it costs, beside the linked work tree of git:
/// `cargo test --release -p blueflame --lib -- --ignored --nocapture what_it_costs`
#[test]
#[ignore = "a measurement"]
fn what_it_costs() {
    let env = TestEnv::new();
    let repository = env.repository("project");
    for number in 0..5000 {
        let text = format!("line {number}\n").repeat(300);
        repository.write(&format!("d{}/e{}/f{number}", number % 20, number % 7), &text);
    }
    let start = oid(&repository.commit("start"));
    repository.git(["repack", "-adq"]);
    let workspaces = workspaces(&repository);
    let mut times: [Vec<u128>; 4] = Default::default();
    let mut time = |which: usize, work: &mut dyn FnMut()| {
        let began = std::time::Instant::now();
        work();
        times[which].push(began.elapsed().as_millis());
    };
    // Nothing is removed in between: disks are slow at making files after that.
    let orders: Vec<Order> = (0..7).map(|round| order(&format!("t{round}"), &start)).collect();
    for (round, order) in orders.iter().enumerate() {
        let linked = env.path(format!("linked{round}"));
        let linked = linked.to_str().unwrap();
        let turns: [&mut dyn FnMut(); 2] = [
            &mut || drop(repository.git(["worktree", "add", "-q", "--detach", linked])),
            &mut || drop(workspaces.create(order).unwrap()),
        ];
        for turn in [round % 2, (round + 1) % 2] {
            time(turn, turns[turn]);
        }
    }
    for order in &orders {
        let workspace = workspaces.of(order);
        agent(&env, &workspace, "echo > new; git add new; git commit -qm new");
        time(2, &mut || drop(workspaces.harvest(&workspace).unwrap()));
    }
    for order in &orders {
        time(3, &mut || workspaces.remove(&workspaces.of(order)).unwrap());
    }
    for (what, times) in ["git worktree add", "create", "harvest", "remove"].iter().zip(&mut times)
    {
        times.sort_unstable();
        println!("{what}: median {} ms of {times:?}", times[times.len() / 2]);
    }
}

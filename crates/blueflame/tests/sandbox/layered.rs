//! Workspaces in layers, on real repositories: agents are shells that our own
//! program puts into them, and what they leave is taken over from outside.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use blueflame::attempt::spec::Author;
use blueflame::workspace::{
    Harvest, HarvestError, Layers, Making, Order, Workspace, WorkspaceName, Workspaces, branch,
};
use blueflame_core::config;
use blueflame_core::event::Work;
use blueflame_core::ids::{Oid, SessionId, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_testkit::TestEnv;

use crate::cage::BLUEFLAME;

pub struct Scene {
    env: TestEnv,
    root: PathBuf,
    pub workspaces: Workspaces,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Scene {
        Scene::made_by(files, layers())
    }

    pub fn made_by(files: &[(&str, &str)], making: Making) -> Scene {
        let env = TestEnv::new();
        let repository = env.repository("project");
        for (path, text) in files {
            repository.write(path, text);
        }
        repository.commit("start");
        let root = repository.path().to_owned();
        let workspaces = Scene::workspaces(&root, making);
        Scene { env, root, workspaces }
    }

    fn workspaces(root: &Path, making: Making) -> Workspaces {
        let place = LockPath::new(".trees").unwrap();
        let workspaces = Workspaces::new(&root.join(".git"), root, &place, session()).unwrap();
        let author = Author { name: "Agent".into(), email: "agent@example.com".into() };
        workspaces.keep_free(0).made_by(making).committing_as(author)
    }

    /// For the same repository, as another session would.
    pub fn another_session(&self) -> Workspaces {
        Scene::workspaces(&self.root, layers())
    }

    pub fn git(&self, words: &[&str]) -> String {
        let mut git = self.env.command("git");
        git.args(words).current_dir(&self.root);
        self.env.run(git).success().trim().to_owned()
    }

    /// Commits a file of the person's.
    pub fn commit(&self, path: &str, text: &str) -> Oid {
        fs::write(self.root.join(path), text).unwrap();
        self.git(&["add", path]);
        self.git(&["commit", "-q", "-m", path]);
        self.head()
    }

    pub fn head(&self) -> Oid {
        Oid::new(self.git(&["rev-parse", "HEAD"])).unwrap()
    }

    pub fn create(&self, task: &str) -> Workspace {
        self.workspaces.create(&order(task, &self.head())).unwrap().workspace
    }

    /// One that is certainly in layers.
    fn make(&self, order: &Order) -> Workspace {
        let created = self.workspaces.create(order).unwrap();
        assert!(Layers::of(&created.workspace.path).is_some(), "it is not in layers");
        created.workspace
    }

    /// What an agent does in its workspace, and what it prints.
    pub fn agent(&self, workspace: &Workspace, script: &str) -> String {
        let mut command = self.env.command(BLUEFLAME);
        command.arg("__within").arg(&workspace.path).args(["sh", "-ec"]);
        command.arg(format!("cd '{}'\n{script}", workspace.path.display()));
        for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"] {
            command.env_remove(name);
        }
        self.env.run(command).success()
    }

    pub fn harvest(&self, workspace: &Workspace) -> Harvest {
        self.workspaces.harvest(workspace).unwrap()
    }

    pub fn bases(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(".trees/.bases")).into_iter().flatten();
        let names = entries.map(Result::unwrap).filter(|it| it.file_type().unwrap().is_dir());
        let names = names.map(|it| it.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }
}

pub fn layers() -> Making {
    Making::Layers { blueflame: BLUEFLAME.into() }
}

fn session() -> SessionId {
    SessionId::new("ses-20260206-143022").unwrap()
}

pub fn order(task: &str, start: &Oid) -> Order {
    let work = Work::Develop { task: TaskId::new(task).unwrap(), attempt: 1 };
    let (config, _) = config::read(b"schema_version: 2\n").into_result().unwrap();
    Order {
        name: WorkspaceName::of(&work),
        branch: branch(&session(), &work),
        start: start.clone(),
        restore: None,
        in_one_place: false,
        fittings: config.worktree,
    }
}

fn paths(paths: &[&str]) -> Vec<LockPath> {
    paths.iter().map(|path| LockPath::new(path).unwrap()).collect()
}

#[test]
fn work_on_one_checkout_comes_out_apart() {
    let scene = Scene::new(SMALL);
    let (one, other) = (scene.create("task-001"), scene.create("task-002"));
    for workspace in [&one, &other] {
        assert!(Layers::of(&workspace.path).is_some(), "it is not in layers");
    }
    come_out_apart(&scene, &one, &other);
    // The checkout beneath is as it was.
    assert_eq!(fs::read_to_string(one.files().join("a")).unwrap(), "1\n");
}

pub const SMALL: &[(&str, &str)] =
    &[("a", "1\n"), ("b", "1\n"), ("src/c", "1\n"), (".gitignore", "*.o\n")];

/// Two agents work on the same files, and neither sees anything of the other.
pub fn come_out_apart(scene: &Scene, one: &Workspace, other: &Workspace) {
    assert_eq!(scene.bases().len(), 1, "each has its own checkout");
    for workspace in [one, other] {
        let fresh = scene.agent(workspace, "git status --porcelain -uall; git branch -a; ls -A");
        let branch = &workspace.branch;
        assert_eq!(fresh, format!("* {branch}\n.git\n.gitignore\na\nb\nsrc\n"));
    }
    scene.agent(one, "echo 2 > a; rm -r src; git commit -qam 'feat(task-001): a'; echo x > x.o");
    scene.agent(other, "cat a src/c; echo 3 > b; git commit -qam 'feat(task-002): b'");
    let (first, second) = (scene.harvest(one), scene.harvest(other));
    for harvest in [&first, &second] {
        assert_eq!((harvest.commits, harvest.uncommitted.len()), (1, 0), "{harvest:?}");
    }
    assert_eq!(scene.git(&["show", &format!("{}:a", first.head)]), "2");
    assert_eq!(scene.git(&["ls-tree", "--name-only", first.head.as_str(), "src"]), "");
    assert_eq!(scene.git(&["show", &format!("{}:a", second.head)]), "1");
    assert_eq!(scene.git(&["show", &format!("{}:b", second.head)]), "3");
    // The person's files are as they were.
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}

#[test]
fn whatever_is_not_committed_is_found() {
    find_what_is_not_committed(layers());
}

/// A directory that the start has not.
const NEW: &str = "mkdir -p n/m; echo 1 > n/m/x; echo 1 > n/z; git add n; git commit -qm x;";

pub fn find_what_is_not_committed(making: Making) {
    let files =
        [("a", "1\n"), ("b", "1\n"), ("d/e", "1\n"), ("d/f", "1\n"), (".gitignore", "ignored\n")];
    let scene = Scene::made_by(&files, making);
    for (script, expected) in [
        ("true", &[][..]),
        ("echo 2 > a", &["a"][..]),
        ("rm b", &["b"]),
        ("touch new", &["new"]),
        ("echo x > ignored; echo x > d/ignored", &[]),
        ("echo >> .gitignore", &[".gitignore"]),
        ("> .gitignore; echo x > ignored", &[".gitignore", "ignored"]),
        ("rm -r d", &["d/e", "d/f"]),
        ("rm -r d; mkdir d; echo 1 > d/e", &["d/f"]),
        ("rm -r d; echo x > d", &["d", "d/e", "d/f"]),
        ("mv a c", &["a", "c"]),
        ("chmod +x a", &["a"]),
        ("rm a; ln -s b a", &["a"]),
        // Touched, and the same again.
        ("echo 2 > a; echo 1 > a", &[]),
        ("touch a b d/e", &[]),
        // Committed as something else than what is there.
        ("echo 2 > a; git add a; git commit -qm x; echo 3 > a", &["a"]),
        ("git rm -q --cached b; git commit -qm x", &["b"]),
        (
            "git update-index --cacheinfo \
             100644,$(echo 9 | git hash-object -w --stdin),d/e; git commit -qm x",
            &["d/e"],
        ),
        // Committed as it is there, and then touched once more.
        ("chmod +x a; ln -s b l; rm -r d; git add -A; git commit -qm x", &[]),
        ("chmod +x a; git commit -qam x; chmod -x a", &["a"]),
        ("ln -s b l; git add l; git commit -qm x; ln -sf a l", &["l"]),
        ("rm -r d; git add -A; git commit -qm x; mkdir d; echo 1 > d/f", &["d/f"]),
        (&format!("{NEW} echo x > n/ignored; mkdir n/empty"), &[]),
        (&format!("{NEW} echo 2 > n/m/x"), &["n/m/x"]),
        (&format!("{NEW} echo 2 > n/m/y"), &["n/m/y"]),
        (&format!("{NEW} rm n/m/x"), &["n/m/x"]),
        (&format!("{NEW} chmod +x n/m/x"), &["n/m/x"]),
        (&format!("{NEW} rm -r n"), &["n/m/x", "n/z"]),
        (NEW, &[]),
    ] {
        let workspace = scene.create("task-001");
        scene.agent(&workspace, script);
        assert_eq!(scene.harvest(&workspace).uncommitted, expected, "{script}");
        scene.workspaces.remove(&workspace).unwrap();
    }
}

/// Of a checkout whose index is garbage git knows nothing, so whoever asks it gets an error.
#[test]
fn git_is_only_asked_where_something_may_not_be_committed() {
    let scene = Scene::new(&[("a", "1\n"), ("b", "1\n")]);
    let workspace = scene.make(&order("task-001", &scene.head()));
    scene
        .agent(&workspace, "echo 2 > a; rm b; mkdir n; echo 1 > n/x; git add -A; git commit -qm x");
    let index = workspace.path.join("base/.git/index");
    fs::set_permissions(index.parent().unwrap(), Permissions::from_mode(0o700)).unwrap();
    fs::rename(&index, scene.root.join("index of before")).unwrap();
    fs::write(&index, "no index").unwrap();
    assert_eq!(scene.harvest(&workspace).uncommitted, [""; 0]);
    // What is not in the upper layer as it was committed is for git to tell.
    fs::write(Layers::of(&workspace.path).unwrap().changes().join("a"), "3\n").unwrap();
    let asked = scene.workspaces.harvest(&workspace).unwrap_err();
    assert!(asked.to_string().contains("diff-index"), "{asked}");
    fs::rename(scene.root.join("index of before"), &index).unwrap();
    assert_eq!(scene.harvest(&workspace).uncommitted, ["a"]);
}

#[test]
fn what_is_close_to_a_checkout_is_laid_over_it() {
    let scene = Scene::new(&[("a", "1\n"), ("gone", "1\n"), ("d/x", "1\n")]);
    scene.create("task-001");
    scene.git(&["rm", "-q", "gone", "d/x"]);
    let later = scene.commit("b", "2\n");
    let workspace = scene.create("task-002");
    assert_eq!(scene.bases().len(), 1);
    let seen = scene.agent(&workspace, "ls; cat b; git status --porcelain; git rev-parse HEAD");
    assert_eq!(seen, format!("a\nb\n2\n{later}\n"));
    assert_eq!(scene.harvest(&workspace).uncommitted, [""; 0]);
    scene.agent(&workspace, "echo 3 > b; git commit -qam b; echo 1 > gone");
    assert_eq!(scene.harvest(&workspace).uncommitted, ["gone"]);
    // Whoever looks from outside finds the same.
    assert_eq!(workspace.file(Path::new("d/x")), None);
    assert_eq!(fs::read_to_string(workspace.file(Path::new("b")).unwrap()).unwrap(), "3\n");

    // What the checkout beneath never had leaves no note when it goes.
    for (script, expected) in [
        ("git rm -q b; git commit -qm gone", &[][..]),
        ("rm b", &["b"][..]),
        ("git rm -q --cached b; git commit -qm gone", &["b"]),
        // As it was before.
        ("echo 1 > gone; mkdir d; echo 1 > d/x; git add -A; git commit -qm back", &[]),
        ("echo 1 > gone; git add -A; git commit -qm back; rm gone", &["gone"]),
    ] {
        let workspace = scene.make(&order("task-004", &later));
        scene.agent(&workspace, script);
        assert_eq!(scene.harvest(&workspace).uncommitted, expected, "{script}");
        scene.workspaces.remove(&workspace).unwrap();
    }

    let whole = scene.make(&Order { in_one_place: true, ..order("task-003", &later) });
    assert_eq!(scene.bases().len(), 2);
    assert!(whole.files().join("b").exists() && !whole.files().join("gone").exists());
}

#[test]
fn what_belongs_into_every_workspace_is_in_it() {
    let scene =
        Scene::new(&[("src/a", "1\n"), ("lib/in", "1\n"), (".gitignore", "*.env\nmodules\n")]);
    fs::write(scene.root.join("src/local.env"), "mine").unwrap();
    fs::create_dir_all(scene.root.join("modules/deep")).unwrap();
    fs::write(scene.root.join("modules/deep/m"), "m").unwrap();
    let mut order = order("task-001", &scene.head());
    order.fittings.copy = paths(&["src/local.env", "src/a"]);
    order.fittings.share = paths(&["modules", "lib"]);
    order.fittings.scratch = paths(&["target/debug"]);
    let created = scene.workspaces.create(&order).unwrap();
    let left_out: Vec<&str> = created.left_out.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(left_out, ["src/a", "lib"], "the commit has those");
    let seen = scene.agent(
        &created.workspace,
        "cat src/local.env modules/deep/m src/a lib/in; ls -d target/debug; git status --porcelain",
    );
    assert_eq!(seen, "minem1\n1\ntarget/debug\n");
}

/// A directory that was part of an older commit, and is build output by now.
#[test]
fn what_the_start_has_not_is_not_seen_beneath() {
    let scene = Scene::new(&[("a", "1\n"), ("modules/old", "1\n"), ("out/old", "1\n")]);
    scene.create("task-001");
    scene.git(&["rm", "-rq", "modules", "out"]);
    fs::create_dir(scene.root.join("modules")).unwrap();
    fs::write(scene.root.join("modules/new"), "2\n").unwrap();
    let later = scene.commit(".gitignore", "modules\nout\n");
    let mut order = order("task-002", &later);
    order.fittings.share = paths(&["modules"]);
    order.fittings.scratch = paths(&["out/deep"]);
    let workspace = scene.make(&order);
    assert_eq!(scene.bases().len(), 1);
    assert_eq!(
        scene.agent(&workspace, "ls modules out; git status --porcelain"),
        "modules:\nnew\n\nout:\ndeep\n"
    );
    assert_eq!(scene.harvest(&workspace).uncommitted, [""; 0]);
}

/// Directories that cannot be looked into, or hardly: an agent must not keep us from
/// taking its work, or have us look elsewhere.
#[test]
fn no_directory_keeps_the_work_from_being_taken() {
    let scene = Scene::new(&[("a", "1\n"), ("d/x", "1\n")]);
    let deep =
        "python3 -c \"import os\nfor i in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\"";
    for script in ["chmod 000 d", "mkdir new; chmod 000 new", deep] {
        let workspace = scene.create("task-001");
        scene.agent(
            &workspace,
            &format!("echo 2 > a; git commit -qam 'feat(task-001): a'; {script}"),
        );
        assert_eq!(scene.harvest(&workspace).commits, 1, "{script}");
        scene.workspaces.remove(&workspace).unwrap();
    }
}

#[test]
fn notes_are_read_as_the_agent_finds_them() {
    let scene = Scene::new(&[("AGENTS.md", "old\n"), ("docs/x.md", "x\n")]);
    std::os::unix::fs::symlink("AGENTS.md", scene.root.join("CLAUDE.md")).unwrap();
    scene.git(&["add", "CLAUDE.md"]);
    scene.git(&["commit", "-q", "-m", "link"]);
    scene.create("task-001");
    let later = scene.commit("AGENTS.md", "new\n");
    let workspace = scene.make(&order("task-002", &later));
    let layers = Layers::of(&workspace.path).unwrap();
    let read = |copy: &Path| fs::read_to_string(copy.join("CLAUDE.md")).ok();
    let copy = layers.copy_of(&["CLAUDE.md"]).unwrap().unwrap();
    assert_eq!(read(copy.path()).as_deref(), Some("new\n"));
    scene.agent(&workspace, "ln -sf docs/x.md CLAUDE.md");
    let copy = layers.copy_of(&["CLAUDE.md"]).unwrap().unwrap();
    assert_eq!(read(copy.path()).as_deref(), Some("x\n"));
    scene.agent(&workspace, "rm CLAUDE.md; ln -s ../../../../secret CLAUDE.md");
    let copy = layers.copy_of(&["CLAUDE.md"]).unwrap().unwrap();
    assert_eq!(read(copy.path()), None);
    scene.agent(&workspace, "rm CLAUDE.md");
    assert!(layers.copy_of(&["CLAUDE.md"]).unwrap().is_none());
}

#[test]
fn checkouts_go_with_the_last_who_need_them() {
    let scene = Scene::new(&[("a", "1\n")]);
    let (one, other) = (scene.create("task-001"), scene.create("task-002"));
    scene.workspaces.remove(&one).unwrap();
    scene.workspaces.remove_unused_bases().unwrap();
    assert_eq!(scene.bases().len(), 1);
    assert_eq!(scene.agent(&other, "cat a"), "1\n");
    scene.workspaces.remove(&other).unwrap();
    scene.workspaces.remove_unused_bases().unwrap();
    assert!(!scene.root.join(".trees/.bases").exists());
}

#[test]
fn a_checkout_that_was_altered_is_not_used_by_another_session() {
    for (alter, checkouts) in [
        ("true", 1),
        ("cat a b .git/index > /dev/null", 1),
        ("echo 2 > a", 2),
        ("rm .git/index", 2),
        ("rm a", 2),
        ("chmod +x b", 2),
        ("echo x > more", 2),
        ("rm ../*.seal", 2),
        ("for it in ../*.seal; do echo x >> $it; done", 2),
    ] {
        let scene = Scene::new(&[("a", "1\n"), ("b", "1\n")]);
        let first = scene.create("task-001");
        scene.agent(&first, "echo 2 > a; git commit -qam 'feat(task-001): a'; git status");
        scene.harvest(&first);
        // One that was never finished is in nobody's way.
        let half = scene.root.join(".trees/.bases/.half.new");
        fs::create_dir(&half).unwrap();
        let mut shell = scene.env.command("sh");
        shell.args(["-c", &format!("cd -P \"$0\" && {alter}")]).arg(first.files());
        scene.env.run(shell).success();
        let again = scene.another_session();
        let second = again.create(&order("task-101", &scene.head())).unwrap().workspace;
        assert_eq!(scene.agent(&second, "cat a; ls; git status --short"), "1\na\nb\n");
        assert_eq!(scene.bases().len(), checkouts, "{alter}: {:?}", scene.bases());
        assert_eq!(half.exists(), checkouts == 1, "{alter}");
        // The first one still has its own.
        for workspace in [&first, &second] {
            again.remove(workspace).unwrap();
        }
        again.remove_unused_bases().unwrap();
        assert!(!scene.root.join(".trees/.bases").exists(), "{alter}: something is left");
    }
}

/// Git takes a file for unchanged that has its size and was written in a second that
/// was over when the index was. In a checkout of many files it need not read any of
/// them, and what an agent writes at once is seen all the same.
#[test]
fn what_is_written_at_once_over_many_files_is_seen() {
    let many: Vec<String> = (0..10_001).map(|number| format!("d{}/{number}", number % 9)).collect();
    let files: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "1\n")).collect();
    let scene = Scene::new(&files);
    let workspace = scene.create("task-001");
    let seen = "for it in d0/0 d8/9998; do echo 2 > $it; done; git status --porcelain";
    assert_eq!(scene.agent(&workspace, seen), " M d0/0\n M d8/9998\n");
    let second = |path: &str| fs::metadata(workspace.files().join(path)).unwrap().mtime();
    let youngest = many.iter().map(|path| second(path)).max().unwrap();
    assert!(second(".git/index") > youngest, "git would read those of that second again");
}

#[test]
fn a_repository_that_leads_elsewhere_is_not_followed() {
    let scene = Scene::new(&[("a", "1\n")]);
    let workspace = scene.create("task-001");
    scene.agent(&workspace, "rm -r .git/objects; ln -s /etc .git/objects");
    let error = scene.workspaces.harvest(&workspace).unwrap_err();
    assert!(matches!(error, HarvestError::Tampered { .. }), "{error}");
    let workspace = scene.create("task-002");
    scene.agent(&workspace, "git config core.fsmonitor 'touch /tmp/never'");
    let error = scene.workspaces.harvest(&workspace).unwrap_err();
    assert!(matches!(error, HarvestError::OutOfBounds { .. }), "{error}");
}

/// The kernel's own notes are out of an agent's reach: it cannot make one directory
/// show another, or take what it does not see for its own.
#[test]
fn an_agent_cannot_write_the_notes_of_the_kernel() {
    let scene = Scene::new(&[("d/a", "1\n")]);
    let workspace = scene.create("task-001");
    let script = "import os\n\
        for name in ['redirect', 'opaque', 'metacopy', 'origin']:\n \
         try: os.setxattr('d', 'user.overlay.' + name, b'y')\n \
         except OSError: pass\n";
    scene.agent(&workspace, &format!("echo 2 > d/a; python3 -c \"{script}\"; ls d"));
    assert_eq!(scene.agent(&workspace, "cat d/a; git status --porcelain"), "2\n M d/a\n");
    assert_eq!(scene.harvest(&workspace).uncommitted, ["d/a"]);
}

/// A whole session of an ordinary user: workspaces, agents in the sandbox inside of
/// them, checks, and everything lands.
#[test]
fn a_session_of_an_ordinary_user_is_laid_over_one_checkout() {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return;
    }
    let env = TestEnv::new();
    let blueflame = env.path("blueflame");
    fs::copy(BLUEFLAME, &blueflame).unwrap();
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(env.root()).status();
    assert!(owned.unwrap().success());
    let place = env.path("demo");
    let mut demo = env.command("setpriv");
    demo.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&blueflame);
    demo.args(["demo", "--yes", "--keep"]).arg(&place).current_dir(env.root());
    let told = env.run(demo).success();
    assert!(told.contains("feat(task-003)"), "{told}");
    let mut doctor = env.command("setpriv");
    doctor.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&blueflame);
    let told = env.run({
        doctor.arg("doctor").current_dir(place.join("project"));
        doctor
    });
    assert!(told.stdout.contains("laid over one checkout"), "{}", told.stdout);
}

#[test]
fn an_ordinary_user_has_them_too() {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return;
    }
    let env = TestEnv::new();
    let place = env.path("place");
    fs::create_dir(&place).unwrap();
    let blueflame = env.path("blueflame");
    fs::copy(BLUEFLAME, &blueflame).unwrap();
    let script = format!(
        "set -e; cd '{}'; mkdir base d d/changes d/changes/.git d/work; echo 1 > base/a\n\
         ln -s ../base d/base; '{}' __within \"$PWD/d\" sh -c 'cd d && cat a && echo 2 > a && id -u'\n\
         cat base/a d/changes/a",
        place.display(),
        blueflame.display()
    );
    assert!(
        Command::new("chown")
            .args(["-R", "65534:65534"])
            .arg(env.root())
            .status()
            .unwrap()
            .success()
    );
    let mut shell = env.command("setpriv");
    shell.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", &script]);
    assert_eq!(env.run(shell).success(), "1\n65534\n1\n2\n");
}

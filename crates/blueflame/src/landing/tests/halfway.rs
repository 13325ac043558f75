//! Stopped halfway, and found again.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::super::intent::Intent;
use super::*;

/// A repository with a changeset to publish, and a person's things in the
/// checkout. It is copied for each way to be cut short.
struct Template<'a> {
    scene: Scene<'a>,
    order: PublishOrder,
}

const PERSONAL: [&str; 5] =
    ["dir/c.txt", "staged.txt", "note to self.txt", "secret.env", "build/out"];

impl<'a> Template<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let scene = Scene::new(env);
        let repository = &scene.repository;
        repository.write("staged.txt", TEN).write("run.sh", "#!/bin/sh\n").write("f.txt", TEN);
        repository.write("was file", "x\n").write("was dir/inner", "x\n").commit("more");
        let big = "a long line that repeats\n".repeat(4_000);
        let work = scene.work(
            "one",
            &scene.at("main"),
            &[
                ("a", &[("was file", None), ("was dir/inner", None)]),
                (
                    "b",
                    &[
                        ("a.txt", Some("x\n")),
                        ("b.txt", None),
                        ("big.txt", Some(&big)),
                        ("new dir/n 1.txt", Some("new\n")),
                        ("new dir/ü/n 2.txt", Some("new\n")),
                        ("run.sh", Some("#!/bin/sh\nexit 0\n")),
                        ("was file/inner", Some("x\n")),
                        ("was dir", Some("x\n")),
                    ],
                ),
            ],
        );
        let order = scene.landed("auth.c1", &[work]);
        let repository = &scene.repository;
        repository.write("staged.txt", "staged\n").git(["add", "staged.txt"]);
        repository.write("dir/c.txt", "changed\n");
        repository.write("note to self.txt", "untracked\n");
        repository.write("secret.env", "ignored\n").write("build/out", "ignored too\n");
        Template { scene, order }
    }

    /// A copy under another name, with the intent declared.
    fn copy(&self, name: &str) -> Copy<'_, 'a> {
        let dir = self.scene.env.path(name);
        let mut command = self.scene.env.command("cp");
        command.arg("-a").arg(self.scene.path()).arg(&dir);
        self.scene.env.run(command).success();
        let home = self.scene.env.path("home").display().to_string();
        let surroundings = [("HOME", home.as_str()), ("GIT_CONFIG_NOSYSTEM", "1")];
        let landing = Landing::over(Objects::of(&dir.join(".git")))
            .with(&surroundings, Duration::from_secs(1));
        let intent = Intent {
            branch: "main".into(),
            old: self.order.expected.clone(),
            new: self.order.commit.clone(),
            worktree: dir.clone(),
        };
        drop(landing.declare(&intent).unwrap());
        Copy { template: self, dir, landing }
    }

    fn finished(&self) -> BTreeMap<PathBuf, String> {
        let copy = self.copy("uninterrupted");
        copy.landing.take_back().unwrap();
        assert_eq!(copy.landing.publish(&self.order).unwrap(), Publication::Published);
        copy.fingerprint()
    }
}

struct Copy<'t, 'a> {
    template: &'t Template<'a>,
    dir: PathBuf,
    landing: Landing,
}

impl Copy<'_, '_> {
    fn fingerprint(&self) -> BTreeMap<PathBuf, String> {
        let all = self.template.scene.fingerprint(&self.dir);
        let near = |path: PathBuf| path.strip_prefix(&self.dir).map(Path::to_owned).unwrap_or(path);
        all.into_iter().map(|(path, about)| (near(path), about)).collect()
    }

    fn new_version(&self, file: &str) -> Vec<u8> {
        let commit = &self.template.order.commit;
        self.template.scene.show(commit, file).into_bytes()
    }

    fn put(&self, file: &str, bytes: &[u8]) {
        let path = self.dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn git(&self) -> Command {
        let mut git = self.template.scene.env.command("git");
        git.current_dir(&self.dir).stdout(Stdio::null()).stderr(Stdio::null());
        git
    }

    /// Publishes again and compares everything with a publication that
    /// nobody disturbed.
    #[track_caller]
    fn converges(&self, finished: &BTreeMap<PathBuf, String>, case: &str) {
        let publication = self.landing.publish(&self.template.order);
        assert_eq!(publication.unwrap(), Publication::Published, "{case}");
        assert_eq!(&self.fingerprint(), finished, "{case}");
        assert!(!self.landing.intent_path().exists(), "{case}");
        fs::remove_dir_all(&self.dir).unwrap();
    }
}

type Row = (&'static str, fn(&Copy<'_, '_>));

#[test]
fn whatever_git_left_behind_is_put_back_and_done_again() {
    let env = TestEnv::new();
    let template = Template::new(&env);
    let finished = template.finished();
    let rows: [Row; 15] = [
        ("nothing", |_| {}),
        ("index.lock", |c| c.put(".git/index.lock", b"half")),
        ("a ref's lock", |c| c.put(".git/refs/heads/main.lock", b"")),
        ("HEAD.lock", |c| c.put(".git/HEAD.lock", b"")),
        ("AUTO_MERGE.lock", |c| c.put(".git/AUTO_MERGE.lock", b"")),
        ("packed-refs.lock", |c| c.put(".git/packed-refs.lock", b"")),
        ("one file new", |c| c.put("a.txt", &c.new_version("a.txt"))),
        ("one file missing", |c| fs::remove_file(c.dir.join("a.txt")).unwrap()),
        ("one file empty", |c| c.put("big.txt", b"")),
        ("one file begun", |c| c.put("big.txt", &c.new_version("big.txt")[..4_096])),
        ("one file deleted", |c| fs::remove_file(c.dir.join("b.txt")).unwrap()),
        ("new files", |c| {
            c.put("new dir/n 1.txt", b"new\n");
            c.put("new dir/ü/n 2.txt", b"ne");
        }),
        ("a file that became a directory", |c| {
            fs::remove_file(c.dir.join("was file")).unwrap();
            c.put("was file/inner", b"x\n");
        }),
        ("a directory that became a file", |c| {
            fs::remove_dir_all(c.dir.join("was dir")).unwrap();
            c.put("was dir", b"x");
        }),
        ("everything but the branch", |c| {
            let order = &c.template.order;
            let merge = ["merge", "--quiet", "--ff-only", order.commit.as_str()];
            assert!(c.git().args(merge).status().unwrap().success());
            let back = ["update-ref", "refs/heads/main", order.expected.as_str()];
            assert!(c.git().args(back).status().unwrap().success());
            c.put(".git/refs/heads/main.lock", b"");
            c.put(".git/HEAD.lock", b"");
        }),
    ];
    for (case, leave) in rows {
        let copy = template.copy("copy");
        leave(&copy);
        copy.converges(&finished, case);
    }
    // The branch has moved and a lock is left.
    let copy = template.copy("copy");
    let merge = ["merge", "--quiet", "--ff-only", template.order.commit.as_str()];
    assert!(copy.git().args(merge).status().unwrap().success());
    copy.put(".git/HEAD.lock", b"");
    copy.converges(&finished, "everything");
}

/// One row for each thing that git cannot have left: it stays, and is named.
#[test]
fn what_the_person_did_since_stops_it() {
    let env = TestEnv::new();
    let template = Template::new(&env);
    let finished = template.finished();
    let rows = [
        ("a.txt", "x\nand mine\n"),
        ("b.txt", "mine\n"),
        ("new dir/n 1.txt", "new\nand mine\n"),
        ("new dir", "a file\n"),
    ];
    for (file, text) in rows {
        let copy = template.copy("copy");
        copy.put("big.txt", b"a long");
        copy.put(".git/index.lock", b"");
        copy.put(file, text.as_bytes());
        let before = copy.fingerprint();
        let Publication::Waiting { reason } = copy.landing.publish(&template.order).unwrap() else {
            panic!("{file} did not stop it")
        };
        assert!(reason.contains(&format!("`{file}`")), "{file}: {reason}");
        let after = copy.fingerprint();
        assert_eq!(after.get(Path::new(file)), before.get(Path::new(file)), "{file}");
        for name in PERSONAL {
            assert_eq!(after[Path::new(name)], before[Path::new(name)], "{name}");
        }
        // Out of the way, it goes on.
        fs::remove_file(copy.dir.join(file)).unwrap();
        copy.converges(&finished, file);
    }
}

#[test]
fn a_git_that_still_works_is_waited_for() {
    let env = TestEnv::new();
    let template = Template::new(&env);
    let copy = template.copy("copy");
    let intent = copy.landing.declared().unwrap().unwrap().0;
    let held = copy.landing.declare(&intent).unwrap();
    let mut child = Command::new("sleep").arg("30").stdin(Stdio::from(held)).spawn().unwrap();
    let publication = copy.landing.publish(&template.order).unwrap();
    assert!(matches!(publication, Publication::Waiting { .. }), "{publication:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(copy.landing.publish(&template.order).unwrap(), Publication::Published);
}

#[test]
fn a_person_who_went_on_is_left_alone() {
    let env = TestEnv::new();
    let template = Template::new(&env);
    let copy = template.copy("copy");
    copy.put("a.txt", &copy.new_version("a.txt"));
    let commit = ["commit", "--quiet", "-m", "mine", "a.txt"];
    assert!(copy.git().args(commit).status().unwrap().success());
    let before = copy.fingerprint();
    let publication = copy.landing.publish(&template.order).unwrap();
    assert!(matches!(publication, Publication::Moved { .. }), "{publication:?}");
    assert_eq!(copy.fingerprint(), before);
}

/// The real git, killed at some moment of its work. A slow filter stretches
/// the part in which it writes files.
#[test]
fn git_killed_at_any_moment_is_recovered_from() {
    let env = TestEnv::new();
    let template = Template::new(&env);
    let finished = template.finished();
    let slow = env.path("slow");
    fs::write(&slow, "#!/bin/sh\nsleep 0.01\ncat\nsleep 0.01\n").unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let filter = format!("filter.slow.smudge={}", slow.display());
    let mut halves = 0;
    for place in 0..12 {
        let copy = template.copy("copy");
        fs::write(copy.dir.join(".git/info/attributes"), "*.txt filter=slow\n").unwrap();
        let mut git = copy.git();
        git.args(["-c", &filter, "merge", "--quiet", "--ff-only", template.order.commit.as_str()]);
        let mut child = git.spawn().unwrap();
        let end = Instant::now() + Duration::from_millis(place * 12);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        halves += usize::from(copy.dir.join(".git/index.lock").exists());
        fs::remove_file(copy.dir.join(".git/info/attributes")).unwrap();
        copy.converges(&finished, &format!("killed after {} ms", place * 12));
    }
    assert!(halves > 2, "git was hardly ever caught in the middle: {halves}");
}

/// git killed at each system call that changes something.
#[test]
#[ignore = "needs strace, and a minute"]
fn git_killed_at_every_system_call_is_recovered_from() {
    let env = TestEnv::new();
    let template = Template::new(&env);
    let finished = template.finished();
    let calls = "openat,write,rename,unlink,rmdir,mkdir,link,symlink,chmod,ftruncate,close";
    let (mut points, mut halves) = (0, 0);
    for call in calls.split(',') {
        for nth in 1.. {
            let copy = template.copy("copy");
            let mut command = env.command("strace");
            command.current_dir(&copy.dir).stdout(Stdio::null()).stderr(Stdio::null());
            command.args(["-f", "-o", "/dev/null", "-e"]);
            command.arg(format!("inject={call}:signal=KILL:when={nth}"));
            command.args(["git", "merge", "--quiet", "--ff-only", template.order.commit.as_str()]);
            let ended = command.status().unwrap();
            let lock = copy.dir.join(".git/index.lock").exists();
            copy.converges(&finished, &format!("{call} {nth}"));
            points += 1;
            halves += usize::from(lock);
            if ended.success() {
                break;
            }
        }
    }
    println!("{points} points, {halves} of them with a lock left");
    assert!(halves > 10);
}

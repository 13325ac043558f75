//! What it costs to give an agent a workspace of its own.
//!
//! Eight workspaces of a repository with many files are made in layers and as
//! checkouts of their own, and eight linked work trees by `git worktree add`, turn by
//! turn in one run. Then git is asked for its status in each for the first time, what
//! was made is weighed, and what an agent has not committed is looked up. At the end
//! many are made at once.
//!
//! ```text
//! cargo bench -p blueflame --bench workspaces
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blueflame::attempt::spec::Author;
use blueflame::workspace::{Layers, Making, Order, Workspace, WorkspaceName, Workspaces, branch};
use blueflame_core::config;
use blueflame_core::event::Work;
use blueflame_core::ids::{Oid, SessionId, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_testkit::TestEnv;

const BLUEFLAME: &str = env!("CARGO_BIN_EXE_blueflame");
const FILES: u32 = 50_000;
const MORE_FILES: u32 = 60_000;
const EACH: u32 = 8;
const AT_ONCE: u32 = 1000;
const ROUNDS: usize = 9;
const THREADS: usize = 16;

struct Scene {
    env: TestEnv,
    start: Oid,
    /// A commit with more files, for what was touched.
    larger: Oid,
}

fn main() {
    let scene = Scene::new();
    let checkout = timed(|| drop(scene.workspaces("first", true).create(&scene.order(0))));
    println!("{FILES} files; the one checkout beneath all layers: {}", seconds(checkout));
    println!(
        "{EACH} of them           made    one of them took    first status    together       KB each  ratio made  ratio together"
    );
    // Nothing is removed before all are measured: a file system makes files much more
    // slowly for a while after many were removed.
    let (plain_ones, layered_ones) =
        (scene.workspaces("plain", false), scene.workspaces("layered", true));
    let layered = scene.ours(&layered_ones);
    let worktrees = scene.linked();
    let plain = scene.ours(&plain_ones);
    for (name, row) in
        [("git worktree add", &worktrees), ("own checkouts", &plain), ("layers", &layered)]
    {
        let (least, most) = (row.made.iter().min().unwrap(), row.made.iter().max().unwrap());
        println!(
            "{name:<18} {:>9} {:>19} {:>15} {:>11} {:>13}  {:>10.1} {:>15.1}",
            seconds(row.total()),
            format!("{:.3} to {:.3} s", least.as_secs_f64(), most.as_secs_f64()),
            seconds(row.status),
            seconds(row.total() + row.status),
            row.kilobytes / u64::from(EACH),
            worktrees.total().as_secs_f64() / row.total().as_secs_f64(),
            (worktrees.total() + worktrees.status).as_secs_f64()
                / (row.total() + row.status).as_secs_f64(),
        );
    }
    scene.touched();
    scene.crowd();
}

struct Row {
    /// Each of them.
    made: Vec<Duration>,
    status: Duration,
    kilobytes: u64,
}

impl Row {
    fn total(&self) -> Duration {
        self.made.iter().sum()
    }
}

impl Scene {
    fn new() -> Scene {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let mut stream = commit("main", "", 0..FILES);
        stream += &commit("larger", "from refs/heads/main\n", FILES..MORE_FILES);
        let stream_file = env.path("stream");
        fs::write(&stream_file, stream).unwrap();
        let mut import = env.command("git");
        import.args(["fast-import", "--quiet", "--force"]).current_dir(repository.path());
        import.stdin(fs::File::open(&stream_file).unwrap());
        assert!(import.status().unwrap().success());
        let oid = |name| Oid::new(repository.git(["rev-parse", name]).trim()).unwrap();
        let (start, larger) = (oid("main"), oid("larger"));
        Scene { env, start, larger }
    }

    fn workspaces(&self, name: &str, layered: bool) -> Workspaces {
        let root = self.env.path("project");
        let place = LockPath::new(".trees").unwrap();
        let session = SessionId::new(session(name)).unwrap();
        let workspaces = Workspaces::new(&root.join(".git"), &root, &place, session).unwrap();
        workspaces.made_by(if layered {
            Making::Layers { blueflame: BLUEFLAME.into() }
        } else {
            Making::Checkouts
        })
    }

    fn order(&self, number: u32) -> Order {
        let task = TaskId::new(format!("task-{number:04}")).unwrap();
        let work = Work::Develop { task, attempt: 1 };
        let (config, _) = config::read(b"schema_version: 2\n").into_result().unwrap();
        Order {
            name: WorkspaceName::of(&work),
            branch: branch(&SessionId::new(session("x")).unwrap(), &work),
            start: self.start.clone(),
            author: Author { name: "Agent".into(), email: "agent@example.com".into() },
            restore: None,
            in_one_place: false,
            fittings: config.worktree,
        }
    }

    fn ours(&self, workspaces: &Workspaces) -> Row {
        settle();
        let mut made: Vec<Workspace> = Vec::new();
        let one =
            |number| timed(|| made.push(workspaces.create(&self.order(number)).unwrap().workspace));
        let took = (0..EACH).map(one).collect();
        let kilobytes = made.iter().map(|it| size(&it.path)).sum();
        let status = timed(|| {
            for workspace in &made {
                self.status(&workspace.path);
            }
        });
        Row { made: took, status, kilobytes }
    }

    fn linked(&self) -> Row {
        settle();
        let place = |number: u32| self.env.path(format!("linked-{number}"));
        let one = |number| {
            let mut git = self.env.command("git");
            git.current_dir(self.env.path("project")).args(["worktree", "add", "-q"]);
            git.args(["-b", &format!("branch-{number}")]).arg(place(number)).arg("main");
            timed(|| assert!(git.stderr(Stdio::null()).status().unwrap().success()))
        };
        let made = (0..EACH).map(one).collect();
        let kilobytes = (0..EACH).map(|number| size(&place(number))).sum();
        let status = timed(|| (0..EACH).for_each(|number| self.status(&place(number))));
        Row { made, status, kilobytes }
    }

    /// Asked as an agent asks: from inside.
    fn status(&self, place: &Path) {
        let mut git = self.env.command(BLUEFLAME);
        git.arg("__within").arg(place).args(["git", "-C"]).arg(place);
        let output = git.args(["status", "--porcelain"]).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }

    /// Finding out what was touched, against asking git for all that differs.
    fn touched(&self) {
        let workspaces = self.workspaces("touched", true);
        let order = Order { start: self.larger.clone(), ..self.order(0) };
        let workspace = workspaces.create(&order).unwrap().workspace;
        let mut shell = self.env.command(BLUEFLAME);
        shell.arg("__within").arg(&workspace.path).args(["sh", "-c"]);
        shell.arg("cd \"$0\" && echo x > new && echo x > d0/e0/f0 && rm d1/e0/f1");
        assert!(shell.arg(&workspace.path).status().unwrap().success());
        let (mut git, mut listing, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        self.in_status(&workspace);
        for _ in 0..ROUNDS {
            git.push(timed(|| self.in_status(&workspace)));
            listing.push(timed(|| {
                let listed = Layers::of(&workspace.path).unwrap().all_touched();
                assert_eq!(listed.len(), 3, "{listed:?}");
            }));
            whole.push(timed(|| {
                let harvest = workspaces.harvest(&workspace).unwrap();
                assert_eq!(harvest.uncommitted.len(), 3, "{:?}", harvest.uncommitted);
            }));
        }
        println!("three of {MORE_FILES} files touched, medians of {ROUNDS}");
        let git = show("git status --ignored -uall", &mut git, None);
        show("the list of what was touched", &mut listing, Some(git));
        show("all that is taken over of an agent's work", &mut whole, Some(git));
        workspaces.remove(&workspace).unwrap();
    }

    fn in_status(&self, workspace: &Workspace) {
        let mut git: Command = self.env.command(BLUEFLAME);
        git.arg("__within").arg(&workspace.path).args(["git", "-C"]).arg(&workspace.path);
        let output = git.args(["status", "--porcelain", "--ignored", "-uall"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    }

    fn crowd(&self) {
        let workspaces = self.workspaces("crowd", true);
        let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let took = timed(|| {
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        loop {
                            let number =
                                u32::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                            if number >= AT_ONCE {
                                break;
                            }
                            if let Err(error) = workspaces.create(&self.order(number)) {
                                println!("{error}");
                                failed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
        });
        println!(
            "{AT_ONCE} made by {THREADS} at once: {}, {} failures",
            seconds(took),
            failed.into_inner()
        );
    }
}

/// A commit of many files, as `git fast-import` reads it.
fn commit(branch: &str, from: &str, numbers: Range<u32>) -> String {
    let mut stream = format!("commit refs/heads/{branch}\ncommitter A <a@b> 1700000000 +0000\n");
    let _ = write!(stream, "data 0\n{from}");
    for number in numbers {
        let text = format!("file {number}\n{}", "a line of text\n".repeat(64));
        let (one, two) = (number % 40, number / 40 % 40);
        let _ = write!(
            stream,
            "M 100644 inline d{one}/e{two}/f{number}\ndata {}\n{text}\n",
            text.len()
        );
    }
    stream
}

/// Prints the middle of some times, their spread, and how much less it is than another.
fn show(name: &str, times: &mut [Duration], against: Option<Duration>) -> Duration {
    times.sort_unstable();
    let (least, middle, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let ratio = against.map(|it| format!(", ratio {:.0}", it.as_secs_f64() / middle.as_secs_f64()));
    println!(
        "{name:<42} {:>9.3} ms ({:.3} to {:.3}){}",
        ms(middle),
        ms(least),
        ms(most),
        ratio.unwrap_or_default()
    );
    middle
}

/// What was written before is on the disk, and does not get in the way.
fn settle() {
    rustix::fs::sync();
}

fn timed(what: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    what();
    begun.elapsed()
}

fn session(name: &str) -> String {
    let number: u32 = name.bytes().map(u32::from).sum();
    format!("ses-20260206-{number:06}")
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// What a directory takes on the disk.
fn size(path: &Path) -> u64 {
    let output = Command::new("du").arg("-sk").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).split('\t').next().unwrap().parse().unwrap()
}

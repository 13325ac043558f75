//! What it costs to give an agent a workspace of its own.
//!
//! Eight workspaces of a repository with many files are made in layers, and eight linked
//! work trees by `git worktree add`, in one run. Then git is asked for its status in each for the first time, what was made
//! is weighed, and what an agent has not committed is looked up. At the end many are
//! made at once.
//!
//! ```text
//! cargo bench -p blueflame --bench workspaces
//! ```

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on stops here")]
#![expect(clippy::print_stdout, reason = "a benchmark shows its figures")]

#[path = "parts/mod.rs"]
mod parts;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blueflame::workspace::{Layers, Making, Order, Workspace, WorkspaceName, Workspaces, branch};
use blueflame_core::config;
use blueflame_core::event::Work;
use blueflame_core::ids::{Oid, SessionId, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_testkit::TestEnv;
use parts::figures::Figures;

const BLUEFLAME: &str = env!("CARGO_BIN_EXE_blueflame");
const FILES: u32 = 50_000;
const MORE_FILES: u32 = 60_000;
const EACH: u32 = 8;
const AT_ONCE: u32 = 1000;
const ROUNDS: usize = 7;
const THREADS: usize = 16;

struct Scene {
    env: TestEnv,
    start: Oid,
    /// A commit with more files, for what was touched.
    larger: Oid,
}

fn main() {
    let scene = Scene::new();
    // Nothing is removed before all are measured: a file system makes files much more
    // slowly for a while after many were removed.
    let (_, making) = scene.first("first");
    let (session, looking) = scene.first("layered");
    let layered = scene.layered(&session);
    let linked = scene.linked();
    println!(
        "{FILES} files             one made (from, to)       first status (from, to)   KB each"
    );
    for (name, row) in [("git worktree add", &linked), ("layers", &layered)] {
        let (made, status) = (Figures::of(&row.made), Figures::of(&row.status));
        let name = format!("{} by {name}", row.made.len());
        println!("{name:<22} {made:>24} {status:>25} {:>8}", row.kilobytes);
    }
    for (checkout, once) in [
        ("is there", Duration::ZERO),
        ("was left by another session", looking),
        ("has to be made", making),
    ] {
        let (made, together) = (linked.made(), linked.made() + linked.status());
        println!(
            "{EACH} in layers, if the checkout beneath {checkout:<28} {} more: {:>5.1} times faster, {:.1} with the status",
            seconds(once),
            made.as_secs_f64() / (layered.made() + once).as_secs_f64(),
            together.as_secs_f64() / (layered.made() + layered.status() + once).as_secs_f64(),
        );
    }
    scene.touched();
    scene.crowd();
    scene.remove();
}

/// Each of some workspaces.
struct Row {
    made: Vec<Duration>,
    status: Vec<Duration>,
    kilobytes: u64,
}

impl Row {
    fn made(&self) -> Duration {
        self.made.iter().sum()
    }

    fn status(&self) -> Duration {
        self.status.iter().sum()
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

    fn workspaces(&self, name: &str) -> Workspaces {
        let root = self.env.path("project");
        let place = LockPath::new(".trees").unwrap();
        let session = SessionId::new(session(name)).unwrap();
        let workspaces = Workspaces::new(&root.join(".git"), &root, &place, session).unwrap();
        workspaces.made_by(Making::Layers { blueflame: BLUEFLAME.into() })
    }

    fn order(&self, number: u32) -> Order {
        let task = TaskId::new(format!("task-{number:04}")).unwrap();
        let work = Work::Develop { task, attempt: 1 };
        let (config, _) = config::read(b"schema_version: 2\n").into_result().unwrap();
        Order {
            name: WorkspaceName::of(&work),
            branch: branch(&SessionId::new(session("x")).unwrap(), &work),
            start: self.start.clone(),
            restore: None,
            in_one_place: false,
            fittings: config.worktree,
        }
    }

    /// The first workspace of a session, which sees to the checkout beneath.
    fn first(&self, session: &str) -> (Workspaces, Duration) {
        let workspaces = self.workspaces(session);
        let took = timed(|| drop(workspaces.create(&self.order(EACH)).unwrap()));
        (workspaces, took)
    }

    fn layered(&self, workspaces: &Workspaces) -> Row {
        settle();
        let mut places: Vec<PathBuf> = Vec::new();
        let one = |number| {
            let order = self.order(number);
            timed(|| places.push(workspaces.create(&order).unwrap().workspace.path))
        };
        let made = (0..EACH).map(one).collect();
        self.looked_at(made, &places)
    }

    fn linked(&self) -> Row {
        settle();
        let places: Vec<PathBuf> =
            (0..EACH).map(|number| self.env.path(format!("linked-{number}"))).collect();
        let one = |(number, place): (usize, &PathBuf)| {
            let mut git = self.env.command("git");
            git.current_dir(self.env.path("project")).args(["worktree", "add", "-q"]);
            git.args(["-b", &format!("branch-{number}")]).arg(place).arg("main");
            timed(|| assert!(git.stderr(Stdio::null()).status().unwrap().success()))
        };
        let made = places.iter().enumerate().map(one).collect();
        self.looked_at(made, &places)
    }

    fn looked_at(&self, made: Vec<Duration>, places: &[PathBuf]) -> Row {
        let kilobytes = places.iter().map(|it| size(it)).max().unwrap();
        let status = places.iter().map(|place| self.status(place)).collect();
        Row { made, status, kilobytes }
    }

    /// Asked as an agent asks: from inside, where it stays. So layers are put together
    /// within that time, and taken apart after it.
    fn status(&self, place: &Path) -> Duration {
        let mut agent = self.env.command(BLUEFLAME);
        agent.arg("__within").arg(place).args(["sh", "-c"]);
        agent.arg("git -C \"$0\" status --porcelain && echo clean; read stays").arg(place);
        agent.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut said = String::new();
        let begun = Instant::now();
        let mut agent = agent.spawn().unwrap();
        BufReader::new(agent.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        let took = begun.elapsed();
        assert_eq!(said, "clean\n");
        drop(agent.stdin.take());
        agent.wait().unwrap();
        took
    }

    /// Finding out what was touched, against asking git for all that differs.
    fn touched(&self) {
        let workspaces = self.workspaces("touched");
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
        let git = show("git status --ignored -uall", &git, None);
        show("the list of what was touched", &listing, Some(&git));
        show("all that is taken over of an agent's work", &whole, Some(&git));
        workspaces.remove(&workspace).unwrap();
    }

    fn in_status(&self, workspace: &Workspace) {
        let mut git: Command = self.env.command(BLUEFLAME);
        git.arg("__within").arg(&workspace.path).args(["git", "-C"]).arg(&workspace.path);
        let output = git.args(["status", "--porcelain", "--ignored", "-uall"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    }

    /// Half a million files take their time, also to be removed.
    fn remove(self) {
        let trees = fs::read_dir(self.env.path("project/.trees/.bases")).unwrap().flatten();
        let linked = (0..EACH).map(|number| self.env.path(format!("linked-{number}")));
        let places: Vec<PathBuf> = trees.map(|it| it.path()).chain(linked).collect();
        thread::scope(|scope| {
            for half in places.chunks(places.len().div_ceil(2)) {
                scope.spawn(|| half.iter().for_each(|it| drop(fs::remove_dir_all(it))));
            }
        });
    }

    fn crowd(&self) {
        let workspaces = self.workspaces("crowd");
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

/// Prints some times, and how much less they are than others.
fn show(name: &str, times: &[Duration], against: Option<&Figures>) -> Figures {
    let figures = Figures::of(times);
    let ratio = against.map(|it| format!(", ratio {:.0}", it.median() / figures.median()));
    println!("{name:<42} {figures}{}", ratio.unwrap_or_default());
    figures
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

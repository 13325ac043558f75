//! Which boundary this machine can put up, found out by trying.
//!
//! A child is started in a sandbox and tries what must not work: to read and
//! write files outside, to connect to sockets outside, to signal a process
//! outside. What it managed to do counts, not what the kernel claims to have.
//! It also tries what has to work, because a boundary that breaks ordinary work
//! is of no use.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blueflame_core::config::{self, ProcessLimit, SandboxMode};
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::Reach;
use serde::{Deserialize, Serialize};

use super::draw::{Occupant, draw};
use super::launch::PLAN;
use super::plan::{Boundary, Limits, Terms, Tier};
use super::sockets::{self, Sockets};
use super::toolchains;
use crate::failure::{Failure, Kind};

/// The boundary that the configuration wants, if the machine has it. A weaker one
/// is never taken without a word of the person's.
pub fn choose(config: &config::Sandbox) -> Result<Boundary, Failure> {
    let tier = match config.mode {
        SandboxMode::Auto | SandboxMode::Namespaces => Tier::Namespaces,
        SandboxMode::Landlock => Tier::Landlock,
        SandboxMode::Off => return Ok(Boundary::default()),
    };
    let countings: &[ProcessLimit] = match config.process_limit {
        ProcessLimit::Kernel => &[ProcessLimit::Kernel],
        ProcessLimit::Watched => &[ProcessLimit::Kernel, ProcessLimit::Watched],
    };
    let blueflame = std::env::current_exe().map_err(|error| Failure::new(Kind::Missing, error))?;
    let mut reasons = Vec::new();
    for counting in countings.iter().copied() {
        let boundary = Boundary { tier, counting };
        match holds(boundary, &blueflame) {
            Ok(()) => return without_sockets(config, boundary),
            Err(why) => reasons.push(format!("{}: {why}", tier.name())),
        }
    }
    reasons.dedup();
    let failure = Failure::new(
        Kind::Missing,
        format!("agents cannot be confined on this machine ({})", reasons.join("; ")),
    );
    let uncounted = reasons.iter().any(|why| why.contains(UNCOUNTED));
    Err(hints(config.mode, if uncounted { failure.hint(ACCEPT_WATCHING) } else { failure }))
}

/// Where namespaces are the boundary, a socket that is seen is a way out; the
/// broker of the other tier refuses it.
fn without_sockets(config: &config::Sandbox, boundary: Boundary) -> Result<Boundary, Failure> {
    let why = match sockets::look(&toolchains::named(config)) {
        _ if boundary.tier != Tier::Namespaces => return Ok(boundary),
        Sockets::None => return Ok(boundary),
        Sockets::At(socket) => {
            format!("`sandbox.read` shows agents the socket `{}`", socket.display())
        }
        Sockets::Unknown(place) => {
            format!("`sandbox.read`: `{}` is too large to look for sockets", place.display())
        }
    };
    let why = format!("{why}: who answers there would be reached from the sandbox");
    Err(Failure::new(Kind::Missing, why)
        .hint("name a directory without sockets under `sandbox.read` in blueflame.yaml"))
}

/// Names the step that fails where nobody counts processes of root.
pub(super) const UNCOUNTED: &str = "a limit on processes";

const ACCEPT_WATCHING: &str = "`sandbox: {process_limit: watched}` in blueflame.yaml accepts that \
    processes are only looked at, up to ten times a second; an ordinary user needs no such thing";

fn hints(mode: SandboxMode, failure: Failure) -> Failure {
    let failure = failure.hint(
        "namespaces for ordinary users may be switched off: look at \
         `sysctl kernel.unprivileged_userns_clone kernel.apparmor_restrict_unprivileged_userns \
         user.max_user_namespaces`",
    );
    let failure = match mode {
        SandboxMode::Landlock | SandboxMode::Off => failure,
        SandboxMode::Auto | SandboxMode::Namespaces => failure.hint(
            "`sandbox: {mode: landlock}` in blueflame.yaml accepts a weaker boundary, if the \
             kernel has it",
        ),
    };
    failure.hint(
        "`sandbox: {mode: off}` accepts none at all: for machines that are themselves a sandbox",
    )
}

/// Everything the child is told to try.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    /// A file of the person's.
    secret: PathBuf,
    /// A file of the workspace that nobody may write.
    kept: PathBuf,
    /// The settings of the workspace's git directory.
    settings: PathBuf,
    /// What may be written.
    free: PathBuf,
    /// Somebody who listens outside.
    port: u16,
    name: String,
    socket: PathBuf,
    /// A process outside.
    process: i32,
}

/// What the child managed to do, and what it did not.
type Done = BTreeMap<String, bool>;

const MUST_FAIL: [&str; 9] = [
    "read a file outside",
    "write a file outside",
    "write outside the locks",
    "write git settings",
    "connect to a port outside",
    "connect to an abstract socket outside",
    "connect to a socket outside",
    "signal a process outside",
    TOO_MANY,
];

const TOO_MANY: &str = "start more processes than it may";

/// How many processes there may be in a trial, and how many threads are tried.
/// Fewer than these the kernel cannot be told everywhere.
const FEW: u64 = 64;
const MANY: usize = 400;

/// Landlock cannot take a part out of what may be written. Nothing of ours acts
/// on these settings.
const NOT_BY_LANDLOCK: &str = "write git settings";

const MUST_WORK: [&str; 2] = ["write what is locked", "start a program"];

/// Tries a boundary. `Err` says what it lets through, or why it cannot be had.
pub fn holds(boundary: Boundary, blueflame: &Path) -> Result<(), String> {
    let done = trial(boundary, blueflame).map_err(|error| error.to_string())?;
    let went = |name: &&&str| done.get(**name).copied();
    let known = |name: &&&str| match **name {
        NOT_BY_LANDLOCK => boundary.tier == Tier::Landlock,
        TOO_MANY => boundary.counting == ProcessLimit::Watched,
        _ => false,
    };
    let through: Vec<&str> = MUST_FAIL
        .iter()
        .filter(|name| went(name) != Some(false) && !known(name))
        .copied()
        .collect();
    if !through.is_empty() {
        return Err(format!("it does not keep a program from this: {}", through.join(", ")));
    }
    let broken: Vec<&str> =
        MUST_WORK.iter().filter(|name| went(name) != Some(true)).copied().collect();
    if broken.is_empty() { Ok(()) } else { Err(format!("in it nobody can {}", broken.join(", "))) }
}

fn trial(boundary: Boundary, blueflame: &Path) -> io::Result<Done> {
    let place = tempfile::tempdir()?;
    let place = place.path().canonicalize()?;
    let [ground, home, tmp] = ["ground", "home", "tmp"].map(|name| place.join(name));
    for path in [&ground.join(".git"), &ground.join("free"), &home, &tmp] {
        fs::create_dir_all(path)?;
    }
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // A directory of that name is nobody else's, and so is the socket.
    let name = format!("blueflame-probe-{}", place.display());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    let orders = Orders {
        secret: place.join("secret"),
        kept: ground.join("kept"),
        settings: ground.join(".git/config"),
        free: ground.join("free/file"),
        port: port.local_addr()?.port(),
        name,
        socket: place.join("socket"),
        process: i32::try_from(std::process::id()).map_err(io::Error::other)?,
    };
    let _socket = UnixListener::bind(&orders.socket)?;
    for path in [&orders.secret, &orders.kept, &orders.settings] {
        fs::write(path, "")?;
    }
    let free = LockPath::new("free").map_err(io::Error::other)?;
    let occupant = Occupant {
        ground: &ground,
        reach: Reach::Only { locks: vec![free], scratch: Vec::new() },
        home: &home,
        tmp: &tmp,
        programs: vec![blueflame],
        files: Vec::new(),
        gateway: None,
    };
    let processes = match boundary.counting {
        ProcessLimit::Kernel => Some(FEW),
        // The watcher would end the trial.
        ProcessLimit::Watched => None,
    };
    let limits = Limits { processes, counting: boundary.counting, ..Limits::default() };
    let terms = Terms { tier: boundary.tier, limits, ..Terms::default() };
    let plan = draw(&terms, &occupant).map_err(io::Error::other)?;
    let output = Command::new(blueflame)
        .arg("__launch")
        .arg(std::process::id().to_string())
        .arg(blueflame)
        .arg("__probe")
        .arg(serde_json::to_string(&orders)?)
        .env_clear()
        .env(PLAN, serde_json::to_string(&plan)?)
        .current_dir(&ground)
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{}: {}", output.status, why.trim())));
    }
    let mut done: Done = serde_json::from_slice(&output.stdout)?;
    // A file of that name may have appeared inside; what counts is outside.
    for (name, path) in [
        ("write a file outside", &orders.secret),
        ("write outside the locks", &orders.kept),
        ("write git settings", &orders.settings),
    ] {
        done.insert(name.to_owned(), !fs::read(path)?.is_empty());
    }
    Ok(done)
}

/// `blueflame __probe`: tries everything, and says what worked.
pub fn try_everything(orders: &str) -> io::Result<String> {
    let orders: Orders = serde_json::from_str(orders)?;
    let append = |path: &Path| {
        let opened = fs::File::options().append(true).create(true).open(path);
        opened.and_then(|mut file| file.write_all(b"x")).is_ok()
    };
    let listens = SocketAddr::from_abstract_name(&orders.name)?;
    let process = rustix::process::Pid::from_raw(orders.process);
    let done = Done::from(
        [
            ("read a file outside", fs::read(&orders.secret).is_ok()),
            ("write a file outside", append(&orders.secret)),
            ("write outside the locks", append(&orders.kept)),
            ("write git settings", append(&orders.settings)),
            (
                "connect to a port outside",
                TcpStream::connect((Ipv4Addr::LOCALHOST, orders.port)).is_ok(),
            ),
            ("connect to an abstract socket outside", UnixStream::connect_addr(&listens).is_ok()),
            ("connect to a socket outside", UnixStream::connect(&orders.socket).is_ok()),
            (
                "signal a process outside",
                process.is_some_and(|it| rustix::process::test_kill_process(it).is_ok()),
            ),
            ("write what is locked", append(&orders.free)),
            (TOO_MANY, can_start(MANY)),
            ("start a program", Command::new("/bin/true").status().is_ok_and(|it| it.success())),
        ]
        .map(|(name, done)| (name.to_owned(), done)),
    );
    Ok(serde_json::to_string(&done)?)
}

/// Whether so many threads can be there at the same time.
fn can_start(many: usize) -> bool {
    let (over, waiting) = std::sync::mpsc::channel::<()>();
    let waiting = std::sync::Arc::new(std::sync::Mutex::new(waiting));
    let started: Vec<_> = (0..many)
        .map_while(|_| {
            let waiting = waiting.clone();
            let wait = move || drop(waiting.lock().map(|waiting| waiting.recv()));
            std::thread::Builder::new().stack_size(64 << 10).spawn(wait).ok()
        })
        .collect();
    drop(over);
    let all = started.len() == many;
    for thread in started {
        let _ = thread.join();
    }
    all
}

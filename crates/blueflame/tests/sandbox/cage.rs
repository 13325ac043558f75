//! A person's machine in small: a home with secrets, a repository with its
//! checkout, another agent's workspace, somebody who listens, and a workspace
//! for whoever tries to break out.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use blueflame::sandbox::{self, Boundary, Limits, Occupant, Terms, Tier};
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::Reach;
use blueflame_testkit::TestEnv;

pub const BLUEFLAME: &str = env!("CARGO_BIN_EXE_blueflame");

pub struct Cage {
    pub env: TestEnv,
    pub workspace: PathBuf,
    pub port: u16,
    pub abstract_name: String,
    pub terms: Terms,
    user: Option<User>,
    _listeners: (TcpListener, UnixListener, UnixListener),
}

/// An ordinary user's own copies of programs.
struct User {
    blueflame: PathBuf,
    poc: Option<PathBuf>,
}

/// What came of a command line.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    pub fn worked(&self) -> bool {
        self.code == Some(0)
    }
}

/// Limits that no attack can hurt anybody within.
pub fn tight() -> Limits {
    Limits {
        memory_mb: Some(1024),
        cpu_seconds: Some(60),
        file_mb: Some(50),
        open_files: Some(1024),
        processes: Some(256),
        ..Limits::default()
    }
}

/// Everything, for those who are not after the locks.
pub fn everything() -> Reach {
    Reach::Everything
}

/// What these cover.
pub fn only(locks: &[&str]) -> Reach {
    let locks = locks.iter().map(|lock| LockPath::new(lock).unwrap()).collect();
    Reach::Only { locks, scratch: vec![LockPath::new("target").unwrap()] }
}

impl Cage {
    pub fn new() -> Cage {
        let env = TestEnv::new();
        for (path, text) in [
            ("human/.ssh/id_ed25519", "SECRET KEY"),
            ("human/.aws/credentials", "SECRET"),
            ("human/.config/gh/hosts.yml", "SECRET"),
            ("human/.bashrc", ""),
            ("agents/a2/src/theirs.txt", "theirs"),
        ] {
            let path = env.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let repository = env.repository("repo");
        for (path, text) in
            [("README.md", "A project.\n"), ("src/a.txt", "a\n"), ("src/b.txt", "b\n")]
        {
            repository.write(path, text);
        }
        repository.git(["add", "."]);
        repository.git(["commit", "-q", "-m", "start"]);
        repository.write(".env", "TOKEN=SECRET\n");
        let workspace = env.path("agents/a1");
        let mut clone = env.command("git");
        clone.args(["clone", "-q", "--shared", "repo", "agents/a1"]);
        assert!(clone.status().unwrap().success());
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let unix = UnixListener::bind(env.path("human/listener")).unwrap();
        let root = env.root().file_name().unwrap().to_string_lossy().into_owned();
        let abstract_name = format!("canary-{root}");
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        let path = std::env::var("PATH").unwrap();
        let config = blueflame_core::config::read(b"schema_version: 2\n").config.unwrap();
        let boundary = Boundary { tier: Tier::Namespaces, ..Boundary::default() };
        let mut terms = sandbox::terms(&config.sandbox, boundary, &path);
        terms.limits = Limits { processes: Some(1024), ..Limits::default() };
        terms.read.extend(attempts().map(Path::to_owned));
        Cage {
            workspace,
            port: tcp.local_addr().unwrap().port(),
            abstract_name,
            terms,
            user: None,
            env,
            _listeners: (tcp, unix, hidden),
        }
    }

    /// The same for an ordinary user; `None` for who is one already, or cannot
    /// become one.
    pub fn of_ordinary_user() -> Option<Cage> {
        let root = rustix::process::geteuid().is_root();
        if !root || !Path::new("/usr/bin/setpriv").exists() {
            return None;
        }
        let mut cage = Cage::new();
        let config = blueflame_core::config::read(b"schema_version: 2\n").config.unwrap();
        let boundary = cage.terms.boundary();
        cage.terms = sandbox::terms(&config.sandbox, boundary, "/usr/bin:/bin");
        // What is in root's home is not theirs.
        cage.terms.variables.clear();
        cage.terms.in_home.clear();
        cage.terms.limits = Limits { processes: Some(1024), ..Limits::default() };
        let place = cage.env.path("programs");
        fs::create_dir(&place).unwrap();
        let blueflame = place.join("blueflame");
        fs::copy(BLUEFLAME, &blueflame).unwrap();
        let poc = attempts().map(|program| {
            fs::copy(program, place.join("attempts")).unwrap();
            place.join("attempts")
        });
        cage.terms.read = vec!["/usr".into()];
        cage.terms.read.extend(poc.clone());
        cage.user = Some(User { blueflame, poc });
        let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(cage.env.root()).status();
        assert!(owned.unwrap().success());
        Some(cage)
    }

    /// Everybody in each of the two tiers: root, if that is who we are, and an
    /// ordinary user, if there can be one.
    pub fn all_kinds() -> Vec<(&'static str, Cage)> {
        let mut cages = Vec::new();
        for tier in [Tier::Namespaces, Tier::Landlock] {
            cages.push((tier.name(), Cage::new().in_tier(tier)));
            if let Some(cage) = Cage::of_ordinary_user() {
                let name = match tier {
                    Tier::Landlock => "landlock, ordinary user",
                    Tier::Namespaces | Tier::Off => "namespaces, ordinary user",
                };
                cages.push((name, cage.in_tier(tier)));
            }
        }
        cages
    }

    pub fn in_tier(mut self, tier: Tier) -> Cage {
        self.terms.tier = tier;
        self
    }

    /// Placeholders as the corpus has them.
    pub fn filled(&self, command: &str) -> String {
        let at = |name: &str| self.env.path(name).display().to_string();
        let own = self.user.as_ref().and_then(|user| user.poc.as_deref());
        let poc =
            own.or(attempts()).map_or_else(|| "false".to_owned(), |it| it.display().to_string());
        [
            ("{WT}", self.workspace.display().to_string()),
            ("{REPO}", at("repo")),
            ("{GIT}", at("repo/.git")),
            ("{HUMAN}", at("human")),
            ("{OTHER}", at("agents/a2")),
            ("{HP}", self.port.to_string()),
            ("{HPID}", std::process::id().to_string()),
            ("{SOCK}", at("human/listener")),
            ("{NAME}", self.abstract_name.clone()),
            ("{POC}", poc),
        ]
        .iter()
        .fold(command.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    pub fn command(&self, reach: Reach, command: &str) -> Command {
        let (home, tmp) = (self.env.path("home"), self.env.path("tmp"));
        let occupant = Occupant {
            ground: &self.workspace,
            reach,
            home: &home,
            tmp: &tmp,
            programs: vec![self.blueflame()],
            files: Vec::new(),
            gateway: None,
        };
        let plan = sandbox::draw(&self.terms, &occupant).unwrap();
        let mut launcher = match &self.user {
            None => self.env.command(BLUEFLAME),
            Some(user) => {
                let mut setpriv = self.env.command("setpriv");
                let somebody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
                setpriv.args(somebody).arg(&user.blueflame);
                setpriv
            }
        };
        launcher
            .args(["__launch", &std::process::id().to_string(), "/bin/bash", "-c"])
            .arg(self.filled(command))
            .envs(&self.terms.variables)
            .env(sandbox::PLAN, serde_json::to_string(&plan).unwrap())
            .current_dir(&self.workspace)
            .stdin(Stdio::null());
        launcher
    }

    /// What comes of a command line in this tier.
    pub fn tried_in(&mut self, tier: Tier, command: &str) -> Outcome {
        let usual = std::mem::replace(&mut self.terms.tier, tier);
        let outcome = self.run(everything(), command);
        self.terms.tier = usual;
        outcome
    }

    /// Somebody else of the same user, in no sandbox.
    pub fn neighbour(&self) -> Command {
        let mut sleep = match &self.user {
            None => self.env.command("sleep"),
            Some(_) => {
                let mut setpriv = self.env.command("setpriv");
                setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sleep"]);
                setpriv
            }
        };
        sleep.arg("60").stdin(Stdio::null());
        sleep
    }

    /// The same, started by a shell that can be ended.
    pub fn started_by_another(&self, reach: Reach, command: &str) -> Command {
        const TELL: &str = "own=$1; shift; for word; do shift; [ \"$word\" = \"$own\" ] && word=$$; \
                            set -- \"$@\" \"$word\"; done; \"$@\" & wait";
        let direct = self.command(reach, command);
        let mut shell = self.env.command("/bin/sh");
        shell.args(["-c", TELL, "sh"]).arg(std::process::id().to_string());
        shell.arg(direct.get_program()).args(direct.get_args());
        let set = direct.get_envs().filter_map(|(name, value)| Some((name, value?)));
        shell.envs(set).current_dir(&self.workspace).stdin(Stdio::null());
        shell
    }

    pub fn is_of_root(&self) -> bool {
        self.user.is_none() && rustix::process::geteuid().is_root()
    }

    fn blueflame(&self) -> &Path {
        self.user.as_ref().map_or(Path::new(BLUEFLAME), |user| &user.blueflame)
    }

    pub fn run(&self, reach: Reach, command: &str) -> Outcome {
        let output = self.command(reach, command).output().unwrap();
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The program that makes attempts by single system calls; `None` without a C
/// compiler.
pub fn attempts() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let program = place.join(format!("attempts-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandbox/attempts.c");
        let done = Command::new("cc").args(["-w", "-o"]).arg(&program).arg(source).status();
        done.is_ok_and(|status| status.success()).then_some(program)
    });
    built.as_deref()
}

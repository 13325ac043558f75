//! What a sandboxed process finds: which files, with which rights, and how much
//! of the machine. It is data; the launcher puts it into force.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blueflame_core::config::{self, ProcessLimit};
use serde::{Deserialize, Serialize};

use super::door::Door;

/// How strong the boundary is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Namespaces of its own, with Landlock and a system call filter behind.
    Namespaces,
    /// Landlock and a system call filter, for machines without the former.
    Landlock,
    /// Nothing. Only if the configuration says so.
    #[default]
    Off,
}

impl Tier {
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Namespaces => "namespaces",
            Tier::Landlock => "landlock",
            Tier::Off => "off",
        }
    }

    /// What the person should know wherever work is shown; nothing to say about
    /// the strongest.
    pub const fn weakness(self) -> Option<&'static str> {
        match self {
            Tier::Namespaces => None,
            Tier::Landlock => Some(
                "a weaker sandbox (landlock): names of processes and files outside can be seen, modes \
                 and dates of your files changed, and a locked file opens its whole directory",
            ),
            Tier::Off => Some(
                "no sandbox (sandbox.mode: off): only tool calls are judged, programs can do \
                 what you can",
            ),
        }
    }
}

/// What was found to hold on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    pub tier: Tier,
    /// Who counts processes here.
    pub counting: ProcessLimit,
}

impl Boundary {
    /// What the person should know wherever work is shown.
    pub fn weaknesses(self) -> impl Iterator<Item = &'static str> {
        let uncounted = match self.counting {
            ProcessLimit::Kernel => None,
            ProcessLimit::Watched => Some(
                "processes that only a watcher counts (sandbox.process_limit: watched): a quick \
                 fork bomb outruns it for a moment",
            ),
        };
        self.tier.weakness().into_iter().chain(uncounted)
    }
}

/// What the configuration and the machine say, the same for all of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    pub tier: Tier,
    /// Seen besides what every system has: toolchains, and what the
    /// configuration names; absolute.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Seen in the private home, by the name there: caches of downloads.
    #[serde(default)]
    pub in_home: BTreeMap<PathBuf, PathBuf>,
    /// Where toolchains are, for those that look in the home.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    pub limits: Limits,
}

impl Terms {
    pub fn boundary(&self) -> Boundary {
        Boundary { tier: self.tier, counting: self.limits.counting }
    }
}

/// How much of the machine; `None` is as much as anybody gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Of all processes together.
    pub memory_mb: Option<u64>,
    /// Of each process.
    pub cpu_seconds: Option<u64>,
    pub file_mb: Option<u64>,
    pub open_files: Option<u64>,
    /// Of the disk, by all processes together.
    #[serde(default)]
    pub disk_mb: Option<u64>,
    /// Processes and threads at the same time.
    pub processes: Option<u64>,
    /// What to do where the kernel does not count those.
    #[serde(default)]
    pub counting: ProcessLimit,
}

/// More than compilers and test runners start, and fewer than hurt.
const MOST_PROCESSES: u64 = 1024;

impl Limits {
    /// What an agent is held to.
    pub fn of_agents(config: &config::Sandbox, counting: ProcessLimit) -> Limits {
        Limits {
            memory_mb: Some(config.max_memory_mb),
            cpu_seconds: Some(config.max_cpu_seconds),
            file_mb: Some(config.max_file_size_mb),
            open_files: Some(config.max_open_files),
            disk_mb: Some(config.max_disk_mb),
            processes: Some(MOST_PROCESSES),
            counting,
        }
    }

    /// What the project's own commands are held to, which build and test the
    /// whole of it: several compilers at once, programs of any size, a process
    /// for each test. Time is limited by their deadline.
    #[must_use]
    pub fn of_commands(self) -> Limits {
        let fourfold = |most: Option<u64>| most.map(|most| most.saturating_mul(4));
        Limits {
            memory_mb: fourfold(self.memory_mb),
            processes: fourfold(self.processes),
            cpu_seconds: None,
            file_mb: None,
            ..self
        }
    }
}

/// Everything the launcher has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub tier: Tier,
    /// What is where, from the top down.
    pub views: BTreeMap<PathBuf, View>,
    /// Directories in which names may change while all that is there now stays
    /// as it is, except for these.
    pub open: BTreeMap<PathBuf, Vec<PathBuf>>,
    pub home: PathBuf,
    /// Where its gateway listens.
    pub gateway: Option<PathBuf>,
    /// The same, for a program that knows no Unix sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<Door>,
    pub limits: Limits,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// A file or directory of the machine, to look at.
    Read(PathBuf),
    /// The same, to write.
    Write(PathBuf),
    /// A symbolic link to this.
    Link(PathBuf),
    /// An empty directory in memory, of at most so many MiB.
    Fresh(u32),
}

impl Plan {
    pub(super) fn see(&mut self, path: &Path) {
        self.place(path, View::Read);
    }

    pub(super) fn write(&mut self, path: &Path) {
        self.place(path, View::Write);
    }

    /// At its name, and where that leads if links are in between: programs find
    /// out and use either.
    fn place(&mut self, path: &Path, view: impl Fn(PathBuf) -> View) {
        if let Ok(real) = path.canonicalize() {
            self.views.insert(path.to_owned(), view(real.clone()));
            self.views.insert(real.clone(), view(real));
        }
    }

    /// Whether something is seen at this path already, by a directory above it.
    pub(super) fn shows(&self, path: &Path) -> bool {
        let real = |view: &View| matches!(view, View::Read(_) | View::Write(_));
        path.ancestors().any(|above| self.views.get(above).is_some_and(real))
    }
}

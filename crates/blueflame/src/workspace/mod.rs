//! Workspaces: for each agent run a git repository and a work tree of its own.
//!
//! A workspace borrows the objects of the person's repository and shares
//! nothing else with it: no references, no configuration, no hooks. Whatever an
//! agent does to it, the person's repository stays as it is. What an agent
//! committed is taken over from the person's side ([`Workspaces::harvest`]), as
//! from a stranger; git is never run with the agent's configuration.
//!
//! In the person's repository only `refs/blueflame/` and a line of
//! `info/exclude` change. Their work tree, index, branches and configuration
//! are never touched.
//!
//! Where the kernel can lay directories over one another, a workspace is a thin
//! layer over a checkout that others share ([`Layers`]); elsewhere it is a checkout
//! of its own. All of it is synchronous and safe to use from several
//! threads.

mod as_committed;
mod bases;
mod bounds;
mod bring;
mod complaint;
mod create;
pub mod enter;
mod error;
mod fittings;
mod git_dir;
mod harvest;
mod layers;
mod left_file;
mod making;
mod name;
mod plain;
mod remove;
mod seal;
mod space;
mod starting_point;
mod subvolume;
mod uncommitted;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use blueflame_core::config;
use blueflame_core::ids::{Oid, SessionId};
use blueflame_core::lock_path::LockPath;

pub use bases::{remove_base, unused_bases};
pub use error::{HarvestError, Unsupported, WorkspaceError};
pub use fittings::{Fitter, Floor, LeftOut, Reason};
pub use harvest::Harvest;
pub use layers::Layers;
pub use making::Making;
pub use name::{WorkspaceName, branch};
pub use remove::{Leftover, leftovers, remove_leftover, remove_tree};
pub use starting_point::StartPoint;

use crate::attempt::spec::Author;
use crate::exclude;
use crate::git::Call;
use crate::git::objects::Objects;
use crate::git::own_refs::OwnRefs;
use error::failed;
use plain::PlainRepository;
use space::Survey;

/// Room that is left on the disk unless somebody says otherwise.
const SPARE_BYTES: u64 = 512 * 1024 * 1024;

/// The workspaces of one session.
#[derive(Debug)]
pub struct Workspaces {
    /// The git directory that all work trees of the person share.
    common: PathBuf,
    /// The person's checkout.
    checkout: PathBuf,
    /// Where the workspaces of all sessions are.
    root: PathBuf,
    session: SessionId,
    /// Whom agents commit as.
    author: Author,
    plain: PlainRepository,
    /// What the person's repository has.
    objects: Objects,
    /// What we keep in it.
    refs: OwnRefs,
    spare_bytes: u64,
    surveys: Mutex<BTreeMap<Oid, Survey>>,
    making: Making,
    /// Checkouts beneath workspaces that were looked over. Held while one is made.
    bases: Mutex<BTreeSet<String>>,
}

/// What a workspace is to be.
#[derive(Clone, Debug)]
pub struct Order {
    pub name: WorkspaceName,
    /// The one branch in it.
    pub branch: String,
    pub start: Oid,
    pub restore: Option<Restore>,
    /// Whether its files are looked at from outside as well, and have to be in one
    /// place for that.
    pub in_one_place: bool,
    /// What is in it besides the files of the commit.
    pub fittings: config::Worktree,
}

/// Unfinished work of an earlier attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// A git directory of our own that has it.
    pub git_dir: PathBuf,
    /// A snapshot: a commit whose parent is what the work started from.
    pub commit: Oid,
}

/// A place for one agent run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    pub name: WorkspaceName,
    /// Its work tree; absolute.
    pub path: PathBuf,
    pub branch: String,
    pub start: Oid,
    pub author: Author,
    /// What is no part of the work: copies, shared directories, build output.
    pub hidden: Vec<LockPath>,
    /// Commands to be run in it before the agent starts, in the sandbox.
    pub prepare: Vec<String>,
}

/// A workspace that was just made, and what is to be known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    pub workspace: Workspace,
    pub left_out: Vec<LeftOut>,
    /// Files where the restored work and the new start disagree; both versions
    /// are in them, between markers.
    pub conflicts: Vec<String>,
}

impl Workspaces {
    /// For a repository, a checkout of it, the place of workspaces in the
    /// checkout, and a session. Has git ignore that place.
    pub fn new(
        common: &Path,
        checkout: &Path,
        place: &LockPath,
        session: SessionId,
    ) -> Result<Self, WorkspaceError> {
        let common = fs::canonicalize(common).map_err(failed("find", common))?;
        let checkout = fs::canonicalize(checkout).map_err(failed("find", checkout))?;
        if common.as_os_str().as_encoded_bytes().contains(&b'\n') {
            return Err(Unsupported::LineBreak { path: common }.into());
        }
        check_supported(&common)?;
        let plain = PlainRepository::of(&common)?;
        exclude::add(&common, [format!("{}/", exclude::pattern(place)).as_str()])?;
        Ok(Workspaces {
            root: checkout.join(place.as_str()),
            objects: Objects::of(&common),
            refs: OwnRefs::of(&common),
            common,
            checkout,
            session,
            author: Author::program(),
            plain,
            spare_bytes: SPARE_BYTES,
            surveys: Mutex::default(),
            making: Making::Checkouts,
            bases: Mutex::default(),
        })
    }

    /// What the person's repository has, harvests included.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// How many bytes must stay free on the disk.
    #[must_use]
    pub fn keep_free(mut self, bytes: u64) -> Self {
        self.spare_bytes = bytes;
        self
    }

    /// Has agents commit as somebody; as the program, unless this is said.
    #[must_use]
    pub fn committing_as(mut self, author: Author) -> Self {
        self.author = author;
        self
    }

    /// Makes them in this way from here on.
    #[must_use]
    pub fn made_by(mut self, making: Making) -> Self {
        self.making = making;
        self
    }

    /// The workspace that an order leads to, whether or not it is there.
    pub fn of(&self, order: &Order) -> Workspace {
        let fittings = &order.fittings;
        let hidden = [&fittings.copy, &fittings.share, &fittings.scratch];
        Workspace {
            name: order.name.clone(),
            path: self.path_of(&order.name),
            branch: order.branch.clone(),
            start: order.start.clone(),
            author: self.author.clone(),
            hidden: hidden.into_iter().flatten().cloned().collect(),
            prepare: fittings.prepare.clone(),
        }
    }

    /// Puts into any directory what workspaces have besides their commit.
    pub fn fitter(&self) -> Fitter {
        Fitter {
            checkout: self.checkout.clone(),
            root: self.root.clone(),
            common: self.common.clone(),
        }
    }

    fn path_of(&self, name: &WorkspaceName) -> PathBuf {
        self.root.join(self.session.as_str()).join(name.as_str())
    }

    /// The reference in the person's repository that keeps a workspace's start.
    pub fn base_ref(&self, name: &WorkspaceName) -> String {
        self.reference("base", name)
    }

    /// The reference that keeps what was harvested from a workspace.
    pub fn attempt_ref(&self, name: &WorkspaceName) -> String {
        self.reference("attempts", name)
    }

    /// The reference that keeps what was committed beside the branch of a
    /// workspace.
    fn elsewhere_ref(&self, name: &WorkspaceName, number: usize) -> String {
        format!("{}/{number}", self.reference("elsewhere", name))
    }

    /// The reference that keeps unfinished work that was put into a workspace.
    fn restored_ref(&self, name: &WorkspaceName) -> String {
        self.reference("restored", name)
    }

    fn reference(&self, kind: &str, name: &WorkspaceName) -> String {
        format!("refs/blueflame/{}/{kind}/{name}", self.session)
    }

    /// Git in the person's repository, for references and nothing else.
    fn person(&self) -> Call {
        Call::plain(&self.common)
    }

    /// The submodules of a commit. Their directories are empty in workspaces.
    pub fn submodules(&self, commit: &Oid) -> Result<Vec<String>, WorkspaceError> {
        Ok(self.survey(commit)?.submodules)
    }

    fn survey(&self, start: &Oid) -> Result<Survey, WorkspaceError> {
        let known = || self.surveys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(survey) = known().get(start) {
            return Ok(survey.clone());
        }
        let survey = space::survey(&self.plain, start)?;
        known().insert(start.clone(), survey.clone());
        Ok(survey)
    }
}

impl Workspace {
    /// Where its repository is, as seen from outside.
    pub fn repository(&self) -> PathBuf {
        Layers::of(&self.path).map_or_else(|| self.path.clone(), |layers| layers.changes())
    }

    /// Where its files are in one place, as seen from outside. In layers, those are
    /// the files of its start, if it was ordered so.
    pub fn files(&self) -> PathBuf {
        Layers::of(&self.path).map_or_else(|| self.path.clone(), |layers| layers.base())
    }

    /// Where a file of it is, as seen from outside.
    pub fn file(&self, path: &Path) -> Option<PathBuf> {
        match Layers::of(&self.path) {
            Some(layers) => layers.find(path),
            None => Some(self.path.join(path)),
        }
    }

    fn git_dir(&self) -> PathBuf {
        self.repository().join(".git")
    }
}

/// Refuses repositories in which a workspace would not be what it seems.
fn check_supported(common: &Path) -> Result<(), WorkspaceError> {
    // Read as a file: git would stumble over what is looked for here.
    let call = Call::plain_without_git_dir(Path::new("/")).words(&["config", "--file"]);
    let call = call.word(common.join("config")).words(&["--includes", "-z", "--list"]);
    for setting in call.bytes()?.split(|byte| *byte == 0) {
        let setting = String::from_utf8_lossy(setting);
        let (key, value) = setting.split_once('\n').unwrap_or((&setting, "true"));
        if key == "core.worktree" {
            let path = PathBuf::from(value);
            return Err(Unsupported::CoreWorktree { path }.into());
        }
        let promisor = key.starts_with("remote.") && key.ends_with(".promisor") && value == "true";
        if key == "extensions.partialclone" || promisor {
            return Err(Unsupported::PartialClone.into());
        }
    }
    Ok(())
}

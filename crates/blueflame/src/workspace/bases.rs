//! Checkouts that workspaces are laid over: one for a commit, shared by all that
//! start from it or from something close to it.
//!
//! Nobody writes one after it was made, and agents never see it as such. It goes
//! when no workspace is laid over it and a newer one has taken its place.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blueflame_core::ids::Oid;

use super::error::{WorkspaceError, failed};
use super::layers::{self, BASE, Layers};
use super::{Making, Workspaces, git_dir, remove, seal, space, subvolume};
use crate::git::objects::Bounded;

/// A large tree on a busy disk takes its time.
const CHECKOUT_DEADLINE: Duration = Duration::from_secs(300);

/// The directory of all of them, beside those of the sessions.
const PLACE: &str = ".bases";

/// What the file with the mark of a checkout is called besides the checkout's name.
const SEAL: &str = ".seal";

/// Up to so many files that differ are written into each workspace; for more of
/// them a checkout of its own is worth its while.
const FEW: usize = 1000;

/// How many of the checkouts that are there are compared.
const COMPARED: usize = 4;

/// For more files than this it is worth to wait for the end of a second once, so
/// that git need not read them again in every workspace.
const MANY: usize = 10_000;

/// A checkout, and what it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub commit: Oid,
    /// Its name among the others.
    name: String,
}

impl Workspaces {
    /// Lays a workspace out over a checkout of its start, or, unless it has to be
    /// exactly that, of a commit that differs from it in few files. One is made if
    /// there is none.
    pub(super) fn lay_over_a_base(
        &self,
        place: &Path,
        start: &Oid,
        exactly: bool,
    ) -> Result<(Layers, Base), WorkspaceError> {
        // Until the workspace has its link, nobody knows that the checkout is used.
        let mut checked = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.base_for(&mut checked, start, exactly)?;
        let beneath = Path::new("../..").join(PLACE).join(&base.name);
        let layers = layers::lay_out(place, &beneath).map_err(failed("lay out", place))?;
        Ok((layers, base))
    }

    /// Copies such a checkout as a whole.
    pub(super) fn copy_a_base(
        &self,
        place: &Path,
        start: &Oid,
        exactly: bool,
    ) -> Result<Base, WorkspaceError> {
        let mut checked = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.base_for(&mut checked, start, exactly)?;
        // The directory around it goes with the last workspace, perhaps just now.
        let around = place.parent().unwrap_or(&self.root);
        fs::create_dir_all(around).map_err(failed("make", around))?;
        let from = self.root.join(PLACE).join(&base.name);
        subvolume::copy(&from, place).map_err(failed("copy", &from))?;
        Ok(base)
    }

    fn base_for(
        &self,
        checked: &mut BTreeSet<String>,
        start: &Oid,
        exactly: bool,
    ) -> Result<Base, WorkspaceError> {
        let place = self.root.join(PLACE);
        let mut there = bases(&place)?;
        there.sort_by_key(|base| base.commit != *start);
        for base in there.into_iter().take(COMPARED) {
            // One made for layers is no good for copies.
            if self.making == Making::Copies && !subvolume::is_one(&place.join(&base.name)) {
                continue;
            }
            if base.commit != *start && (exactly || !self.is_close(&base.commit, start)?) {
                continue;
            }
            // One that another session left may have been altered since.
            if checked.contains(&base.name) || self.is_whole(&place.join(&base.name)) {
                checked.insert(base.name.clone());
                return Ok(base);
            }
        }
        let made = self.check_out(&place, start)?;
        checked.insert(made.name.clone());
        let path = place.join(&made.name);
        let others = unused_bases(&self.root)?.into_iter();
        for other in others.filter(|other| *other != path && *other != seal_of(&path)) {
            remove_base(&other).map_err(failed("remove", &other))?;
        }
        Ok(made)
    }

    fn is_close(&self, base: &Oid, start: &Oid) -> Result<bool, WorkspaceError> {
        // The commit of an old one may be gone.
        let known = self.objects.about(&[format!("{base}^{{tree}}")])?;
        if known.iter().any(Option::is_none) {
            return Ok(false);
        }
        let differing = self.objects.differing(base.as_str(), start.as_str(), FEW)?;
        Ok(matches!(differing, Bounded::Whole(_)))
    }

    fn check_out(&self, place: &Path, commit: &Oid) -> Result<Base, WorkspaceError> {
        fs::create_dir_all(place).map_err(failed("make", place))?;
        let survey = self.survey(commit)?;
        space::check(place, survey.bytes, self.spare_bytes)?;
        let staging = place.join(format!(".{commit}.new"));
        remove::remove_tree(&staging).map_err(failed("remove", &staging))?;
        if self.making == Making::Copies {
            subvolume::create(&staging).map_err(failed("make", &staging))?;
        }
        git_dir::make_common(&staging.join(".git"), &self.author, &self.plain)?;
        let checkout = self
            .plain
            .git()
            .work_tree(&staging)
            .variable("GIT_INDEX_FILE", index(&staging))
            .deadline(CHECKOUT_DEADLINE)
            .words(&["read-tree", "--reset", "-u", commit.as_str()]);
        if let Err(error) = checkout.done() {
            // What is left of it does no harm, but takes room.
            let _ = remove::remove_tree(&staging);
            return Err(error.into());
        }
        if survey.files > MANY {
            let index = index(&staging);
            outlast_its_second(&index).map_err(failed("write", &index))?;
        }
        // Another of the same commit may be there, altered and still in use.
        let names = (1..=u32::MAX).map(|number| format!("{commit}-{number}"));
        let name = names.into_iter().find(|name| fs::symlink_metadata(place.join(name)).is_err());
        let name = name.unwrap_or_default();
        let path = place.join(&name);
        let seal = seal_of(&path);
        let sealed =
            seal::of(&staging, &self.purpose(&name)).and_then(|mark| fs::write(&seal, mark));
        // One that has its name has its seal.
        if let Err(error) = sealed.and_then(|()| fs::rename(&staging, &path)) {
            let _ = fs::remove_file(&seal);
            let _ = remove::remove_tree(&staging);
            return Err(failed("make", &path)(error));
        }
        Ok(Base { commit: commit.clone(), name })
    }

    /// Whether a checkout is as it was when it was made, and for the likes of us.
    fn is_whole(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        fs::read_to_string(seal_of(path))
            .is_ok_and(|mark| seal::of(path, &self.purpose(&name)).is_ok_and(|it| it == mark))
    }

    /// What a checkout of this name is for: workspaces in which git goes by these files.
    fn purpose(&self, name: &str) -> Vec<u8> {
        let mut purpose = name.as_bytes().to_vec();
        for (name, bytes) in git_dir::steering(&self.author, &self.plain) {
            purpose.extend([b"\0", name.as_bytes(), b"\0", &bytes].concat());
        }
        purpose
    }

    /// Removes those that no workspace is laid over any more.
    pub fn remove_unused_bases(&self) -> Result<(), WorkspaceError> {
        let mut checked = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        checked.clear();
        for path in unused_bases(&self.root)? {
            remove_base(&path).map_err(failed("remove", &path))?;
        }
        // Only if nothing is left in it.
        let _ = fs::remove_dir(self.root.join(PLACE));
        Ok(())
    }
}

/// The checkouts in a place of workspaces that none is laid over, finished or not. The
/// seals of checkouts come before them: one without is not used any more, so it does not
/// matter when somebody is stopped in the middle of removing it.
pub fn unused_bases(root: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let (place, used) = (root.join(PLACE), in_use(root)?);
    let mut unused = Vec::new();
    let entries = match fs::read_dir(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(unused),
        entries => entries.map_err(failed("list", &place))?,
    };
    for entry in entries {
        let entry = entry.map_err(failed("list", &place))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !used.contains(name.strip_suffix(SEAL).unwrap_or(&name)) {
            unused.push(entry.path());
        }
    }
    unused.sort_by_key(|path| !path.as_os_str().as_encoded_bytes().ends_with(SEAL.as_bytes()));
    Ok(unused)
}

/// Removes one, or a seal. It loses its seal and its name first.
pub fn remove_base(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        remove::remove_tree(&seal_of(path))?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let nameless = path.with_file_name(format!(".{name}.gone"));
    remove::remove_tree(&nameless)?;
    match fs::rename(path, &nameless) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => remove::remove_tree(&nameless),
    }
}

/// The file beside a checkout that it is known again by.
fn seal_of(base: &Path) -> PathBuf {
    let name = base.file_name().unwrap_or_default().to_string_lossy();
    base.with_file_name(format!("{name}{SEAL}"))
}

/// Makes an index younger than all files in it. Those that seem to be of the same
/// second git reads again in every workspace, as one may have been written after the
/// index was; here none was, and when agents begin that second is over. What is left to
/// tell a file that was written from one that was not is its size and its second, as
/// for every older file. (What an agent leaves is found by what it says, not by that.)
fn outlast_its_second(index: &Path) -> io::Result<()> {
    let index = fs::File::options().write(true).open(index)?;
    let into_it = index.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    // Clocks of file systems are a little late.
    let over = Duration::from_secs(into_it.as_secs() + 1) + Duration::from_millis(20);
    let now = UNIX_EPOCH.elapsed().unwrap_or_default();
    thread::sleep(over.saturating_sub(now).min(Duration::from_secs(2)));
    index.set_modified(SystemTime::now())
}

/// The checkouts that workspaces are laid over.
fn in_use(root: &Path) -> Result<BTreeSet<String>, WorkspaceError> {
    let mut names = BTreeSet::new();
    for leftover in remove::leftovers(root)? {
        let base = fs::read_link(leftover.path.join(BASE)).ok();
        names.extend(
            base.as_deref().and_then(Path::file_name).map(|it| it.to_string_lossy().into_owned()),
        );
    }
    Ok(names)
}

/// Those that were finished.
fn bases(place: &Path) -> Result<Vec<Base>, WorkspaceError> {
    let directories = remove::directories(place)?.into_iter();
    let found = directories.filter_map(|(name, _)| Some(Base { commit: commit_of(&name)?, name }));
    Ok(found.collect())
}

/// What a checkout of this name is of.
fn commit_of(name: &str) -> Option<Oid> {
    let (commit, _) = name.split_once('-')?;
    Oid::new(commit).ok()
}

/// What the checkout beneath a workspace is of.
pub(super) fn beneath(layers: &Layers) -> Option<Oid> {
    let base = fs::read_link(layers.base()).ok()?;
    commit_of(&base.file_name()?.to_string_lossy())
}

fn index(base: &Path) -> PathBuf {
    base.join(".git/index")
}

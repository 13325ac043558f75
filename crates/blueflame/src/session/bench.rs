//! Where the project's own commands try a commit: a clean checkout with what
//! `worktree` adds to every working copy, and a home and a directory for
//! temporary files that nobody used before.
//!
//! It lies outside of the person's repository: tools that look for their files
//! in the directories above find none of the person's. A link in the directory
//! of the session leads there, so that what a killed orchestrator left is found.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blueflame_core::ids::Oid;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::checking::surroundings;
use super::post::Trouble;
use super::site::Site;
use crate::checks::acceptance;
use crate::checks::checkout::CleanCheckout;
use crate::checks::command::{CommandExit, CommandResult, Surroundings};
use crate::sandbox;
use crate::workspace::{Floor, remove_tree};

/// How the names of these places begin.
const PREFIX: &str = "blueflame-check-";

/// How long one command of `worktree.prepare` may take.
pub const PREPARE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A place to try one commit in; it is gone when this is dropped.
#[derive(Debug)]
pub struct Bench {
    checkout: CleanCheckout,
    around: Surroundings,
    /// Why the checkout could not be made ready; then nothing is tried.
    not_ready: Option<CommandResult>,
    _place: Place,
}

impl Bench {
    /// Checks a commit out and makes it ready as a working copy is.
    pub async fn of(
        site: &Site,
        commit: &Oid,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Bench, Trouble> {
        let theirs = |error: &dyn Display| Trouble::Theirs(format!("no place for checks: {error}"));
        let place = Place::new(site).map_err(|error| theirs(&error))?;
        let checkout = CleanCheckout::of(&site.common, commit, &place.directory)
            .await
            .map_err(|error| theirs(&error))?;
        let around = Surroundings {
            home: place.directory.join("home"),
            tmp: place.directory.join("tmp"),
            variables: sandbox::stores(site.sandbox.tier),
            ..surroundings(site).map_err(|error| theirs(&error))?
        };
        let mut bench = Bench { checkout, around, not_ready: None, _place: place };
        bench.not_ready = bench.make_ready(site, stop).await?;
        Ok(bench)
    }

    /// What went wrong. It may well be the doing of the commit: it can put
    /// something in the way, or break what `worktree.prepare` runs.
    async fn make_ready(
        &self,
        site: &Site,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<CommandResult>, String> {
        let (fitter, fittings) = (site.workspaces.fitter(), site.config.worktree.clone());
        let directory = self.checkout.directory().to_owned();
        let furnished =
            spawn_blocking(move || fitter.furnish(&Floor::Plain(&directory), &fittings)).await;
        if let Err(error) = furnished.map_err(|error| error.to_string())? {
            return Ok(Some(CommandResult {
                command: "worktree.copy and worktree.share".to_owned(),
                exit: CommandExit::NotStarted { why: error.to_string() },
                output: String::new(),
                took: Duration::ZERO,
            }));
        }
        let commands = &site.config.worktree.prepare;
        let results = acceptance::run_acceptance(
            &self.checkout,
            commands,
            PREPARE_TIMEOUT,
            &self.around,
            stop,
        )
        .await;
        Ok(results.into_iter().find(|result| !result.passed()))
    }

    /// Runs commands one after the other. If the checkout could not be made
    /// ready, that is the only result. What fails on a full disk says nothing about
    /// the commit.
    pub async fn run(
        &self,
        commands: &[String],
        timeout: Duration,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Vec<CommandResult>, Trouble> {
        let results = match &self.not_ready {
            Some(result) => vec![result.clone()],
            None => {
                acceptance::run_acceptance(&self.checkout, commands, timeout, &self.around, stop)
                    .await
            }
        };
        match results.iter().find_map(|result| self.lacks_room(result)) {
            Some(reason) => Err(Trouble::Theirs(reason)),
            None => Ok(results),
        }
    }

    fn lacks_room(&self, result: &CommandResult) -> Option<String> {
        result.lacks_room(&[self.checkout.directory(), &self.around.home, &self.around.tmp])
    }
}

/// A directory of one's own outside of the repository, and the link to it.
#[derive(Debug)]
struct Place {
    directory: PathBuf,
    link: PathBuf,
}

impl Place {
    fn new(site: &Site) -> io::Result<Place> {
        let links = site.checkouts();
        fs::create_dir_all(&links)?;
        let inside = [&site.repository, &site.common];
        // The usual directory for temporary files may be in memory, which builds
        // can fill.
        let named = std::env::var_os("TMPDIR").map(PathBuf::from);
        let candidates = named.into_iter().chain(["/var/tmp".into(), "/tmp".into()]);
        let root = outside(inside, candidates)?;
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root)?.keep();
        let link = links.join(directory.file_name().unwrap_or_default());
        let place = Place { directory, link };
        symlink(&place.directory, &place.link)?;
        for name in ["home", "tmp"] {
            fs::create_dir(place.directory.join(name))?;
        }
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed now is found by its link.
        if remove_tree(&self.directory).is_ok() {
            let _ = fs::remove_file(&self.link);
        }
    }
}

/// The first directory that is in none of the others.
fn outside(
    inside: [&PathBuf; 2],
    candidates: impl IntoIterator<Item = PathBuf>,
) -> io::Result<PathBuf> {
    let inside = inside.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    let mut found = candidates.into_iter().filter_map(|path| path.canonicalize().ok());
    let fits = |path: &PathBuf| {
        path.is_dir() && !inside.iter().any(|repository| path.starts_with(repository))
    };
    found
        .find(fits)
        .ok_or_else(|| io::Error::other("TMPDIR has to name a directory outside of the repository"))
}

/// The places that links in a directory lead to, left by orchestrators that were
/// killed.
pub fn left_behind(links: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(links).into_iter().flatten().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    // Whatever else a link says, only places of this kind are ever removed.
    let is_place = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
    };
    targets.filter(|path| path.is_absolute() && is_place(path)).collect()
}

/// Removes everything that was left, with the links to it.
pub fn clear(links: &Path) -> io::Result<()> {
    for place in left_behind(links) {
        remove_tree(&place)?;
    }
    remove_tree(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_never_in_the_repository() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().canonicalize().unwrap().join(name);
        for name in ["project/.git", "project/tmp", "tmp"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        symlink(path("project/tmp"), path("linked")).unwrap();
        let (repository, common) = (path("project"), path("project/.git"));
        let chosen = |names: &[&str]| {
            let candidates: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
            outside([&repository, &common], candidates).ok()
        };
        assert_eq!(chosen(&["project/tmp", "linked", "missing", "tmp"]), Some(path("tmp")));
        assert_eq!(chosen(&["project/tmp", "linked"]), None);
    }

    #[test]
    fn only_places_of_checks_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let (place, other) = (root.path().join("blueflame-check-x"), root.path().join("other"));
        let links = root.path().join("links");
        for path in [&place, &other, &links] {
            fs::create_dir(path).unwrap();
        }
        for path in [&place, &other] {
            symlink(path, links.join(path.file_name().unwrap())).unwrap();
        }
        assert_eq!(left_behind(&links), std::slice::from_ref(&place));
        clear(&links).unwrap();
        assert_eq!([&place, &other, &links].map(|it| it.exists()), [false, true, false]);
    }
}

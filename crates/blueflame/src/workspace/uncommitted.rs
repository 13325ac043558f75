//! What an agent changed and never committed.
//!
//! The work tree is compared with an index of our own, through a git directory
//! of our own. Submodules are left out: to look into one, git would run with
//! the configuration that it finds there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use blueflame_core::ids::Oid;

use super::error::HarvestError;
use super::plain::PlainRepository;
use super::{Layers, Workspace};
use crate::exclude;
use crate::git::Call;

pub(super) fn find(
    plain: &PlainRepository,
    workspace: &Workspace,
    head: &Oid,
) -> Result<Vec<String>, HarvestError> {
    let scratch = tempfile::Builder::new().prefix("index.").tempdir_in(plain.git_dir());
    let scratch = scratch.map_err(|source| HarvestError::Io {
        step: "make a directory in",
        path: plain.git_dir().to_owned(),
        source,
    })?;
    let git = || {
        let call = plain.git().work_tree(&workspace.repository());
        call.variable("GIT_INDEX_FILE", scratch.path().join("index"))
    };
    git().words(&["read-tree", head.as_str()]).done()?;
    let layers = Layers::of(&workspace.path);
    let shining_through = match &layers {
        Some(layers) => look_at_changes_alone(git, layers, head)?,
        None => Vec::new(),
    };
    // Fails when files differ, which is what we want to know.
    let refreshed =
        git().words(&["update-index", "-q", "--ignore-submodules", "--refresh"]).run()?;
    if !matches!(refreshed.status.code(), Some(0 | 1)) {
        return Err(refreshed.failure().into());
    }
    let changed = git()
        .words(&["diff-files", "-z", "--name-only", "--ignore-submodules=all"])
        .words(&["--no-ext-diff", "--no-textconv"])
        .bytes()?;
    let mut call = git().words(&["ls-files", "-z", "--others", "--exclude-standard"]);
    for path in &workspace.hidden {
        call = call.word("-x").word(exclude::pattern(path));
    }
    let new = call.bytes()?;
    let paths: BTreeSet<String> = names(&changed)
        .chain(names(&new))
        .chain(shining_through.iter().map(Vec::as_slice))
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect();
    Ok(paths.into_iter().collect())
}

/// Has git expect only those files that were touched, or that the checkout beneath
/// has not as they were committed: all others are there, and the same. The answer is
/// what was committed as gone and is still seen there.
fn look_at_changes_alone(
    git: impl Fn() -> Call,
    layers: &Layers,
    head: &Oid,
) -> Result<Vec<Vec<u8>>, HarvestError> {
    let touched = layers.all_touched();
    let untouched = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path));
        !path.ancestors().any(|above| touched.contains(above))
    };
    let different = git()
        .variable("GIT_INDEX_FILE", layers.base().join(".git/index"))
        .words(&["diff-index", "--cached", "-z", "--name-only", "--no-renames", head.as_str()])
        .bytes()?;
    let different: BTreeSet<&[u8]> = names(&different).collect();
    let all = git().words(&["ls-files", "-z"]).bytes()?;
    let all: BTreeSet<&[u8]> = names(&all).collect();
    let mut beneath = Vec::new();
    for path in all.difference(&different).filter(|path| untouched(path)) {
        beneath.extend_from_slice(path);
        beneath.push(0);
    }
    let call = git().words(&["update-index", "-z", "--skip-worktree", "--stdin"]);
    call.input(beneath).done()?;
    let gone = different.difference(&all).filter(|path| untouched(path));
    Ok(gone.map(|path| path.to_vec()).collect())
}

fn names(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

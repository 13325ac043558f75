//! What an agent changed and never committed.
//!
//! The work tree is compared with an index of our own, through a git directory
//! of our own. Submodules are left out: to look into one, git would run with
//! the configuration that it finds there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use blueflame_core::ids::Oid;

use super::error::HarvestError;
use super::plain::PlainRepository;
use super::{Layers, Workspace};
use crate::exclude;
use crate::git::Call;

/// Up to so many paths git is asked for by name; beyond that, for the whole tree.
const NAMED: usize = 200;

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
    let shining_through = if let Some(layers) = Layers::of(&workspace.path) {
        expect_what_can_differ(git, &layers, head)?
    } else {
        git().words(&["read-tree", head.as_str()]).done()?;
        Vec::new()
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
/// has not as they were committed: all others are there, and the same. So it takes as
/// long as there is work, however large the tree is. The answer is what was committed
/// as gone and is still seen there.
fn expect_what_can_differ(
    git: impl Fn() -> Call,
    layers: &Layers,
    head: &Oid,
) -> Result<Vec<Vec<u8>>, HarvestError> {
    let touched = layers.all_touched();
    let different = git()
        .variable("GIT_INDEX_FILE", layers.base().join(".git/index"))
        .words(&["diff-index", "--cached", "-z", "--name-only", "--no-renames", head.as_str()])
        .bytes()?;
    let different: BTreeSet<&Path> = names(&different).map(path).collect();
    // What they say of untouched files nobody asks, but of new ones they do.
    let above = touched.iter().flat_map(|path| path.ancestors().skip(1));
    let ignoring: BTreeSet<PathBuf> = above.map(|it| it.join(".gitignore")).collect();
    let is_in = |path: &Path, these: &BTreeSet<PathBuf>| {
        path.ancestors().any(|above| these.contains(above))
    };
    let wanted: BTreeSet<&Path> =
        touched.iter().chain(&ignoring).map(PathBuf::as_path).chain(different.clone()).collect();
    if touched.is_empty() && different.is_empty() {
        return Ok(Vec::new());
    }
    let mut listing = git().words(&["ls-tree", "-r", "-z", head.as_str()]);
    if wanted.len() <= NAMED && !wanted.contains(Path::new("")) {
        listing = listing.variable("GIT_LITERAL_PATHSPECS", "1").word("--");
        listing = wanted.iter().fold(listing, Call::word);
    }
    let listing = listing.bytes()?;
    let (mut expected, mut beneath, mut committed) = (Vec::new(), Vec::new(), BTreeSet::new());
    for line in names(&listing) {
        let tab = line.iter().position(|byte| *byte == b'\t').unwrap_or(line.len());
        let name = line.get(tab + 1..).unwrap_or_default();
        let path = path(name);
        if !path.ancestors().any(|above| wanted.contains(above)) {
            continue;
        }
        committed.insert(path);
        expected.extend_from_slice(line);
        expected.push(0);
        if ignoring.contains(path) && !different.contains(path) && !is_in(path, &touched) {
            beneath.extend_from_slice(name);
            beneath.push(0);
        }
    }
    git().words(&["update-index", "-z", "--index-info"]).input(expected).done()?;
    if !beneath.is_empty() {
        let call = git().words(&["update-index", "-z", "--skip-worktree", "--stdin"]);
        call.input(beneath).done()?;
    }
    let gone = different.difference(&committed).filter(|path| !is_in(path, &touched));
    Ok(gone.map(|path| path.as_os_str().as_bytes().to_vec()).collect())
}

fn path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

fn names(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

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

use super::{Layers, Workspace};
use super::error::HarvestError;
use super::plain::PlainRepository;
use crate::exclude;

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
    if let Some(layers) = Layers::of(&workspace.path) {
        // What was not touched is as the start has it, and not in that layer.
        let committed = git().words(&["diff-tree", "-r", "-z", "--name-only", "--no-renames"]);
        let committed = committed.words(&[workspace.start.as_str(), head.as_str()]).bytes()?;
        let committed: BTreeSet<&[u8]> = committed.split(|byte| *byte == 0).collect();
        let all = git().words(&["ls-files", "-z"]).bytes()?;
        let mut elsewhere = Vec::new();
        for path in all.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            if !committed.contains(path) && !layers.touched(Path::new(OsStr::from_bytes(path))) {
                elsewhere.extend_from_slice(path);
                elsewhere.push(0);
            }
        }
        let call = git().words(&["update-index", "-z", "--skip-worktree", "--stdin"]);
        call.input(elsewhere).done()?;
    }
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
    let paths = changed.split(|byte| *byte == 0).chain(new.split(|byte| *byte == 0));
    let paths: BTreeSet<String> = paths
        .filter(|path| !path.is_empty())
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect();
    Ok(paths.into_iter().collect())
}

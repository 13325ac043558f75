//! What is in a workspace besides the files of its commit: copies of untracked
//! files, shared directories, and room for build output.
//!
//! A shared directory is copied, sharing its blocks where the file system can.
//! A symbolic link would be cheaper and would let an agent write into the
//! person's checkout wherever there is no sandbox. For the same reason links
//! are copied only as long as they stay inside the workspace, and nothing is
//! written through a link that the commit brought along.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use blueflame_core::config;
use blueflame_core::lock_path::LockPath;

use super::error::{WorkspaceError, failed};
use super::{Layers, layers, space};

/// Something that was asked for and is not in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Relative to the checkout.
    pub path: String,
    pub why: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Missing,
    /// The commit has something of that name.
    InTheWay,
    NotAFile,
    NotADirectory,
    /// A symbolic link to outside of the workspace.
    LinkOut,
}

/// A directory that things are brought into.
#[derive(Clone, Debug)]
pub enum Floor<'a> {
    Plain(&'a Path),
    Layered(Layers),
}

impl Floor<'_> {
    /// Where new things go.
    pub(super) fn writable(&self) -> PathBuf {
        match self {
            Floor::Plain(path) => (*path).to_owned(),
            Floor::Layered(layers) => layers.changes(),
        }
    }

    /// What is at a path now.
    fn found(&self, path: &Path) -> Option<fs::FileType> {
        let place = match self {
            Floor::Plain(root) => Some(root.join(path)),
            Floor::Layered(layers) => layers.find(path),
        };
        Some(fs::symlink_metadata(place?).ok()?.file_type())
    }
}

impl Floor<'_> {
    /// Makes a directory where nothing is now.
    fn make_directory(&self, path: &Path) -> Result<(), WorkspaceError> {
        let at = self.writable().join(path);
        fs::create_dir(&at).map_err(failed("make", &at))?;
        match self {
            // One of that name may be beneath, which was not to be seen.
            Floor::Layered(layers) if layers.base().join(path).exists() => {
                layers::make_opaque(&at).map_err(failed("set up", &at))
            }
            Floor::Layered(_) | Floor::Plain(_) => Ok(()),
        }
    }
}

/// Brings things from the person's checkout into other directories.
#[derive(Clone, Debug)]
pub struct Fitter {
    /// The person's checkout.
    pub(super) checkout: PathBuf,
    /// What is never brought along: workspaces, and the person's repository.
    pub(super) root: PathBuf,
    pub(super) common: PathBuf,
}

impl Fitter {
    pub fn furnish(
        &self,
        floor: &Floor<'_>,
        fittings: &config::Worktree,
    ) -> Result<Vec<LeftOut>, WorkspaceError> {
        let mut left_out = Vec::new();
        for path in &fittings.copy {
            if let Err(why) = self.copy(floor, path)? {
                left_out.push(LeftOut { path: path.to_string(), why });
            }
        }
        for path in &fittings.share {
            if let Err(why) = self.share(floor, path, &mut left_out)? {
                left_out.push(LeftOut { path: path.to_string(), why });
            }
        }
        for path in &fittings.scratch {
            make_directories(floor, Path::new(path.as_str()))?;
        }
        Ok(left_out)
    }

    /// A rough size of the directories that are to be shared.
    pub(super) fn shared_bytes(&self, fittings: &config::Worktree) -> u64 {
        let mut bytes = 0;
        let mut paths: Vec<PathBuf> =
            fittings.share.iter().map(|path| self.checkout.join(path.as_str())).collect();
        // What cannot be read is found out when it is copied.
        while let Some(path) = paths.pop() {
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() && path != self.root => {
                    let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                    paths.extend(entries.map(|entry| entry.path()));
                }
                Ok(found) if found.is_file() => bytes += space::on_disk(found.len()),
                _ => {}
            }
        }
        bytes
    }

    fn copy(
        &self,
        floor: &Floor<'_>,
        path: &LockPath,
    ) -> Result<Result<(), Reason>, WorkspaceError> {
        let Some(source) = self.find(path)? else { return Ok(Err(Reason::Missing)) };
        if !source.is_file() {
            return Ok(Err(Reason::NotAFile));
        }
        let Some(target) = room_for(floor, path)? else { return Ok(Err(Reason::InTheWay)) };
        copy_file(&source, &target).map(Ok)
    }

    fn share(
        &self,
        floor: &Floor<'_>,
        path: &LockPath,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<Result<(), Reason>, WorkspaceError> {
        let Some(source) = self.find(path)? else { return Ok(Err(Reason::Missing)) };
        if !source.is_dir() {
            return Ok(Err(Reason::NotADirectory));
        }
        let Some(target) = room_for(floor, path)? else { return Ok(Err(Reason::InTheWay)) };
        floor.make_directory(Path::new(path.as_str()))?;
        let mut copied = vec![(source, target, PathBuf::from(path.as_str()))];
        let mut next = 0;
        while let Some((source, target, inside)) = copied.get(next).cloned() {
            next += 1;
            for entry in fs::read_dir(&source).map_err(failed("list", &source))? {
                let entry = entry.map_err(failed("list", &source))?;
                let from = entry.path();
                let to = target.join(entry.file_name());
                let inside = inside.join(entry.file_name());
                let kind = entry.file_type().map_err(failed("look at", &from))?;
                let mut leave = |why| {
                    left_out.push(LeftOut { path: inside.to_string_lossy().into_owned(), why });
                };
                if kind.is_symlink() {
                    let link = fs::read_link(&from).map_err(failed("read", &from))?;
                    if stays_inside(&inside, &link) {
                        symlink(&link, &to).map_err(failed("make", &to))?;
                    } else {
                        leave(Reason::LinkOut);
                    }
                } else if kind.is_file() {
                    copy_file(&from, &to)?;
                } else if kind.is_dir() && from != self.root && from != self.common {
                    fs::create_dir(&to).map_err(failed("make", &to))?;
                    copied.push((from, to, inside));
                } else {
                    leave(Reason::NotAFile);
                }
            }
        }
        // Last, because nothing can be put into a directory that is read-only.
        for (source, target, _) in copied.iter().rev() {
            let found = fs::metadata(source).map_err(failed("look at", source))?;
            fs::set_permissions(target, found.permissions()).map_err(failed("set up", target))?;
        }
        Ok(Ok(()))
    }

    /// Where something of the checkout really is; it must be in the checkout.
    fn find(&self, path: &LockPath) -> Result<Option<PathBuf>, WorkspaceError> {
        let asked = self.checkout.join(path.as_str());
        let found = match fs::canonicalize(&asked) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("find", &asked)(error)),
        };
        if found.starts_with(&self.checkout) && !found.starts_with(&self.common) {
            return Ok(Some(found));
        }
        Err(WorkspaceError::LeadsOut { path: path.to_string(), root: self.checkout.clone() })
    }
}

/// The path in the workspace, with the directories above it; `None` if there is
/// something already.
fn room_for(floor: &Floor<'_>, path: &LockPath) -> Result<Option<PathBuf>, WorkspaceError> {
    let path = Path::new(path.as_str());
    if let Some(parent) = path.parent() {
        make_directories(floor, parent)?;
    }
    if floor.found(path).is_some() {
        return Ok(None);
    }
    let target = floor.writable().join(path);
    clear(&target)?;
    Ok(Some(target))
}

/// Makes directories one by one, and never through a symbolic link.
fn make_directories(floor: &Floor<'_>, path: &Path) -> Result<(), WorkspaceError> {
    let writable = floor.writable();
    let mut so_far = PathBuf::new();
    for part in path.components() {
        so_far.push(part);
        let at = writable.join(&so_far);
        match floor.found(&so_far) {
            Some(kind) if kind.is_symlink() => {
                let path = path.to_string_lossy().into_owned();
                return Err(WorkspaceError::LeadsOut { path, root: writable });
            }
            // It may be in the layer beneath alone.
            Some(kind) if kind.is_dir() => fs::create_dir_all(&at).map_err(failed("make", &at))?,
            Some(_) => return Err(failed("make", &at)(io::ErrorKind::NotADirectory.into())),
            None => {
                clear(&at)?;
                floor.make_directory(&so_far)?;
            }
        }
    }
    Ok(())
}

/// Takes away the note that something beneath is gone.
fn clear(path: &Path) -> Result<(), WorkspaceError> {
    if fs::symlink_metadata(path).is_ok_and(|found| layers::is_gone(&found)) {
        fs::remove_file(path).map_err(failed("remove", path))?;
    }
    Ok(())
}

/// With its mode, and with its date, by which build tools know it again.
fn copy_file(from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    fs::copy(from, to).map_err(failed("copy", from))?;
    let date = fs::metadata(from).and_then(|found| found.modified());
    if let (Ok(date), Ok(file)) = (date, File::open(to)) {
        // Build tools would do a little more work, that is all.
        let _ = file.set_times(FileTimes::new().set_modified(date));
    }
    Ok(())
}

/// Whether a link at a path of the workspace leads to a path of the workspace.
fn stays_inside(path: &Path, link: &Path) -> bool {
    let mut depth = path.components().count() - 1;
    for part in link.components() {
        match part {
            Component::Normal(name) if name.eq_ignore_ascii_case(".git") && depth == 0 => {
                return false;
            }
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_may_lead_anywhere_inside() {
        for (path, link, inside) in [
            ("node_modules/.bin/x", "../x/cli.js", true),
            ("node_modules/x", "../packages/x", true),
            ("node_modules/x", "../../x", false),
            ("node_modules/x", "/home/person/x", false),
            ("node_modules/x", "../a/../../x", false),
            ("node_modules/x", "../.git/config", false),
            ("node_modules/x", "./y", true),
        ] {
            assert_eq!(stays_inside(Path::new(path), Path::new(link)), inside, "{path} -> {link}");
        }
    }
}

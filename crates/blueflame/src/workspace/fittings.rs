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
use super::space;

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
        workspace: &Path,
        fittings: &config::Worktree,
    ) -> Result<Vec<LeftOut>, WorkspaceError> {
        let mut left_out = Vec::new();
        for path in &fittings.copy {
            if let Err(why) = self.copy(workspace, path)? {
                left_out.push(LeftOut { path: path.to_string(), why });
            }
        }
        for path in &fittings.share {
            if let Err(why) = self.share(workspace, path, &mut left_out)? {
                left_out.push(LeftOut { path: path.to_string(), why });
            }
        }
        for path in &fittings.scratch {
            make_directories(workspace, Path::new(path.as_str()))?;
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
        workspace: &Path,
        path: &LockPath,
    ) -> Result<Result<(), Reason>, WorkspaceError> {
        let Some(source) = self.find(path)? else { return Ok(Err(Reason::Missing)) };
        if !source.is_file() {
            return Ok(Err(Reason::NotAFile));
        }
        let Some(target) = room_for(workspace, path)? else { return Ok(Err(Reason::InTheWay)) };
        copy_file(&source, &target).map(Ok)
    }

    fn share(
        &self,
        workspace: &Path,
        path: &LockPath,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<Result<(), Reason>, WorkspaceError> {
        let Some(source) = self.find(path)? else { return Ok(Err(Reason::Missing)) };
        if !source.is_dir() {
            return Ok(Err(Reason::NotADirectory));
        }
        let Some(target) = room_for(workspace, path)? else { return Ok(Err(Reason::InTheWay)) };
        fs::create_dir(&target).map_err(failed("make", &target))?;
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
fn room_for(workspace: &Path, path: &LockPath) -> Result<Option<PathBuf>, WorkspaceError> {
    let path = Path::new(path.as_str());
    if let Some(parent) = path.parent() {
        make_directories(workspace, parent)?;
    }
    let target = workspace.join(path);
    Ok(fs::symlink_metadata(&target).is_err().then_some(target))
}

/// Makes directories one by one, and never through a symbolic link.
fn make_directories(workspace: &Path, path: &Path) -> Result<(), WorkspaceError> {
    let mut at = workspace.to_owned();
    for part in path.components() {
        at.push(part);
        match fs::symlink_metadata(&at) {
            Ok(found) if found.is_symlink() => {
                let path = path.to_string_lossy().into_owned();
                return Err(WorkspaceError::LeadsOut { path, root: workspace.to_owned() });
            }
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(failed("make", &at)(io::ErrorKind::NotADirectory.into())),
            Err(_) => fs::create_dir(&at).map_err(failed("make", &at))?,
        }
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

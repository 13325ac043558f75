//! Paths as they are judged: absolute, and without looking at the disk.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, starting where the agent works. Links are
/// not looked at.
pub(super) fn absolute(cwd: &Path, path: &str) -> Result<String, String> {
    if path.trim().is_empty() {
        return Err("the path is empty".to_owned());
    }
    if path.contains('\0') {
        return Err("the path contains a NUL character".to_owned());
    }
    let mut clean = PathBuf::from("/");
    for part in cwd.join(path).components() {
        match part {
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
        }
    }
    let clean = clean.into_os_string().into_string();
    clean.map_err(|_| "the working directory has no readable name".to_owned())
}

/// The path as the model should see it: short, if it is below `cwd`.
pub(super) fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(below) if !below.as_os_str().is_empty() => below.to_string_lossy().into_owned(),
        _ => path.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_absolute_by_their_letters_alone() {
        for (path, expected) in [
            ("a", "/w/a"),
            ("./a//b/", "/w/a/b"),
            ("../a", "/a"),
            ("../../../..", "/"),
            ("/x/./y/../z", "/x/z"),
            ("~/.ssh", "/w/~/.ssh"),
        ] {
            assert_eq!(absolute(Path::new("/w"), path).as_deref(), Ok(expected));
        }
    }
}

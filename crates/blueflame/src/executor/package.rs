//! What the package that a program was installed with says about its version: reading
//! that takes no time, where some programs need a good part of a second to say theirs.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{Executor, Version};

/// How far above a program the description of its package is.
const LEVELS: usize = 5;

/// No honest description is longer.
const MOST: u64 = 1 << 20;

#[derive(Deserialize)]
struct Description {
    name: String,
    version: String,
}

/// The version of the package that a program of this executor is part of, or that its
/// file is named after.
pub(super) fn version(executor: &dyn Executor, program: &Path) -> Option<Version> {
    let program = program.canonicalize().ok()?;
    let own = program.file_name().and_then(|name| name.to_str());
    if let Some(version) = own.and_then(Version::exactly) {
        return Some(version);
    }
    let described = program.ancestors().skip(1).take(LEVELS).find_map(|above| {
        let path = above.join("package.json");
        let is_short = fs::metadata(&path).is_ok_and(|found| found.len() <= MOST);
        is_short.then(|| fs::read(&path).ok()).flatten()
    })?;
    let Description { name, version } = serde_json::from_slice(&described).ok()?;
    let is_ours = executor.packages().iter().any(|package| name.starts_with(package));
    is_ours.then(|| Version::find(&version)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    #[test]
    fn a_program_is_as_old_as_its_package_and_others_are_not_asked() {
        let claude = named("claude").unwrap();
        let place = tempfile::tempdir().unwrap();
        let package = place.path().join("node_modules/@anthropic-ai/claude-code");
        fs::create_dir_all(package.join("bin")).unwrap();
        let program = package.join("bin/claude.exe");
        fs::write(&program, "").unwrap();
        let link = place.path().join("claude");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        let says = |name: &str, version: &str| {
            let text = format!(r#"{{"name": "{name}", "version": "{version}", "bin": {{}}}}"#);
            fs::write(package.join("package.json"), text).unwrap();
            super::version(claude, &link).map(|it| it.to_string())
        };
        assert_eq!(super::version(claude, &link), None, "nothing is described");
        let ours = "@anthropic-ai/claude-code";
        assert_eq!(says(ours, "2.1.197").as_deref(), Some("2.1.197"));
        let for_a_machine = says("@anthropic-ai/claude-code-linux-x64", "2.1.198-linux-x64");
        assert_eq!(for_a_machine.as_deref(), Some("2.1.198"));
        assert_eq!(says(ours, "none"), None);
        // A project of the person's in which somebody has put a program.
        assert_eq!(says("my-website", "1.2.3"), None);
        fs::write(package.join("package.json"), "{").unwrap();
        assert_eq!(super::version(claude, &link), None);
    }

    #[test]
    fn a_file_may_be_named_after_its_version() {
        let claude = named("claude").unwrap();
        let place = tempfile::tempdir().unwrap();
        for (name, expected) in [("2.1.197", Some("2.1.197")), ("claude-2.1.197", None)] {
            let program = place.path().join(name);
            fs::write(&program, "").unwrap();
            let link = place.path().join(format!("link-{name}"));
            std::os::unix::fs::symlink(&program, &link).unwrap();
            let found = super::version(claude, &link).map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{name}");
        }
    }
}

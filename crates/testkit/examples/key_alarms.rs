//! What the inspection takes for a key in a body of code, for whoever changes
//! its rules: `cargo run -p blueflame-testkit --example key_alarms -- DIRECTORY...`
//!
//! Every file is handed over as if an agent had just added it.

#![expect(clippy::print_stdout, reason = "it is what it finds out")]

use std::fs;
use std::path::{Path, PathBuf};

use blueflame_core::config;
use blueflame_core::ids::{Oid, Role};
use blueflame_core::inspection::{self, FileChange, FileKind, Line, Lines, Side, Work};
use blueflame_core::policy::{Policy, PolicyRules};

fn main() {
    let config = config::read(b"schema_version: 2\n").config.expect("a configuration");
    let policy = Policy::new(PolicyRules::of(&config, Role::Worker, &[])).expect("good rules");
    let (mut files, mut lines) = (0, 0);
    let (mut held, mut doubtful) = (0, 0);
    for root in std::env::args_os().skip(1).map(PathBuf::from) {
        for path in below(&root) {
            let Ok(bytes) = fs::read(&path) else { continue };
            if bytes.contains(&0) || bytes.len() > 1 << 20 {
                continue;
            }
            let change = added(&path, &String::from_utf8_lossy(&bytes));
            files += 1;
            lines += change.lines.added.len();
            let work = Work { descends: true, changes: vec![change], ..Work::default() };
            let found = inspection::inspect(&policy, &work);
            for finding in found.violations.iter().filter(|it| it.rule == "changes.secret") {
                held += 1;
                println!("violation {finding}");
            }
            for finding in found.remarks.iter().filter(|it| it.rule == "changes.secret") {
                doubtful += 1;
                println!("remark {finding}");
            }
        }
    }
    println!("{files} files, {lines} lines: {held} violations, {doubtful} remarks");
}

/// All files, without what git itself keeps and what compilers made.
fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() && name != ".git" && name != "target" {
                directories.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn added(path: &Path, text: &str) -> FileChange {
    let lines = (1..).zip(text.lines());
    let lines = lines.map(|(number, text)| Line { number, text: text.to_owned() }).collect();
    let object = Oid::new("1".repeat(40)).expect("a name");
    FileChange {
        path: path.to_string_lossy().trim_start_matches('/').to_owned(),
        before: None,
        after: Some(Side { kind: FileKind::Plain, object, size: text.len() as u64 }),
        lines: Lines { added: lines, ..Lines::default() },
    }
}

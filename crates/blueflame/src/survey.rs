//! A look at a repository: what a configuration for it should say.
//!
//! It reads a few well-known files and asks git; it runs nothing of the
//! repository's own and changes nothing.

mod languages;

use std::collections::BTreeSet;
use std::path::Path;

use blueflame_core::lock_path::LockPath;
use blueflame_core::path_pattern::PathPattern;

use crate::git::{Git, GitError};

use languages::{Language, Sources};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub base_branch: String,
    /// The kinds of project that the root is, such as `Rust`.
    pub languages: Vec<&'static str>,
    pub tests: Vec<String>,
    pub lints: Vec<String>,
    /// Beginnings of commands that its workers need.
    pub commands: Vec<String>,
    /// Patterns of what agents may change.
    pub allowed: Vec<String>,
    /// Patterns of sources and of their tests, where there are tests.
    pub sources: Vec<String>,
    pub test_files: Vec<String>,
    /// Directories of build output.
    pub scratch: Vec<String>,
    /// Directories of installed dependencies.
    pub share: Vec<String>,
    /// Directories of the home that builds read.
    pub read: Vec<String>,
    /// What a person should look at.
    pub notes: Vec<String>,
}

/// Directories that hold what builds make, wherever git ignores them.
const OUTPUTS: [&str; 14] = [
    "target",
    "dist",
    "build",
    "out",
    "coverage",
    ".next",
    ".nuxt",
    ".turbo",
    ".cache",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    "bin",
];

/// Directories that hold installed dependencies.
const INSTALLED: [&str; 3] = ["node_modules", ".venv", "venv"];

/// Directories that git may keep and that are still nobody's to change.
const NOT_OURS: [&str; 5] = ["vendor", "third_party", "node_modules", "dist", "target"];

/// Endings of files in the root that are source code.
const CODE: [&str; 20] = [
    "rs", "go", "py", "js", "mjs", "cjs", "jsx", "ts", "tsx", "c", "h", "cc", "cpp", "hpp", "java",
    "kt", "rb", "php", "swift", "sh",
];

/// Documents in the root that change with the code. What tells agents how to
/// behave is not among them.
const DOCUMENTS: [&str; 2] = ["README.md", "CHANGELOG.md"];

impl Survey {
    /// Looks at the work tree whose root this is.
    pub fn of(root: &Path, home: Option<&Path>) -> Result<Survey, GitError> {
        let git = Git::in_dir(root);
        let tracked = git.tracked_files()?;
        let mut survey = Survey { base_branch: base_branch(&git)?, ..Survey::default() };
        let found = languages::find(root, &tracked);
        for language in &found {
            survey.add(language, &tracked, home);
        }
        survey.commands.dedup();
        survey.allow(&tracked);
        survey.tell_of_others(&tracked, &found);
        let is_tracked = |name: &str| tracked.iter().any(|file| is_below(file, name));
        for name in OUTPUTS.iter().chain(&INSTALLED) {
            let ignored = !is_tracked(name) && git.is_ignored(&format!("{name}/"))?;
            let there = root.join(name).is_dir();
            if INSTALLED.contains(name) {
                survey.share.extend((ignored && there).then(|| (*name).to_owned()));
            } else if ignored && !survey.scratch.iter().any(|known| known == name) {
                survey.scratch.push((*name).to_owned());
            }
        }
        survey.scratch.retain(|name| !is_tracked(name));
        Ok(survey)
    }

    fn add(&mut self, language: &Language, tracked: &[String], home: Option<&Path>) {
        self.languages.push(language.name);
        self.notes.extend(language.note.clone());
        // A test target of a Makefile mostly runs what is known already.
        let spare = language.is_wrapper && !self.tests.is_empty();
        if !spare {
            self.tests.extend(language.tests.iter().cloned());
            self.lints.extend(language.lints.iter().cloned());
        }
        self.commands.extend(language.commands.iter().map(|command| (*command).to_owned()));
        self.scratch.extend(language.scratch.iter().map(|name| (*name).to_owned()));
        let is_there = |path: &str| home.is_some_and(|home| home.join(path).is_dir());
        let read = language.read.iter().filter(|path| is_there(path));
        self.read.extend(read.map(|path| format!("~/{path}")));
        if let Some(Sources { code, tests }) = &language.sources
            && tests.iter().any(|pattern| matches_any(pattern, tracked))
        {
            self.sources.extend(code.iter().map(|pattern| (*pattern).to_owned()));
            self.test_files.extend(tests.iter().map(|pattern| (*pattern).to_owned()));
        }
    }

    /// What lies in the root decides what agents may change.
    fn allow(&mut self, tracked: &[String]) {
        let mut directories = BTreeSet::new();
        let mut files = BTreeSet::new();
        for file in tracked {
            if let Some((directory, _)) = file.split_once('/') {
                directories.insert(directory);
                continue;
            }
            let ending = file.rsplit_once('.').map(|(_, ending)| ending);
            files.extend(ending.filter(|it| CODE.contains(it)).map(|it| format!("*.{it}")));
            files.extend(DOCUMENTS.contains(&file.as_str()).then(|| file.clone()));
        }
        for directory in directories {
            let hidden = directory.starts_with('.');
            if hidden || NOT_OURS.contains(&directory) {
                continue;
            }
            // A name that means something else as a pattern.
            let plain = LockPath::new(directory).is_ok() && !directory.contains(['{', '}', ']']);
            let pattern = format!("{directory}/**");
            if plain && PathPattern::new(&pattern).is_ok() {
                self.allowed.push(pattern);
            } else {
                let note = format!("`{directory}` was left out: its name is no plain pattern");
                self.notes.push(note);
            }
        }
        self.allowed.extend(files);
        if self.allowed.is_empty() {
            self.allowed = ["src/**", "tests/**", "docs/**"].map(str::to_owned).to_vec();
        }
    }

    /// Projects in projects have their own commands, which nobody can guess.
    fn tell_of_others(&mut self, tracked: &[String], found: &[Language]) {
        for (manifest, language) in languages::MANIFESTS {
            let known = found.iter().any(|it| it.name == language);
            let below = |file: &&String| {
                file.strip_suffix(manifest).is_some_and(|place| place.ends_with('/'))
                    && file.split('/').all(|part| !NOT_OURS.contains(&part))
            };
            if let Some(file) = tracked.iter().find(below).filter(|_| !known) {
                let note = format!("`{file}` was not looked at: add its commands by hand");
                self.notes.push(note);
            }
        }
    }
}

/// The branch of the person, unless it is none or one of ours.
fn base_branch(git: &Git) -> Result<String, GitError> {
    let current = git.current_branch()?.filter(|name| !name.starts_with("blueflame/"));
    if let Some(name) = current {
        return Ok(name);
    }
    let branches = git.branches()?;
    let known = ["main", "master"].into_iter().find(|name| branches.iter().any(|it| it == name));
    Ok(known.map(str::to_owned).or_else(|| branches.into_iter().next()).unwrap_or_default())
}

fn is_below(file: &str, directory: &str) -> bool {
    file.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

fn matches_any(pattern: &str, files: &[String]) -> bool {
    PathPattern::new(pattern).is_ok_and(|pattern| files.iter().any(|file| pattern.matches(file)))
}

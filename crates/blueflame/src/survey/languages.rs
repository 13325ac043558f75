//! Kinds of projects: how each is known, and what its agents need.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// One kind of project that the root of a repository is.
#[derive(Debug, Default)]
pub struct Language {
    pub name: &'static str,
    pub tests: Vec<String>,
    pub lints: Vec<String>,
    /// Beginnings of commands.
    pub commands: Vec<&'static str>,
    pub scratch: Vec<&'static str>,
    /// Directories below the home, if they are there.
    pub read: Vec<&'static str>,
    pub sources: Option<Sources>,
    /// What a person has to see to.
    pub note: Option<String>,
    /// Whether it only calls the tools of another one.
    pub is_wrapper: bool,
}

/// Patterns of source files, and of the tests that should change with them.
#[derive(Debug)]
pub struct Sources {
    pub code: Vec<&'static str>,
    pub tests: Vec<&'static str>,
}

/// The files by which projects are known, wherever they are.
pub const MANIFESTS: [(&str, &str); 4] =
    [("Cargo.toml", RUST), ("go.mod", GO), ("package.json", NODE), ("pyproject.toml", PYTHON)];

const RUST: &str = "Rust";
const GO: &str = "Go";
const NODE: &str = "Node.js";
const PYTHON: &str = "Python";

/// A manifest that is larger than this is somebody else's problem.
const LARGEST: u64 = 1024 * 1024;

/// What the root is; more than one is common.
pub fn find(root: &Path, tracked: &[String]) -> Vec<Language> {
    let project = Project { root, tracked };
    [rust(&project), go(&project), node(&project), python(&project), make(&project)]
        .into_iter()
        .flatten()
        .collect()
}

struct Project<'a> {
    root: &'a Path,
    tracked: &'a [String],
}

impl Project<'_> {
    fn has(&self, name: &str) -> bool {
        self.root.join(name).is_file()
    }

    /// The text of a file in the root; nothing if it is not there, or no text.
    fn text(&self, name: &str) -> Option<String> {
        let path = self.root.join(name);
        let metadata = fs::metadata(&path).ok()?;
        (metadata.is_file() && metadata.len() <= LARGEST).then(|| fs::read_to_string(path).ok())?
    }

    fn any_file(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.tracked.iter().any(|file| is_it(file.rsplit('/').next().unwrap_or(file)))
    }
}

fn rust(project: &Project<'_>) -> Option<Language> {
    let manifest = project.text("Cargo.toml")?;
    let workspace = manifest.lines().any(|line| line.trim() == "[workspace]");
    let all = if workspace { " --workspace" } else { "" };
    Some(Language {
        name: RUST,
        tests: vec![format!("cargo test{all}")],
        lints: vec![format!("cargo clippy{all}")],
        commands: vec!["cargo test", "cargo build", "cargo check", "cargo clippy", "cargo fmt"],
        scratch: vec!["target"],
        read: vec![".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git"],
        ..Language::default()
    })
}

fn go(project: &Project<'_>) -> Option<Language> {
    if !project.has("go.mod") {
        return None;
    }
    let mut lints = vec!["go vet ./...".to_owned()];
    let mut commands = vec!["go test", "go build", "go vet", "go run", "go fmt"];
    let configs = [".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];
    if configs.iter().any(|name| project.has(name)) {
        lints.push("golangci-lint run".into());
        commands.push("golangci-lint run");
    }
    Some(Language {
        name: GO,
        tests: vec!["go test ./...".into()],
        lints,
        commands,
        read: vec!["go/pkg/mod"],
        sources: Some(Sources { code: vec!["**/*.go"], tests: vec!["**/*_test.go"] }),
        ..Language::default()
    })
}

fn node(project: &Project<'_>) -> Option<Language> {
    let manifest = project.text("package.json")?;
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    let script = |name: &str| manifest["scripts"][name].as_str();
    // What `npm init` writes, and what always fails.
    let test = script("test").filter(|script| !script.contains("no test specified"));
    let (test_command, run, lint_command) = if project.has("pnpm-lock.yaml") {
        ("pnpm test", "pnpm run", "pnpm run lint")
    } else if project.has("yarn.lock") {
        ("yarn test", "yarn run", "yarn run lint")
    } else {
        ("npm test", "npm run", "npm run lint")
    };
    let needs = |key: &str| manifest[key].as_object().is_some_and(|list| !list.is_empty());
    let missing = (needs("dependencies") || needs("devDependencies"))
        && !project.root.join("node_modules").is_dir();
    let note = "the dependencies of package.json are not installed; agents have no network: \
                install them, and add `node_modules` to `worktree.share`";
    Some(Language {
        name: NODE,
        note: missing.then(|| note.to_owned()),
        tests: test.map(|_| test_command.to_owned()).into_iter().collect(),
        lints: script("lint").map(|_| lint_command.to_owned()).into_iter().collect(),
        commands: vec![test_command, run],
        sources: Some(Sources {
            code: vec!["**/*.{js,jsx,mjs,ts,tsx}"],
            tests: vec!["**/*.{test,spec}.{js,jsx,mjs,ts,tsx}", "**/__tests__/**"],
        }),
        ..Language::default()
    })
}

fn python(project: &Project<'_>) -> Option<Language> {
    let manifests =
        ["pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", "requirements.txt"];
    if !manifests.iter().any(|name| project.has(name)) {
        return None;
    }
    let settings = project.text("pyproject.toml").unwrap_or_default();
    let is_test = |name: &str| {
        name.strip_suffix(".py")
            .is_some_and(|name| name.starts_with("test_") || name.ends_with("_test"))
    };
    let mut language = Language {
        name: PYTHON,
        sources: Some(Sources {
            code: vec!["**/*.py"],
            tests: vec!["**/test_*.py", "**/*_test.py"],
        }),
        ..Language::default()
    };
    if settings.contains("pytest") || project.has("pytest.ini") || project.any_file(is_test) {
        language.tests.push("pytest".into());
        language.commands.push("pytest");
    }
    if settings.contains("[tool.ruff") || project.has("ruff.toml") {
        language.lints.push("ruff check".into());
        language.commands.extend(["ruff check", "ruff format"]);
    }
    if settings.contains("[tool.mypy") || project.has("mypy.ini") {
        language.lints.push("mypy .".into());
        language.commands.push("mypy");
    }
    Some(language)
}

fn make(project: &Project<'_>) -> Option<Language> {
    let makefile =
        ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| project.text(name))?;
    let has = |target: &str| {
        makefile.lines().any(|line| {
            // `test := x` sets a variable.
            let rest = line.strip_prefix(target).map(str::trim_start);
            rest.and_then(|rest| rest.strip_prefix(':')).is_some_and(|rest| !rest.starts_with('='))
        })
    };
    let command = |target: &str| has(target).then(|| format!("make {target}"));
    Some(Language {
        name: "make",
        tests: command("test").into_iter().collect(),
        lints: command("lint").into_iter().collect(),
        commands: vec!["make"],
        is_wrapper: true,
        ..Language::default()
    })
}

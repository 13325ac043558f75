//! `blueflame init` in repositories of all kinds.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use blueflame_testkit::{Ran, Repository, TestEnv};

use crate::terminal::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_blueflame");

/// A directory of programs with git in it, and nothing of the machine.
pub fn programs(env: &TestEnv) -> PathBuf {
    let directory = env.path("bin");
    if !directory.exists() {
        std::fs::create_dir(&directory).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let git = std::env::split_paths(&path).map(|it| it.join("git")).find(|it| it.exists());
        std::os::unix::fs::symlink(git.unwrap(), directory.join("git")).unwrap();
    }
    directory
}

pub fn install(env: &TestEnv, name: &str, script: &str) {
    let path = programs(env).join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn command(env: &TestEnv, place: &Path, arguments: &[&str]) -> Command {
    let mut command = env.command(PROGRAM);
    command.args(arguments).current_dir(place).env("PATH", programs(env));
    command
}

fn run(env: &TestEnv, place: &Path, arguments: &[&str]) -> Ran {
    env.run(command(env, place, arguments))
}

/// A repository with these files, all committed.
fn repository<'e>(env: &'e TestEnv, files: &[(&str, &str)]) -> Repository<'e> {
    let repository = env.repository("project");
    for (name, text) in files {
        repository.write(name, text);
    }
    repository.commit("start");
    repository
}

type Files = &'static [(&'static str, &'static str)];

const RUST: Files = &[
    ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
    ("crates/one/Cargo.toml", "[package]\nname = \"one\"\n"),
    ("crates/one/src/lib.rs", "\n"),
    ("docs/guide.md", "\n"),
    ("README.md", "\n"),
    ("CLAUDE.md", "\n"),
    (".github/workflows/ci.yaml", "\n"),
    (".gitignore", "/target\n"),
];

const NODE: Files = &[
    (
        "package.json",
        r#"{"scripts": {"test": "vitest run", "lint": "eslint ."}, "devDependencies": {"x": "1"}}"#,
    ),
    ("package-lock.json", "{}"),
    ("src/index.ts", "\n"),
    ("src/index.test.ts", "\n"),
    ("server.js", "\n"),
    (".gitignore", "node_modules\ndist/\n"),
];

const NODE_WITHOUT_TESTS: Files = &[
    (
        "package.json",
        r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1", "lint": "x"}, "dependencies": {"x": "1"}}"#,
    ),
    ("pnpm-lock.yaml", ""),
    ("index.js", "\n"),
];

const GO: Files = &[
    ("go.mod", "module example.com/x\n"),
    (".golangci.yml", "\n"),
    ("main.go", "package main\n"),
    ("pkg/auth/token.go", "package auth\n"),
    ("pkg/auth/token_test.go", "package auth\n"),
    ("vendor/x/x.go", "package x\n"),
    ("Makefile", "VERSION := 1\ntest: build\n\tgo test ./...\nlint :\n\tgo vet\n"),
];

const PYTHON: Files = &[
    ("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n"),
    ("app/main.py", "\n"),
    ("tests/test_main.py", "\n"),
    (".gitignore", ".venv\n.pytest_cache/\n__pycache__/\n"),
];

const MAKE: Files = &[("Makefile", "test:\n\t./run-tests\n"), ("lib/x.c", "\n"), ("main.c", "\n")];

/// No language, and names that YAML or a pattern could take for something else.
const STRANGE: Files = &[
    ("no/a.txt", "\n"),
    ("it's here/a.txt", "\n"),
    ("[draft]/a.txt", "\n"),
    ("{a,b}/a.txt", "\n"),
    ("1.5/a.txt", "\n"),
    ("web/package.json", "{}"),
];

const EMPTY: Files = &[("LICENSE", "\n")];

/// Files that cannot be read as what they should be are passed over.
const BROKEN: Files = &[
    ("package.json", "{ not json"),
    ("Cargo.toml", "not toml ["),
    ("pyproject.toml", "["),
    ("Makefile", "\u{fffd}"),
];

#[test]
fn each_kind_of_project_gets_a_file_that_is_good_for_it() {
    for (name, files) in [
        ("rust", RUST),
        ("node", NODE),
        ("node_without_tests", NODE_WITHOUT_TESTS),
        ("go", GO),
        ("python", PYTHON),
        ("make", MAKE),
        ("strange", STRANGE),
        ("empty", EMPTY),
        ("broken", BROKEN),
    ] {
        let env = TestEnv::new();
        let repository = repository(&env, files);
        let place = repository.path();
        for installed in ["node_modules/x", ".venv/x"] {
            if files
                .iter()
                .any(|(name, text)| *name == ".gitignore" && text.contains(&installed[..5]))
            {
                std::fs::create_dir_all(place.join(installed)).unwrap();
            }
        }
        let ran = run(&env, place, &["init", "--yes"]);
        assert_eq!(ran.code(), Some(0), "{name}: {ran}");
        let written = std::fs::read_to_string(place.join("blueflame.yaml")).unwrap();
        insta::assert_snapshot!(
            format!("init_{name}"),
            format!("{ran}--- blueflame.yaml\n{written}")
        );
        // Good without so much as a warning, and the policy holds what it promises.
        let check = run(&env, place, &["config", "check"]);
        let good = "blueflame.yaml is good: all keys and values, the repository `$ROOT/project` \
                    and its branch `main`\n";
        assert_eq!((check.code(), check.stderr.as_str()), (Some(0), good), "{name}");
        for role in ["worker", "validator"] {
            let proof = run(&env, place, &["policy", "check", "--role", role, "--prove-examples"]);
            assert_eq!(proof.code(), Some(0), "{name}: {proof}");
        }
        assert_eq!(repository.git(["status", "--porcelain"]), "?? blueflame.yaml\n", "{name}");
    }
}

/// Seed row 48: the second time changes nothing.
#[test]
fn row_48_a_file_that_is_there_is_checked_and_left_alone() {
    let env = TestEnv::new();
    let repository = repository(&env, RUST);
    let below = repository.path().join("docs");
    run(&env, &below, &["init", "--yes"]).success();
    let file = repository.path().join("blueflame.yaml");
    let before = std::fs::read(&file).unwrap();
    insta::assert_snapshot!(run(&env, repository.path(), &["init"]), @"
    $ blueflame init
    exit 0
    --- stderr
    blueflame.yaml is there already, and it is good; nothing was changed
    ");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    std::fs::write(&file, "schema_version: 2\nlimit: {}\n").unwrap();
    insta::assert_snapshot!(run(&env, repository.path(), &["init", "--yes"]));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "schema_version: 2\nlimit: {}\n");
}

#[test]
fn nobody_to_ask_means_nothing_is_written() {
    let env = TestEnv::new();
    let repository = repository(&env, MAKE);
    let ran = run(&env, repository.path(), &["init"]);
    insta::assert_snapshot!(ran);
    assert_eq!(repository.git(["status", "--porcelain"]), "");
}

#[test]
fn at_a_terminal_the_person_decides() {
    for (typed, code, written) in
        [("n\n", 4, false), ("\x04", 4, false), ("\n", 0, true), ("Yes\n", 0, true)]
    {
        let env = TestEnv::new();
        let repository = repository(&env, MAKE);
        let mut terminal = Terminal::start(command(&env, repository.path(), &["init"]), (80, 24));
        let shown = terminal.read_until("write blueflame.yaml? [Y/n] ");
        assert!(shown.contains("tests     make test\n"), "{shown}");
        terminal.type_in(typed);
        let (rest, ended) = terminal.finish();
        assert_eq!(ended, Some(code), "{typed:?}: {rest}");
        assert_eq!(repository.path().join("blueflame.yaml").exists(), written, "{typed:?}");
        assert_eq!(rest.contains("nothing was written"), !written, "{rest}");
    }
}

#[test]
fn the_agent_program_that_is_there_is_chosen() {
    let env = TestEnv::new();
    install(&env, "claude", "echo '2.1.197 (Claude Code)'");
    let repository = repository(&env, MAKE);
    let file = repository.path().join("blueflame.yaml");
    let agent = |expected: &str| {
        let ran = run(&env, repository.path(), &["init", "--yes"]);
        assert_eq!(ran.code(), Some(0), "{ran}");
        let line = ran.stderr.lines().find(|line| line.starts_with("agent")).unwrap().to_owned();
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written.contains(&format!("  default: {expected}\n")), "{written}");
        std::fs::remove_file(&file).unwrap();
        line
    };
    assert_eq!(agent("claude"), "agent     claude 2.1.197 ($ROOT/bin/claude)");
    install(&env, "claude", "echo no library >&2; exit 127");
    let broken = agent("embedded");
    assert!(broken.starts_with("agent     embedded; $ROOT/bin/claude does not run"), "{broken}");
    std::fs::remove_file(programs(&env).join("claude")).unwrap();
    assert_eq!(agent("embedded"), "agent     embedded; claude is not installed");
}

#[test]
fn other_agent_programs_are_named() {
    let env = TestEnv::new();
    install(&env, "opencode", "echo 1.18.33");
    install(&env, "codex", "exit 1");
    let repository = repository(&env, MAKE);
    let ran = run(&env, repository.path(), &["init", "--yes"]);
    let also: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("also")).collect();
    let expected = "also      opencode 1.18.33, for a provider that serves /v1/chat/completions";
    assert_eq!(also, [expected], "{ran}");
}

#[test]
fn the_base_branch_is_where_the_person_is() {
    let env = TestEnv::new();
    let repository = repository(&env, MAKE);
    let file = repository.path().join("blueflame.yaml");
    let branch = || {
        run(&env, repository.path(), &["init", "--yes"]).success();
        let written = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let line = written.lines().find(|line| line.contains("base_branch")).unwrap();
        line.trim().strip_prefix("base_branch: ").unwrap().to_owned()
    };
    assert_eq!(branch(), "main");
    repository.git(["checkout", "--quiet", "-b", "release/1.0"]);
    assert_eq!(branch(), "release/1.0");
    repository.git(["checkout", "--quiet", "--detach"]);
    assert_eq!(branch(), "main");
    repository.git(["branch", "--quiet", "-m", "main", "trunk"]);
    repository.git(["branch", "--quiet", "-D", "release/1.0"]);
    assert_eq!(branch(), "trunk");
}

#[test]
fn a_named_file_says_where_the_repository_is() {
    let env = TestEnv::new();
    let repository = repository(&env, MAKE);
    let beside = env.path("beside.yaml");
    let name = beside.to_str().unwrap();
    run(&env, repository.path(), &["init", "--yes", "--config", name]).success();
    let check = run(&env, env.root(), &["config", "check", "--config", name]);
    assert_eq!(check.code(), Some(0), "{check}");
    assert!(check.stderr.contains("the repository `$ROOT/project`"), "{check}");
    assert_eq!(repository.git(["status", "--porcelain"]), "");
    let nowhere = env.path("no/such/f.yaml");
    let ran =
        run(&env, repository.path(), &["init", "--yes", "--config", nowhere.to_str().unwrap()]);
    assert_eq!(ran.code(), Some(2), "{ran}");
}

#[test]
fn places_without_a_project_are_explained() {
    let env = TestEnv::new();
    insta::assert_snapshot!(run(&env, env.root(), &["init", "--yes"]), @"
    $ blueflame init --yes
    exit 3
    --- stderr
    error: `$ROOT` is not a git repository
    hint: go to your project, or begin one with `git init`
    ");
    let empty = env.repository("empty");
    insta::assert_snapshot!(run(&env, empty.path(), &["init", "--yes"]), @r#"
    $ blueflame init --yes
    exit 3
    --- stderr
    error: the repository has no commit to start from
    hint: make a first one: `git add --all`, then `git commit -m "first"`
    "#);
    assert!(!empty.path().join("blueflame.yaml").exists());
    insta::assert_snapshot!(run(&env, &empty.path().join(".git"), &["init", "--yes"]), @"
    $ blueflame init --yes
    exit 3
    --- stderr
    error: `$ROOT/empty/.git` is inside of git's own directory
    hint: go to the files of the project
    ");
    empty.git(["clone", "--quiet", "--bare", ".", "../bare.git"]);
    insta::assert_snapshot!(run(&env, &env.path("bare.git"), &["init", "--yes"]), @"
    $ blueflame init --yes
    exit 3
    --- stderr
    error: `$ROOT/bare.git` is a bare repository: it has no files
    hint: clone it, and call `blueflame init` in the clone
    ");
}

//! What `blueflame config` says about good and broken files.

use std::path::{Path, PathBuf};

use blueflame_testkit::TestEnv;

/// A directory of its own, with nothing of the surroundings.
struct Place {
    env: TestEnv,
}

impl Place {
    fn without_repository() -> Self {
        let place = Place { env: TestEnv::new() };
        std::fs::create_dir(place.path()).unwrap();
        place
    }

    fn new() -> Self {
        let place = Self::without_repository();
        place.env.repository("project").commit("first");
        place
    }

    fn with_config(text: &[u8]) -> Self {
        let place = Self::new();
        std::fs::write(place.path().join("blueflame.yaml"), text).unwrap();
        place
    }

    fn path(&self) -> PathBuf {
        self.env.path("project")
    }

    /// All that a command shows, with its exit code.
    fn run(&self, arguments: &[&str]) -> String {
        self.run_in(&self.path(), arguments)
    }

    fn run_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = self.env.command(env!("CARGO_BIN_EXE_blueflame"));
        command.args(arguments).current_dir(directory);
        let ran = self.env.run(command);
        let stable = |text: &str| text.replace("$ROOT/project", "[REPO]");
        let (out, err) = (stable(&ran.stdout), stable(&ran.stderr));
        let out = if out.is_empty() { out } else { format!("--- stdout\n{out}") };
        format!("{out}{err}--- exit code {}\n", ran.code().unwrap_or(-1))
    }
}

/// The files of a directory beside the tests, sorted by name.
pub fn samples(directory: &str) -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let mut files: Vec<(String, PathBuf)> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    files.sort();
    files
}

#[test]
fn broken_files_are_explained() {
    let samples = samples("configs");
    assert!(samples.len() >= 24, "only {} samples", samples.len());
    for (name, path) in samples {
        let text = std::fs::read(path).unwrap();
        let shown = Place::with_config(&text).run(&["config", "check"]);
        insta::assert_snapshot!(format!("config_{name}"), shown);
        for jargon in ["u32", "u64", "f64", "i64", "invalid type", "variant", "serde", "struct"] {
            assert!(!shown.contains(jargon), "{name} says `{jargon}`:\n{shown}");
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_explained() {
    let place = Place::with_config(b"schema_version: 2\nproject:\n  name: caf\xe9\n");
    insta::assert_snapshot!(place.run(&["config", "check"]), @r"
      x the file is not UTF-8 text: line 3, column 12
       ,-[blueflame.yaml:3:12]
     2 | project:
     3 |   name: caf�
       :            |
       :            `-- this byte is not text
       `----
      help: save the file in UTF-8 encoding

    1 problem in blueflame.yaml
    --- exit code 2
    ");
}

#[test]
fn files_that_cannot_be_read_are_explained() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["config", "check"]));
    insta::assert_snapshot!(place.run(&["config", "check", "--config", "other.yaml"]));
    std::fs::create_dir(place.path().join("dir")).unwrap();
    insta::assert_snapshot!(place.run(&["--config", "dir", "config", "check"]));
}

#[test]
fn a_huge_file_is_refused() {
    let place = Place::with_config(&vec![b'#'; 3 << 20]);
    insta::assert_snapshot!(place.run(&["config", "check"]));
}

#[test]
fn a_directory_without_a_repository_is_explained() {
    let place = Place::without_repository();
    std::fs::write(place.path().join("blueflame.yaml"), "schema_version: 2\n").unwrap();
    insta::assert_snapshot!(place.run(&["config", "check"]));
    std::fs::write(place.path().join("blueflame.yaml"), "project:\n  repo: ../elsewhere\n")
        .unwrap();
    insta::assert_snapshot!(place.run(&["config", "check"]));
}

#[test]
fn a_repository_without_a_commit_is_explained() {
    let place = Place::without_repository();
    place.env.repository("project");
    std::fs::write(place.path().join("blueflame.yaml"), "schema_version: 2\n").unwrap();
    insta::assert_snapshot!(place.run(&["config", "check"]));
}

#[test]
fn a_good_file_is_called_good_from_any_directory() {
    let place = Place::with_config(b"schema_version: 2\n");
    insta::assert_snapshot!(place.run(&["config", "check"]));
    let below = place.path().join("src");
    std::fs::create_dir(&below).unwrap();
    assert!(place.run_in(&below, &["config", "check"]).ends_with("--- exit code 0\n"));
}

#[test]
fn the_base_branch_is_looked_up_in_the_repository_that_the_work_lands_in() {
    let place = Place::new();
    let elsewhere = place.env.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("blueflame.yaml"), "schema_version: 2\n").unwrap();
    let mut git = place.env.command("git");
    git.args(["config", "core.worktree"]).arg(&elsewhere).current_dir(place.path());
    place.env.run(git).success();
    // The files are where there is no repository.
    let said = place.run(&["config", "check"]);
    assert!(said.contains("elsewhere") && said.ends_with("--- exit code 0\n"), "{said}");
    assert!(!said.contains("cannot be looked up"), "{said}");
}

#[test]
fn nothing_is_judged_by_a_base_branch_that_cannot_be_looked_up() {
    let place = Place::with_config(b"schema_version: 2\n");
    let path = std::env::var_os("PATH").unwrap();
    let mut places = std::env::split_paths(&path).map(|place| place.join("git"));
    let git = places.find(|git| git.is_file()).unwrap();
    let programs = place.env.path("programs");
    std::fs::create_dir(&programs).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--end-of-options*) exit 128;; esac\nexec '{}' \"$@\"\n",
        git.display()
    );
    std::fs::write(programs.join("git"), script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(programs.join("git"), executable).unwrap();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)));
    for how in [&["cleanup", "--dry-run"][..], &["cleanup"]] {
        let mut command = place.env.command(env!("CARGO_BIN_EXE_blueflame"));
        command.args(how).current_dir(place.path()).env("PATH", path.as_ref().unwrap());
        let ran = place.env.run(command);
        assert_eq!(ran.code(), Some(70), "{}", ran.stderr);
        assert!(ran.stderr.contains("cannot be looked up"), "{}", ran.stderr);
        assert!(ran.stderr.contains("where the base branch is cannot be told"), "{}", ran.stderr);
    }
}

#[test]
fn an_older_file_is_explained() {
    let place = Place::with_config(b"schema_version: 1\nproject:\n  name: old\n");
    insta::assert_snapshot!(place.run(&["config", "check"]));
}

#[test]
fn what_show_prints_passes_check_and_shows_the_same() {
    let place = Place::with_config(b"schema_version: 1\nlimits:\n  max_session_tokens: 1000\n");
    let shown = place.run(&["config", "show"]);
    let yaml = shown.strip_prefix("--- stdout\n").unwrap();
    let yaml = yaml.strip_suffix("--- exit code 0\n").unwrap();
    assert!(yaml.starts_with("schema_version: 2\n"), "{yaml}");
    let again = Place::with_config(yaml.as_bytes());
    assert!(again.run(&["config", "check"]).starts_with("blueflame.yaml is good"));
    assert_eq!(again.run(&["config", "show"]), shown);
}

#[test]
fn the_schema_is_json_on_standard_output() {
    let shown = Place::without_repository().run(&["config", "schema"]);
    let json = shown.strip_prefix("--- stdout\n").unwrap();
    let json = json.strip_suffix("--- exit code 0\n").unwrap();
    let schema: serde_json::Value = serde_json::from_str(json).unwrap();
    assert!(json.starts_with("{\n  \"$schema\": "), "{json}");
    assert_eq!(schema["additionalProperties"], false);
}

/// A model without a price is a warning where a budget is in dollars: of a role, and of
/// an executor that some role may have.
#[test]
fn models_without_a_price_are_named_wherever_they_stand() {
    let config = "schema_version: 2\n\
        project: {base_branch: main}\n\
        executors:\n  \
          default: embedded\n  \
          fallback: [codex]\n  \
          models: {codex: strange-1, embedded: sonnet, opencode: strange-2}\n\
        gateway: {upstream: 'http://127.0.0.1:1'}\n\
        models: {worker: strange-3}\n";
    let said = Place::with_config(config.as_bytes()).run(&["config", "check"]);
    for (path, model) in [("executors.models.codex", "strange-1"), ("models.worker", "strange-3")] {
        let line =
            format!("`{path}` has no known price, but its budget is in dollars, got `{model}`");
        assert!(said.contains(&line), "{said}");
    }
    // Nobody uses that one, and the other has a price.
    assert!(!said.contains("got `strange-2`") && !said.contains("models.embedded"), "{said}");
    let priced = config.replace(
        "gateway: {",
        "gateway: {prices: {strange-1: {input: 1, output: 2}, strange-3: {input: 1, output: 2}}, ",
    );
    let said = Place::with_config(priced.as_bytes()).run(&["config", "check"]);
    assert!(!said.contains("no known price"), "{said}");
}

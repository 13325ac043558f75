//! The example file and the documentation keep up with the program.

use std::path::{Path, PathBuf};

use blueflame::executor::{self, abilities};
use blueflame::people::Decisions;
use blueflame::prompts::Part;
use blueflame_core::answer;
use blueflame_core::config::{self, ConfigFile};
use blueflame_core::plan::{self, Plan, PlanContext};
use blueflame_core::policy::Rule;

fn document(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn the_example_has_every_key_at_its_default() {
    let text = document("blueflame.example.yaml");
    let reading = config::read(text.as_bytes());
    assert_eq!(reading.problems, []);
    assert!(reading.config.is_some());

    let written: serde_json::Value = serde_json::to_value(reading.file.as_ref().unwrap()).unwrap();
    for path in config::key_paths() {
        let own = match path.split('.').take(2).last() {
            Some("prices") => "my-model",
            Some("accounts") => "my-account",
            _ => "my-agent",
        };
        let pointer = format!("/{}", path.replace('*', own).replace('.', "/"));
        assert!(written.pointer(&pointer).is_some(), "the example lacks {path}");
        let key = path.rsplit('.').next().unwrap();
        let line = text.lines().any(|line| line.trim_start().starts_with(&format!("{key}:")));
        assert!(line, "the example does not write {path}");
    }

    // These are stated as differing; everything else is the default.
    let mut file = reading.file.unwrap();
    file.executors = config::file::Executors::default();
    file.gateway.prices.clear();
    file.gateway.accounts.clear();
    file.gateway.ca_file = None;
    assert_eq!(file, ConfigFile::default());
}

/// The table of abilities stands between a blank line and a blank line, and is the
/// first one of its page.
#[test]
fn the_table_of_abilities_is_what_the_code_says() {
    let described = config::CustomExecutor {
        command: vec!["program".to_owned()],
        dialect: config::Dialect::default(),
    };
    let own = executor::choose("your own", Some(&described)).unwrap();
    let all: Vec<&dyn executor::Executor> = executor::ALL.into_iter().chain([&*own]).collect();
    let table = abilities::markdown(&all);
    let page = document("docs/executors.md");
    let start = page.find("\n| ").unwrap() + 1;
    let end = start + page[start..].find("\n\n").unwrap() + 1;
    if std::env::var_os("BLUEFLAME_WRITE_DOCS").is_some() {
        let page = format!("{}{table}{}", &page[..start], &page[end..]);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        return std::fs::write(root.join("docs/executors.md"), page).unwrap();
    }
    assert_eq!(&page[start..end], table, "BLUEFLAME_WRITE_DOCS=1 writes it");
}

/// All files below a directory.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// They are named from the `src` of their crate on, or of what a section is about.
#[test]
fn every_file_that_the_architecture_names_is_there() {
    let mut there = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut there);
    let text = document("ARCHITECTURE.md");
    let is_source = |name: &&str| Path::new(name).extension().is_some_and(|it| it == "rs");
    for name in text.split('`').skip(1).step_by(2).filter(is_source) {
        assert!(there.iter().any(|path| path.ends_with(name)), "there is no `{name}`");
    }
}

#[test]
fn every_key_is_documented() {
    let text = document("docs/configuration.md");
    for path in config::key_paths() {
        assert!(text.contains(&format!("`{path}`")), "docs/configuration.md lacks `{path}`");
    }
}

#[test]
fn every_key_of_a_plan_is_documented_and_the_example_is_a_plan() {
    let text = document("docs/plans.md");
    let schema = plan::schema();
    let keys = schema.pointer("/$defs/TaskFile/properties").unwrap();
    for key in keys.as_object().unwrap().keys() {
        assert!(text.contains(&format!("| `{key}` |")), "docs/plans.md lacks `{key}`");
    }
    let example = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = config::read(b"schema_version: 2\n").config.unwrap();
    let (plan, warnings) = Plan::read(example.as_bytes(), &PlanContext::of(&config)).unwrap();
    assert_eq!((plan.tasks.len(), warnings), (2, Vec::new()));
}

#[test]
fn every_part_of_a_prompt_is_documented_with_its_limit() {
    let text = document("docs/prompts.md");
    for part in Part::ALL {
        let row = format!("| `{}` | {} KiB |", part.name(), part.limit() / 1024);
        assert!(text.contains(&row), "docs/prompts.md lacks {row}");
    }
    for schema in [answer::verdict_schema(), answer::merger_report_schema()] {
        let status = schema["properties"]["status"]["enum"].as_array().unwrap();
        let words: Vec<String> =
            status.iter().map(|word| format!("`{}`", word.as_str().unwrap())).collect();
        let keys = format!("`status` ({}), `notes`, `issues`", words.join(", "));
        assert!(text.contains(&keys), "docs/prompts.md lacks {keys}");
    }
}

/// What the embedded agent takes is in its documentation: each option, each
/// tool with each of its inputs.
#[test]
fn the_embedded_agent_is_documented() {
    use clap::CommandFactory;
    let text = document("docs/embedded-agent.md");
    let mut cli = blueflame::cli::Cli::command();
    cli.build();
    let agent = cli.find_subcommand("__agent").unwrap();
    let options = agent.get_arguments().filter(|option| !option.is_hide_set());
    let options = options.filter(|option| !option.is_global_set());
    for option in options.filter_map(|option| option.get_long()).filter(|name| *name != "help") {
        assert!(text.contains(&format!("--{option}")), "docs/embedded-agent.md lacks --{option}");
    }
    for definition in blueflame::agent::tool_definitions() {
        let name = definition["name"].as_str().unwrap();
        let row = text.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
        for input in definition["input_schema"]["properties"].as_object().unwrap().keys() {
            assert!(row.contains(&format!("`{input}`")), "the row of {name} lacks `{input}`");
        }
    }
}

/// Files that earlier programs accepted are accepted for ever, with the same
/// meaning; these samples are never changed.
#[test]
fn files_of_every_version_are_still_read() {
    for (sample, notes) in [("config_v1.yaml", 6), ("config_v2.yaml", 0)] {
        let text = document(&format!("crates/blueflame/tests/samples/{sample}"));
        let reading = config::read(text.as_bytes());
        assert_eq!(reading.problems, [], "{sample}");
        assert_eq!(reading.notes.len(), notes, "{sample}");
        assert_eq!(reading.file.unwrap(), ConfigFile::default(), "{sample}");
    }
}

#[test]
fn every_rule_of_the_policy_is_documented() {
    let text = document("docs/policy.md");
    for rule in Rule::ALL {
        let row = format!("| `{}` | {} |", rule.name(), rule.meaning());
        assert!(text.contains(&row), "docs/policy.md lacks\n{row}");
    }
}

#[test]
fn the_decisions_file_of_the_documentation_is_one() {
    let text = document("docs/unattended.md");
    let example = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let read = |text: &str| Decisions::read(text.as_bytes(), Path::new("decisions.yaml"));
    assert_eq!(read(example).unwrap().unused().len(), 8);
    // Every answer in the table is taken.
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (Some(key), Some(answers)) = (cells.next(), cells.next()) else { continue };
        for answer in answers.split('`').skip(1).step_by(2) {
            let file = match key.trim_matches('`') {
                "changesets`, by group" => format!("changesets: {{auth: {answer}}}"),
                key => format!("{key}: {}", answer.replace("[...]", "[src/]")),
            };
            assert!(read(&file).is_ok(), "{file}: {:?}", read(&file).unwrap_err());
        }
    }
}

/// Every test that `docs/verification.md` names is there.
#[test]
fn the_tests_that_are_named_exist() {
    let mut sources = String::new();
    for file in tracked("*.rs") {
        sources.push_str(&document(&file));
    }
    let text = document("docs/verification.md");
    let is_test = |word: &&str| {
        word.matches('_').count() >= 3
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 50, "only {} tests are named", named.len());
    for name in named {
        // Contract tests are run once for each executor.
        let found = ["()", "(agent: Agent)"]
            .iter()
            .any(|inputs| sources.contains(&format!("fn {name}{inputs}")));
        assert!(found, "there is no test `{name}`");
    }
}

/// Links between the documents lead somewhere.
#[test]
fn links_between_documents_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in tracked("*.md") {
        let text = document(&file);
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let target = link.split('#').next().unwrap();
            let path = root.join(&file).parent().unwrap().join(target);
            assert!(path.exists(), "{file} links to {link}");
        }
    }
}

/// The files of the repository with such a name.
fn tracked(pattern: &str) -> Vec<String> {
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", pattern]);
    git.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let output = git.output().unwrap();
    assert!(output.status.success());
    let files = String::from_utf8(output.stdout).unwrap();
    files.lines().map(str::to_owned).filter(|file| !file.is_empty()).collect()
}

//! The first `blueflame.yaml` of a repository, in words.
//!
//! Only what differs from the defaults or what people will want to touch, each
//! with a comment. It has no opinion of its own: it writes what a survey found.

use std::fmt::Write as _;
use std::path::Path;

use crate::survey::Survey;

/// Which agent program was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub executor: &'static str,
    pub why: &'static str,
}

/// The commands of git that workers need, as in the defaults.
const GIT: [&str; 5] = ["git diff", "git status", "git log", "git add", "git commit"];

/// The text of the file. `repository` is written if it is not the directory of
/// the file.
pub fn text(survey: &Survey, chosen: &Chosen, repository: Option<&Path>) -> String {
    let mut file = Text::default();
    file.line(
        0,
        "# How Blue Flame works on this repository. `blueflame init` wrote it; it is yours.",
    );
    file.line(0, "# What is not here has its default: `blueflame config show` prints all of it,");
    file.line(0, "# `blueflame config check` checks it, and docs/configuration.md of Blue Flame explains it.");
    file.line(0, "schema_version: 2");

    file.section("project");
    if let Some(repository) = repository {
        file.comment("The repository, from the directory of this file.");
        file.value("repo", &quoted(&repository.display().to_string()));
    }
    file.comment("The branch that work starts from and lands on.");
    file.value("base_branch", &quoted(&survey.base_branch));

    file.section("executors");
    file.comment(&format!(
        "Who works: claude, or embedded, which needs only a key. {}",
        chosen.why
    ));
    file.value("default", chosen.executor);

    file.section("gateway");
    file.comment("The variable that holds your key. Agents never see it.");
    file.value("credential_env", "ANTHROPIC_API_KEY");
    file.comment("true: without a key, the login that claude has is used.");
    file.value("passthrough_auth", "false");

    file.section("limits");
    file.comment("Most dollars for one session; 0 is unlimited.");
    file.value("max_session_cost_usd", "10.00");
    file.comment("How long one agent may run.");
    file.value("agent_timeout", "300s");

    file.section("concurrency");
    file.comment("Workers at the same time, 1 to 8.");
    file.value("development", "4");

    file.section("permissions");
    file.comment("What agents may change; `blueflame policy check` tells what a rule means.");
    file.list(1, "allowed_paths", &survey.allowed);
    file.line(1, "bash_rules:");
    file.line(2, "# Beginnings of the commands that workers may run.");
    let git = GIT.iter().map(|command| (*command).to_owned());
    let commands: Vec<String> = survey.commands.iter().cloned().chain(git).collect();
    file.list(2, "allowed_commands", &commands);

    if !survey.scratch.is_empty() || !survey.share.is_empty() {
        file.section("worktree");
    }
    if !survey.scratch.is_empty() {
        file.comment("Build output: every task may write it, and it is never committed.");
        file.list(1, "scratch", &survey.scratch);
    }
    if !survey.share.is_empty() {
        file.comment("Installed dependencies, which each working copy gets from yours.");
        file.list(1, "share", &survey.share);
    }
    if !survey.read.is_empty() {
        file.section("sandbox");
        file.comment("Directories outside of the repository that builds read.");
        file.list(1, "read", &survey.read);
    }

    file.section("validation");
    file.comment("Must succeed on a clean checkout of each task's work, before a validator looks.");
    file.list(1, "acceptance", &survey.tests);
    let checks: Vec<String> = survey.tests.iter().chain(&survey.lints).cloned().collect();
    if !checks.is_empty() {
        file.line(1, "validator_diagnostics:");
        file.line(2, "# What validators may run to judge a task, word for word.");
        file.list(2, "commands", &checks);
    }
    if !survey.sources.is_empty() {
        file.line(1, "require_tests:");
        file.line(2, "# A task that changes one of these files ...");
        file.list(2, "source_patterns", &survey.sources);
        file.line(2, "# ... has to change one of these as well; `enabled: false` ends that.");
        file.list(2, "test_patterns", &survey.test_files);
    }

    file.section("merge");
    file.comment("Must succeed on the merged tree before it lands.");
    file.list(1, "verify", &checks);
    file.0
}

/// A YAML file that is written from top to bottom.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{:indent$}{text}", "", indent = 2 * depth);
    }

    fn section(&mut self, name: &str) {
        self.0.push('\n');
        self.line(0, &format!("{name}:"));
    }

    fn comment(&mut self, text: &str) {
        self.line(1, &format!("# {text}"));
    }

    fn value(&mut self, key: &str, value: &str) {
        self.line(1, &format!("{key}: {value}"));
    }

    fn list(&mut self, depth: usize, key: &str, values: &[String]) {
        if values.is_empty() {
            self.line(depth, &format!("{key}: []"));
            return;
        }
        self.line(depth, &format!("{key}:"));
        for value in values {
            self.line(depth + 1, &format!("- {}", quoted(value)));
        }
    }
}

/// A text as YAML reads it back, whatever is in it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    // `true`, `null` and their like are words that mean something else.
    let taken = ["true", "false", "null", "yes", "no", "on", "off"];
    if word && !taken.contains(&text.to_ascii_lowercase().as_str()) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use blueflame_core::config;

    use super::*;

    #[test]
    fn whatever_was_found_is_read_back_as_it_was() {
        for name in ["main", "true", "1.0", "it's", "a: b", "# x", "Übung", "feature/x", "no"] {
            let survey = Survey {
                base_branch: name.replace(' ', "_"),
                allowed: vec![format!("{name}/**")],
                ..Survey::default()
            };
            let chosen = Chosen { executor: "embedded", why: "" };
            let written = text(&survey, &chosen, Some(Path::new(name)));
            let file = config::read(written.as_bytes()).file;
            let file = file.unwrap_or_else(|| panic!("cannot be read:\n{written}"));
            assert_eq!(file.project.base_branch.value, survey.base_branch);
            assert_eq!(file.project.repo.value, name);
            assert_eq!(file.permissions.allowed_paths[0].value, survey.allowed[0]);
        }
    }
}

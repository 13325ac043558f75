//! What commit messages have to look like, as agents are told.

use blueflame_core::config::CommitFormat;
use blueflame_core::ids::TaskId;

use crate::narrate::plain;

/// The pattern for the first line, if there is one.
pub(super) fn pattern(format: Option<&CommitFormat>) -> Option<String> {
    format.map(|format| plain(format.pattern.as_str()).into_owned())
}

/// A first line for this task that fits the pattern, if one can be told.
pub(super) fn example(format: Option<&CommitFormat>, task: &TaskId) -> Option<String> {
    let Some(format) = format else { return Some(format!("feat({task}): what the commit does")) };
    let fits = |text: &String| format.pattern.is_match(text);
    let given = format.example.as_ref();
    let renamed = given.and_then(|example| with_task(example, task)).filter(fits);
    let example = renamed.or_else(|| {
        // An example that names no task is as good for this one.
        given.filter(|example| with_task(example, task).is_none()).cloned()
    });
    example.map(|example| plain(&example).into_owned())
}

/// The example with this task's id in place of the one in it.
fn with_task(example: &str, task: &TaskId) -> Option<String> {
    let start = example.find("task-")?;
    let digits = &example[start + "task-".len()..];
    let end = example.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (end > start + "task-".len()).then(|| format!("{}{task}{}", &example[..start], &example[end..]))
}

#[cfg(test)]
mod tests {
    use blueflame_core::config;

    use super::*;

    fn told(pattern: &str, given: &str, task: &str) -> Option<String> {
        let file = format!(
            "schema_version: 2\nvalidation: {{commit_format: {{pattern: '{pattern}', \
             example: '{given}'}}}}\n"
        );
        let config = config::read(file.as_bytes()).into_result().unwrap().0;
        let task = TaskId::new(task).unwrap();
        example(config.validation.commit_format.as_ref(), &task)
    }

    #[test]
    fn the_example_names_the_task_if_that_fits_the_pattern() {
        let usual = r"^(feat|fix)\(task-\d+\): .+";
        for (pattern, given, task, expected) in [
            (usual, "fix(task-001): x", "task-7", Some("fix(task-7): x")),
            (usual, "fix(task-001): x", "login", None),
            (usual, "", "task-7", None),
            (".+", "PROJ-1 do it", "task-7", Some("PROJ-1 do it")),
            ("", "", "login", Some("feat(login): what the commit does")),
        ] {
            assert_eq!(told(pattern, given, task).as_deref(), expected, "{pattern} {task}");
        }
    }
}

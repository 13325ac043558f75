//! `blueflame run --dry-run`: the plan on paper.

use std::fmt::Write as _;
use std::process::ExitCode;

use blueflame_core::plan::Plan;

use crate::config_file::Loaded;
use crate::failure::Failure;
use crate::narrate::plain;
use crate::stdout;

/// Shows what would be done. Starts nothing and writes nothing.
pub fn show(loaded: &Loaded, plan: Option<&Plan>) -> Result<ExitCode, Failure> {
    let Some(plan) = plan else { return Ok(ExitCode::SUCCESS) };
    let config = &loaded.config;
    let groups: Vec<String> = plan.group_order().iter().map(ToString::to_string).collect();
    let mut page = format!(
        "{} tasks, up to {} at a time, on `{}`\nchangesets in this order: {}\n\n",
        plan.tasks.len(),
        config.concurrency.workers,
        config.project.base_branch,
        groups.join(", ")
    );
    for at in plan.order() {
        let task = &plan.tasks[at];
        let list = |items: Vec<String>| {
            if items.is_empty() { "nothing".to_owned() } else { items.join(", ") }
        };
        let needs = list(task.dependencies.iter().map(ToString::to_string).collect());
        let files = list(task.file_locks.iter().map(ToString::to_string).collect());
        let _ = writeln!(page, "{} [{}] {}", task.id, task.group, plain(&task.title));
        let _ = writeln!(page, "    needs {needs}; has to itself {files}");
    }
    for (what, commands) in [
        ("on each finished task", &config.validation.acceptance),
        ("on each merged tree", &config.merge.verify),
    ] {
        if !commands.is_empty() {
            let _ = writeln!(page, "\nrun {what}: {}", commands.join("; "));
        }
    }
    stdout::write(&page)?;
    Ok(ExitCode::SUCCESS)
}

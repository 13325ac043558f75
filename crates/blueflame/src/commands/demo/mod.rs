//! `blueflame demo`: a whole session in a small repository of its own, with a
//! scripted model. Everything but the model is real.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::stderr::eprintln;

use super::run::{self, Asking};
use crate::cli::Demo;
use crate::config_file;
use crate::failure::{Failure, Kind};
use crate::file_system::Remote;
use crate::store::{Store, WritableStore};

/// The files of the repository.
const FILES: [(&str, &str); 5] = [
    ("README.md", include_str!("project/README.md")),
    ("AGENTS.md", include_str!("project/AGENTS.md")),
    ("src/greet.sh", include_str!("project/greet.sh")),
    ("check.sh", include_str!("project/check.sh")),
    ("blueflame.yaml", include_str!("project/blueflame.yaml")),
];

/// What the model says; beside the repository, so that no agent reads it.
const SCRIPT: &str = include_str!("project/script.yaml");

const GOAL: &str = "Let the greeting greet by name, say goodbye too, and document both.";

pub fn run(arguments: &Demo) -> Result<ExitCode, Failure> {
    // Removed when the session is over, unless it is to be kept or can go on.
    let mut temporary = None;
    let place = if let Some(directory) = &arguments.keep {
        directory.clone()
    } else {
        let made = tempfile::Builder::new()
            .prefix("blueflame-demo-")
            .tempdir()
            .map_err(|error| Failure::new(Kind::Missing, error))?;
        temporary.insert(made).path().to_owned()
    };
    let project = place.join("project");
    let fresh = !project.exists();
    if fresh {
        build(&place, &project)?;
    }
    let project = project.canonicalize().map_err(|error| Failure::new(Kind::Internal, error))?;
    eprintln!(
        "demo: a small project in {}; the model is scripted, all else is real",
        project.display()
    );
    let mut loaded = config_file::load(Some(&project.join("blueflame.yaml")))?;
    if let Some(executor) = &arguments.executor {
        run::use_executor(&mut loaded.config, executor)?;
    }
    let store = Store::find(&project)?.for_writing(Remote::Refuse)?;
    let asking = Asking::new(None, arguments.yes, false);
    let unfinished = crate::session::unfinished(store.store())?;
    let ran = match unfinished {
        Some(id) if !fresh => {
            let directory = store.store().session(&id);
            run::go_on(loaded, &store, directory, &asking, false)
        }
        _ => run::start(loaded, &store, GOAL.to_owned(), None, &asking, false),
    };
    let code = match ran {
        Ok(code) => code,
        Err(failure) if can_go_on(&store) => {
            let place = temporary.map_or(place, tempfile::TempDir::keep);
            return Err(failure.hint(format!(
                "in its own directory: `cd {}`; or `blueflame demo --keep {}`",
                project.display(),
                place.display()
            )));
        }
        Err(failure) => return Err(failure),
    };
    show_history(&project)?;
    if arguments.keep.is_some() {
        eprintln!("\nIt is still there: cd {}; blueflame log; blueflame cost", project.display());
    }
    Ok(code)
}

fn can_go_on(store: &WritableStore) -> bool {
    crate::session::unfinished(store.store()).is_ok_and(|left| left.is_some())
}

fn build(place: &Path, project: &Path) -> Result<(), Failure> {
    let failed = |path: PathBuf| {
        move |error: std::io::Error| {
            Failure::new(Kind::Missing, format!("cannot make `{}`: {error}", path.display()))
        }
    };
    for (name, text) in FILES {
        let path = project.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed(parent.to_owned()))?;
        }
        fs::write(&path, text).map_err(failed(path.clone()))?;
    }
    let script = place.join("script.yaml");
    fs::write(&script, SCRIPT).map_err(failed(script.clone()))?;
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=Demo",
            "-c",
            "user.email=demo@localhost",
            "commit",
            "-q",
            "-m",
            "chore: a small project",
        ],
    ] {
        git(project, arguments, Stdio::null())?;
    }
    Ok(())
}

/// What landed, as git tells it.
fn show_history(project: &Path) -> Result<(), Failure> {
    eprintln!("\nWhat is on `main` now:");
    git(
        project,
        &[
            "--no-pager",
            "log",
            "--graph",
            "--format=%h %s%n  %(trailers:key=Blueflame-Task,key=Blueflame-Cost,separator=%x2C )",
            "main",
        ],
        Stdio::inherit(),
    )
}

fn git(project: &Path, arguments: &[&str], output: Stdio) -> Result<(), Failure> {
    let status = Command::new("git")
        .args(arguments)
        .current_dir(project)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .stdout(output)
        .status()
        .map_err(|error| Failure::new(Kind::Missing, format!("git: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(Kind::Internal, format!("`git {}` failed", arguments.join(" "))))
    }
}

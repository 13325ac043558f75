//! Views of a session for people, in the work tree under `.blueflame/`.
//!
//! They are replaced as a whole and never read back to decide anything; the
//! journal can make them anew at any time. Git is told to ignore them through
//! `.git/info/exclude`, so nothing of the person's changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blueflame_core::projection;
use blueflame_core::state::State;
use blueflame_core::yaml;

use crate::atomic_file::{self, AtomicError, Durability};
use crate::failure::{Failure, Kind};

/// The directory of the views in the work tree.
pub const DIRECTORY: &str = ".blueflame";

const IGNORED: &str = "/.blueflame/";

#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    #[error(transparent)]
    Replace(#[from] AtomicError),
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot put the state into words: {0}")]
    Encode(String),
}

impl From<ProjectionError> for Failure {
    fn from(error: ProjectionError) -> Failure {
        Failure::new(Kind::Internal, &error)
    }
}

/// Where the views of one work tree go.
#[derive(Clone, Debug)]
pub struct Projections {
    directory: PathBuf,
    tasks: PathBuf,
    exclude: PathBuf,
}

impl Projections {
    /// For a work tree, its shared git directory, and the configured place of
    /// the task file inside the work tree.
    pub fn new(work_tree: &Path, git_dir: &Path, tasks_file: &Path) -> Self {
        Projections {
            directory: work_tree.join(DIRECTORY),
            tasks: work_tree.join(tasks_file),
            exclude: git_dir.join("info/exclude"),
        }
    }

    /// Writes all of them and lists where they are.
    pub fn write(&self, state: &State) -> Result<Vec<PathBuf>, ProjectionError> {
        self.ignore()?;
        let header = "# Made by Blue Flame from its journal; edits count only at the plan gate.\n";
        let tasks = yaml::to_string(&projection::tasks_file(state)).map_err(encode)?;
        let views = [
            (self.tasks.clone(), format!("{header}{tasks}")),
            (self.directory.join("agents.json"), json(&projection::agents_file(state))?),
            (self.directory.join("status.json"), json(&projection::status_file(state))?),
        ];
        let mut written = Vec::new();
        for (path, text) in views {
            let parent = path.parent().unwrap_or(&self.directory);
            fs::create_dir_all(parent).map_err(failed("make", parent))?;
            atomic_file::replace(&path, text.as_bytes(), Durability::Process)?;
            written.push(path);
        }
        Ok(written)
    }

    /// Has git ignore the directory, once.
    fn ignore(&self) -> Result<(), ProjectionError> {
        let mut text = match fs::read_to_string(&self.exclude) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed("read", &self.exclude)(error)),
        };
        if text.lines().any(|line| line.trim() == IGNORED) {
            return Ok(());
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(IGNORED);
        text.push('\n');
        if let Some(parent) = self.exclude.parent() {
            fs::create_dir_all(parent).map_err(failed("make", parent))?;
        }
        atomic_file::replace(&self.exclude, text.as_bytes(), Durability::Process)?;
        Ok(())
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, ProjectionError> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(encode)
}

fn encode(error: impl Into<Box<dyn std::error::Error>>) -> ProjectionError {
    ProjectionError::Encode(error.into().to_string())
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ProjectionError + use<> {
    let path = path.to_owned();
    move |source| ProjectionError::Io { step, path, source }
}

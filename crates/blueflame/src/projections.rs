//! Views of a session for people, in the work tree under `.blueflame/`.
//!
//! They are replaced as a whole and never read back to decide anything; the
//! journal can make them anew at any time. Git is told to ignore them through
//! `.git/info/exclude`, and a task file that is the person's own is refused, so
//! nothing of theirs changes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use blueflame_core::projection;
use blueflame_core::state::State;
use blueflame_core::yaml;

use crate::atomic_file::{self, AtomicError, Durability};
use crate::exclude::{self, ExcludeError};
use crate::failure::{Failure, Kind};

/// The directory of the views in the work tree.
pub const DIRECTORY: &str = ".blueflame";

/// The first line of the task file, by which we know it again as ours.
const HEADER: &str = "# Made by Blue Flame from its journal; edits count only at the plan gate.\n";

#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    #[error(transparent)]
    Replace(#[from] AtomicError),
    #[error(transparent)]
    Exclude(#[from] ExcludeError),
    #[error("cannot {step} `{}`: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    /// A file that we did not write stands where the task file should go.
    #[error("`{}` is not a task list of Blue Flame, and is left alone", path.display())]
    NotOurs { path: PathBuf },
    #[error("cannot put the state into words: {0}")]
    Encode(String),
}

impl From<ProjectionError> for Failure {
    fn from(error: ProjectionError) -> Failure {
        match &error {
            ProjectionError::NotOurs { .. } => Failure::new(Kind::Usage, &error)
                .hint("give `project.tasks_file` a name of its own, or move the file away"),
            ProjectionError::Replace(_)
            | ProjectionError::Exclude(_)
            | ProjectionError::Io { .. }
            | ProjectionError::Encode(_) => Failure::new(Kind::Internal, &error),
        }
    }
}

/// Where the views of one work tree go.
#[derive(Clone, Debug)]
pub struct Projections {
    directory: PathBuf,
    tasks: PathBuf,
    git_dir: PathBuf,
    /// What git is told to ignore.
    ignored: Vec<String>,
}

impl Projections {
    /// For a work tree, its shared git directory, and the configured place of
    /// the task file inside the work tree.
    pub fn new(work_tree: &Path, git_dir: &Path, tasks_file: &str) -> Self {
        let mut ignored = vec![format!("/{DIRECTORY}/")];
        if !Path::new(tasks_file).starts_with(DIRECTORY) {
            ignored.push(format!("/{tasks_file}"));
        }
        Projections {
            directory: work_tree.join(DIRECTORY),
            tasks: work_tree.join(tasks_file),
            git_dir: git_dir.to_owned(),
            ignored,
        }
    }

    /// Brings all of them up to date and lists where they are.
    pub fn write(&self, state: &State) -> Result<Vec<PathBuf>, ProjectionError> {
        self.check_tasks_file()?;
        exclude::add(&self.git_dir, self.ignored.iter().map(String::as_str))?;
        let tasks = yaml::to_string(&projection::tasks_file(state)).map_err(encode)?;
        let views = [
            (self.tasks.clone(), format!("{HEADER}{tasks}")),
            (self.directory.join("agents.json"), json(&projection::agents_file(state))?),
            (self.directory.join("status.json"), json(&projection::status_file(state))?),
        ];
        let mut written = Vec::new();
        for (path, text) in views {
            // Some are as they were, and looking is far less work than replacing.
            if fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                let parent = path.parent().unwrap_or(&self.directory);
                fs::create_dir_all(parent).map_err(failed("make", parent))?;
                atomic_file::replace(&path, text.as_bytes(), Durability::Process)?;
            }
            written.push(path);
        }
        Ok(written)
    }

    /// Refuses to replace a file that is not ours. All of our own directory is.
    fn check_tasks_file(&self) -> Result<(), ProjectionError> {
        if self.tasks.starts_with(&self.directory) {
            return Ok(());
        }
        let mut start = Vec::new();
        let read = File::open(&self.tasks)
            .and_then(|file| file.take(HEADER.len() as u64).read_to_end(&mut start));
        match read {
            Ok(_) if start == HEADER.as_bytes() => Ok(()),
            Ok(_) => Err(ProjectionError::NotOurs { path: self.tasks.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("read", &self.tasks)(error)),
        }
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

//! Snapshots of unfinished work.
//!
//! They are taken from outside, into a git directory of our own that shares
//! the repository's objects. The agent's git directory is never used: what an
//! agent may have put into its configuration or hooks must not be run.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use blueflame_core::ids::{BadName, Oid};

use super::spec::{Author, Snapshots};
use crate::exclude;
use crate::git;

/// No snapshot takes longer, or it is given up.
const DEADLINE: Duration = Duration::from_secs(120);

/// The name under which the last one is found.
pub const REF: &str = "refs/blueflame/snapshot";

#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot prepare snapshots in `{}`: {source}", path.display())]
    Prepare { path: PathBuf, source: io::Error },
    #[error("`git {step}` could not be run: {source}")]
    NotRun { step: String, source: io::Error },
    #[error("`git {step}` failed: {message}")]
    Failed { step: String, message: String },
    #[error("`git {step}` took longer than {} s", DEADLINE.as_secs())]
    TooSlow { step: String },
    #[error("there is a git repository in `{path}`, and it cannot be left out")]
    Planted { path: String },
    #[error("`git {step}` answered strangely: {source}")]
    Strange { step: String, source: BadName },
}

/// Takes snapshots of one workspace.
#[derive(Clone, Debug)]
pub struct Camera {
    git_dir: PathBuf,
    workspace: PathBuf,
    author: Author,
    start: Oid,
    /// The tree of the last snapshot.
    last: Option<(Oid, Oid)>,
}

impl Camera {
    pub async fn new(
        git_dir: PathBuf,
        workspace: PathBuf,
        author: Author,
        start: Oid,
        spec: &Snapshots,
    ) -> Result<Camera, SnapshotError> {
        let camera = Camera { git_dir, workspace, author, start, last: None };
        let prepared = |source| SnapshotError::Prepare { path: camera.git_dir.clone(), source };
        fs::create_dir_all(&camera.git_dir).map_err(prepared)?;
        camera.git(&["init", "--quiet", "--bare"]).await?;
        let info = camera.git_dir.join("objects/info");
        fs::create_dir_all(&info).map_err(prepared)?;
        let mut alternates = spec.objects.as_os_str().as_encoded_bytes().to_vec();
        alternates.push(b'\n');
        fs::write(info.join("alternates"), alternates).map_err(prepared)?;
        let info = camera.git_dir.join("info");
        fs::create_dir_all(&info).map_err(prepared)?;
        let lines: String = spec.exclude.iter().map(|path| exclude::pattern(path) + "\n").collect();
        fs::write(info.join("exclude"), lines).map_err(prepared)?;
        camera.git(&["read-tree", camera.start.as_str()]).await?;
        Ok(camera)
    }

    /// Takes one if anything has changed since the last, or since the start.
    pub async fn take(&mut self) -> Result<Option<Oid>, SnapshotError> {
        // One that was cut short leaves its lock; nobody else uses the directory.
        let _ = fs::remove_file(self.git_dir.join("index.lock"));
        self.drop_submodules().await?;
        self.git(&["add", "--all", "--ignore-errors", "."]).await?;
        self.drop_submodules().await?;
        self.put_back_submodules().await?;
        let tree = self.oid(&["write-tree"]).await?;
        let before = match &self.last {
            Some((tree, _)) => tree.clone(),
            None => self.oid(&["rev-parse", &format!("{}^{{tree}}", self.start)]).await?,
        };
        if tree == before {
            return Ok(None);
        }
        let message = "unfinished work";
        let commit = self
            .oid(&["commit-tree", "-p", self.start.as_str(), "-m", message, tree.as_str()])
            .await?;
        self.git(&["update-ref", REF, commit.as_str()]).await?;
        self.last = Some((tree, commit.clone()));
        Ok(Some(commit))
    }

    /// The last one.
    pub fn last(&self) -> Option<&Oid> {
        self.last.as_ref().map(|(_, commit)| commit)
    }

    /// Forgets repositories inside the work tree. For one that is in the index,
    /// `git add` would run `git status` there, with the configuration that the
    /// agent gave it.
    async fn drop_submodules(&self) -> Result<(), SnapshotError> {
        let index = self.git(&["ls-files", "--stage", "-z"]).await?;
        let paths: Vec<&str> = submodules(&index).map(|(_, path)| path).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let words = [&["update-index", "--force-remove", "--"], paths.as_slice()].concat();
        self.git(&words).await?;
        // A name that is no text does not come out of the index that way.
        let index = self.git(&["ls-files", "--stage", "-z"]).await?;
        match submodules(&index).next() {
            None => Ok(()),
            Some((_, path)) => Err(SnapshotError::Planted { path: path.to_owned() }),
        }
    }

    /// Those that were there at the start stay as they were.
    async fn put_back_submodules(&self) -> Result<(), SnapshotError> {
        let start = self.git(&["ls-tree", "-r", "-z", "--full-tree", self.start.as_str()]).await?;
        for (about, path) in submodules(&start) {
            // `160000 commit <oid>`
            let oid = about.rsplit(' ').next().unwrap_or_default();
            let entry = format!("160000,{oid},{path}");
            self.git(&["update-index", "--add", "--replace", "--cacheinfo", &entry]).await?;
        }
        Ok(())
    }

    async fn oid(&self, arguments: &[&str]) -> Result<Oid, SnapshotError> {
        let answer = self.git(arguments).await?;
        let step = arguments[0].to_owned();
        Oid::new(answer.trim()).map_err(|source| SnapshotError::Strange { step, source })
    }

    async fn git(&self, arguments: &[&str]) -> Result<String, SnapshotError> {
        let step = arguments[0].to_owned();
        let mut command = git::command(&self.workspace, arguments);
        if step != "init" {
            command.env("GIT_WORK_TREE", &self.workspace);
        }
        command
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_NAME", &self.author.name)
            .env("GIT_AUTHOR_EMAIL", &self.author.email)
            .env("GIT_COMMITTER_NAME", &self.author.name)
            .env("GIT_COMMITTER_EMAIL", &self.author.email)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let output = match tokio::time::timeout(DEADLINE, command.output()).await {
            Err(_) => return Err(SnapshotError::TooSlow { step }),
            Ok(Err(source)) => return Err(SnapshotError::NotRun { step, source }),
            Ok(Ok(output)) => output,
        };
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(SnapshotError::Failed { step, message })
        }
    }
}

/// The submodules in a list of entries `<about>\t<path>\0`.
fn submodules(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let entries = list.split('\0').filter_map(|entry| entry.split_once('\t'));
    entries.filter(|(about, _)| about.starts_with("160000 "))
}

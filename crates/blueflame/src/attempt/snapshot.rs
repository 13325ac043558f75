//! Snapshots of unfinished work.
//!
//! They are taken from outside, into a git directory of our own that shares
//! the repository's objects. The agent's git directory is never used: what an
//! agent may have put into its configuration or hooks must not be run. The same
//! holds for repositories inside the workspace. git would look into each one
//! that its index knows, with that one's configuration; so the index knows none
//! while it looks at the files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use blueflame_core::ids::{BadName, Oid};
use blueflame_core::lock_path::LockPath;
use tokio::io::AsyncWriteExt;

use super::left_out::{self, LeftOut};
use super::spec::{Author, Snapshots};
use crate::exclude;
use crate::git::{self, ObjectFormat};

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
    exclude: Vec<LockPath>,
    /// Submodules of the start: where, and at which commit. They stay as they
    /// are, whatever happens inside them.
    submodules: Vec<(Vec<u8>, String)>,
    /// The tree of the last snapshot.
    last: Option<(Oid, Oid)>,
    /// What is not in the snapshots, and has not been told yet.
    remarks: Vec<String>,
}

/// An entry of the index.
struct Entry {
    mode: String,
    oid: String,
    path: Vec<u8>,
}

/// The mode of another repository's commit.
const GITLINK: &str = "160000";

impl Camera {
    pub async fn new(
        git_dir: PathBuf,
        workspace: PathBuf,
        author: Author,
        start: Oid,
        spec: &Snapshots,
    ) -> Result<Camera, SnapshotError> {
        let mut camera = Camera {
            git_dir,
            workspace,
            author,
            start,
            exclude: spec.exclude.clone(),
            submodules: Vec::new(),
            last: None,
            remarks: Vec::new(),
        };
        let path = camera.git_dir.clone();
        let prepared = |source| SnapshotError::Prepare { path: path.clone(), source };
        fs::create_dir_all(&camera.git_dir).map_err(prepared)?;
        let format = format!("--object-format={}", ObjectFormat::of(&camera.start).name());
        camera.git(&["init", "--quiet", "--bare", "--template=", &format]).await?;
        let info = camera.git_dir.join("objects/info");
        fs::create_dir_all(&info).map_err(prepared)?;
        let mut alternates = spec.objects.as_os_str().as_encoded_bytes().to_vec();
        alternates.push(b'\n');
        fs::write(info.join("alternates"), alternates).map_err(prepared)?;
        let info = camera.git_dir.join("info");
        fs::create_dir_all(&info).map_err(prepared)?;
        let lines: Vec<String> =
            spec.exclude.iter().map(|path| exclude::pattern(path) + "\n").collect();
        fs::write(info.join("exclude"), lines.concat()).map_err(prepared)?;
        camera.git(&["read-tree", camera.start.as_str()]).await?;
        let linked = camera.entries().await?.into_iter().filter(|entry| entry.mode == GITLINK);
        camera.submodules = linked.map(|entry| (entry.path, entry.oid)).collect();
        Ok(camera)
    }

    /// Takes one if anything has changed since the last, or since the start.
    pub async fn take(&mut self) -> Result<Option<Oid>, SnapshotError> {
        // One that was cut short leaves its lock; nobody else uses the directory.
        let _ = fs::remove_file(self.git_dir.join("index.lock"));
        self.forget_repositories().await?;
        self.add().await?;
        // One that was made since we looked is an entry now, and nothing more:
        // git looks into it the next time at the earliest.
        self.forget_repositories().await?;
        self.remember_submodules().await?;
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

    /// What the snapshots lack; each thing is told once or more.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// Takes up the files, except for what is left out.
    async fn add(&mut self) -> Result<(), SnapshotError> {
        let (workspace, exclude) = (self.workspace.clone(), self.exclude.clone());
        let looking =
            tokio::task::spawn_blocking(move || left_out::look(&workspace, &exclude, DEADLINE));
        let step = "add";
        let left_out = looking.await.map_err(|error| SnapshotError::NotRun {
            step: step.to_owned(),
            source: io::Error::other(error),
        })?;
        let Some(left_out) = left_out else {
            return Err(SnapshotError::TooSlow { step: "add".to_owned() });
        };
        let left_out = self.without_ignored(left_out).await;
        self.as_at_the_start(&left_out).await?;
        let mut paths = b".\0".to_vec();
        for one in &left_out {
            paths.extend_from_slice(b":(exclude,literal,top)");
            paths.extend_from_slice(one.path());
            paths.push(0);
        }
        self.remarks.extend(left_out.iter().map(ToString::to_string));
        let arguments =
            ["add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"];
        match self.ask(&arguments, paths).await? {
            (Some(0), _, _) => Ok(()),
            // Some files could not be taken up; the others were.
            (Some(1), _, complaint) => {
                let first = complaint.lines().next().unwrap_or_default();
                self.remarks.push(format!("not everything is in the snapshots: {first}"));
                Ok(())
            }
            (_, _, message) => Err(SnapshotError::Failed { step: step.to_owned(), message }),
        }
    }

    /// Takes back what was taken up before it was known to be left out: it may have
    /// come, or grown, between the look at the files and the last time.
    async fn as_at_the_start(&self, left_out: &[LeftOut]) -> Result<(), SnapshotError> {
        let known: BTreeSet<Vec<u8>> =
            self.entries().await?.into_iter().map(|it| it.path).collect();
        let mut lines = Vec::new();
        for path in left_out.iter().map(LeftOut::path).filter(|path| known.contains(*path)) {
            let name = format!("{}:{}", self.start, String::from_utf8_lossy(path));
            // One that the start has is kept as it was there, or as it was last small.
            if self.ask(&["cat-file", "-e", &name], Vec::new()).await?.0 != Some(0) {
                let none = "0".repeat(self.start.as_str().len());
                lines.extend_from_slice(format!("0 {none}\t").as_bytes());
                lines.extend_from_slice(path);
                lines.push(0);
            }
        }
        self.change_index(lines).await
    }

    /// What git leaves out anyway is nobody's loss, and it complains when told
    /// to leave it out once more.
    async fn without_ignored(&self, left_out: Vec<LeftOut>) -> Vec<LeftOut> {
        if left_out.is_empty() {
            return left_out;
        }
        let mut paths = Vec::new();
        for one in &left_out {
            paths.extend_from_slice(one.path());
            paths.push(0);
        }
        match self.ask(&["check-ignore", "-z", "--stdin"], paths).await {
            Ok((Some(0), ignored, _)) => {
                let ignored: BTreeSet<&[u8]> = ignored.split(|byte| *byte == 0).collect();
                left_out.into_iter().filter(|one| !ignored.contains(one.path())).collect()
            }
            Ok(_) | Err(_) => left_out,
        }
    }

    /// Takes every other repository out of the index.
    async fn forget_repositories(&self) -> Result<(), SnapshotError> {
        let mut lines = Vec::new();
        for entry in self.entries().await?.iter().filter(|entry| entry.mode == GITLINK) {
            lines.extend_from_slice(format!("0 {}\t", "0".repeat(entry.oid.len())).as_bytes());
            lines.extend_from_slice(&entry.path);
            lines.push(0);
        }
        self.change_index(lines).await
    }

    /// Puts the submodules of the start back, unless something else is there.
    async fn remember_submodules(&self) -> Result<(), SnapshotError> {
        if self.submodules.is_empty() {
            return Ok(());
        }
        let entries = self.entries().await?;
        let mut lines = Vec::new();
        for (path, oid) in &self.submodules {
            let in_the_way = |entry: &Entry| {
                let longer = entry.path.strip_prefix(path.as_slice());
                longer.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
                    || path
                        .strip_prefix(entry.path.as_slice())
                        .is_some_and(|it| it.starts_with(b"/"))
            };
            if !entries.iter().any(in_the_way) {
                lines.extend_from_slice(format!("{GITLINK} {oid}\t").as_bytes());
                lines.extend_from_slice(path);
                lines.push(0);
            }
        }
        self.change_index(lines).await
    }

    async fn entries(&self) -> Result<Vec<Entry>, SnapshotError> {
        let listed = self.git(&["ls-files", "--stage", "-z"]).await?;
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let mut words = str::from_utf8(&line[..tab]).ok()?.split(' ');
            let (mode, oid) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some(Entry { mode, oid, path: line[tab + 1..].to_vec() })
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    async fn change_index(&self, lines: Vec<u8>) -> Result<(), SnapshotError> {
        if lines.is_empty() {
            return Ok(());
        }
        match self.ask(&["update-index", "-z", "--index-info"], lines).await? {
            (Some(0), _, _) => Ok(()),
            (_, _, message) => {
                Err(SnapshotError::Failed { step: "update-index".to_owned(), message })
            }
        }
    }

    /// The last one.
    pub fn last(&self) -> Option<&Oid> {
        self.last.as_ref().map(|(_, commit)| commit)
    }

    async fn oid(&self, arguments: &[&str]) -> Result<Oid, SnapshotError> {
        let answer = self.git(arguments).await?;
        let step = arguments[0].to_owned();
        Oid::new(String::from_utf8_lossy(&answer).trim())
            .map_err(|source| SnapshotError::Strange { step, source })
    }

    async fn git(&self, arguments: &[&str]) -> Result<Vec<u8>, SnapshotError> {
        match self.ask(arguments, Vec::new()).await? {
            (Some(0), answer, _) => Ok(answer),
            (_, _, message) => {
                Err(SnapshotError::Failed { step: arguments[0].to_owned(), message })
            }
        }
    }

    /// Runs git to its end: its exit code, its answer, its complaints.
    async fn ask(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
    ) -> Result<(Option<i32>, Vec<u8>, String), SnapshotError> {
        let step = arguments[0].to_owned();
        let mut command = git::command(&self.workspace, arguments);
        if step != "init" {
            command.env("GIT_WORK_TREE", &self.workspace);
        }
        command
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_COUNT", "2")
            .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
            .env("GIT_CONFIG_VALUE_0", "false")
            .env("GIT_CONFIG_KEY_1", "core.hooksPath")
            .env("GIT_CONFIG_VALUE_1", "/dev/null")
            .env("GIT_AUTHOR_NAME", &self.author.name)
            .env("GIT_AUTHOR_EMAIL", &self.author.email)
            .env("GIT_COMMITTER_NAME", &self.author.name)
            .env("GIT_COMMITTER_EMAIL", &self.author.email)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let running = async {
            let mut child = command.spawn()?;
            let stdin = child.stdin.take();
            // Both at once: it may answer before it has read everything.
            let telling = async {
                if let Some(mut stdin) = stdin {
                    // One that is gone already says so by its exit code.
                    let _ = stdin.write_all(&input).await;
                }
            };
            let ((), output) = tokio::join!(telling, child.wait_with_output());
            output
        };
        let output = match tokio::time::timeout(DEADLINE, running).await {
            Err(_) => return Err(SnapshotError::TooSlow { step }),
            Ok(Err(source)) => return Err(SnapshotError::NotRun { step, source }),
            Ok(Ok(output)) => output,
        };
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Ok((output.status.code(), output.stdout, complaint))
    }
}

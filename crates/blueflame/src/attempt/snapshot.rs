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
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use blueflame_core::ids::{BadName, Oid};
use tokio::io::AsyncWriteExt;

use super::directory::Directory;
use super::left_out::{self, LeftOut};
use super::spec::{Author, Snapshots, Spec};
use crate::exclude;
use crate::git::{self, ObjectFormat};

/// No snapshot takes longer, or it is given up.
const DEADLINE: Duration = Duration::from_secs(120);

/// The name under which the last one is found.
const REF: &str = "refs/blueflame/snapshot";

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

/// Takes snapshots of one workspace. Nothing is done before the first one: most
/// agents finish their work, and then nobody needs any.
#[derive(Clone, Debug)]
pub struct Camera {
    git_dir: PathBuf,
    workspace: PathBuf,
    author: Author,
    start: Oid,
    spec: Snapshots,
    /// None before the first one.
    known: Option<Known>,
    /// What is not in the snapshots, and has not been told yet.
    remarks: Vec<String>,
}

/// What has to be known from one snapshot to the next.
#[derive(Clone, Debug)]
struct Known {
    /// Submodules of the start: where, and at which commit. They stay as they
    /// are, whatever happens inside them.
    submodules: Vec<(Vec<u8>, String)>,
    /// The tree of the last snapshot, or of the start.
    tree: Oid,
    /// The last snapshot.
    commit: Option<Oid>,
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
    /// None for agents whose work is not saved.
    pub fn of(directory: &Directory, spec: &Spec) -> Option<Camera> {
        let snapshots = spec.snapshots.clone()?;
        let (workspace, author) = (spec.workspace.clone(), spec.author.clone());
        Some(Camera::new(directory.snapshots(), workspace, author, spec.start.clone(), snapshots))
    }

    pub fn new(
        git_dir: PathBuf,
        workspace: PathBuf,
        author: Author,
        start: Oid,
        spec: Snapshots,
    ) -> Camera {
        Camera { git_dir, workspace, author, start, spec, known: None, remarks: Vec::new() }
    }

    /// Takes one if anything has changed since the last, or since the start.
    pub async fn take(&mut self) -> Result<Option<Oid>, SnapshotError> {
        // One that was cut short leaves its locks; nobody else uses the directory.
        for lock in ["index.lock", &format!("{REF}.lock")] {
            let _ = fs::remove_file(self.git_dir.join(lock));
        }
        let mut known = match self.known.take() {
            Some(known) => known,
            None => self.prepare().await?,
        };
        let taken = self.compare(&mut known).await;
        self.known = Some(known);
        taken
    }

    async fn compare(&mut self, known: &mut Known) -> Result<Option<Oid>, SnapshotError> {
        self.add().await?;
        self.put_back(&known.submodules).await?;
        let tree = self.oid(&["write-tree"]).await?;
        if tree == known.tree {
            return Ok(None);
        }
        let message = "unfinished work";
        let commit = self
            .oid(&["commit-tree", "-p", self.start.as_str(), "-m", message, tree.as_str()])
            .await?;
        self.git(&["update-ref", REF, commit.as_str()]).await?;
        known.tree = tree;
        known.commit = Some(commit.clone());
        Ok(Some(commit))
    }

    /// Gets the git directory ready, with an index of the last snapshot, or of the
    /// start.
    async fn prepare(&self) -> Result<Known, SnapshotError> {
        let last = self.last_kept().await?;
        if last.is_none() {
            self.make_git_dir().await?;
        }
        self.git(&["read-tree", self.start.as_str()]).await?;
        let linked = self.entries().await?.into_iter().filter(|entry| entry.mode == GITLINK);
        let submodules = linked.map(|entry| (entry.path, entry.oid)).collect();
        if let Some((tree, commit)) = last {
            // What it has of a file that cannot be taken up now is better than nothing.
            self.git(&["read-tree", tree.as_str()]).await?;
            return Ok(Known { submodules, tree, commit: Some(commit) });
        }
        let tree = self.tree_of(&self.start).await?;
        Ok(Known { submodules, tree, commit: None })
    }

    /// The tree and the commit of the last snapshot, if there is one that can be
    /// read: another process may have taken it.
    async fn last_kept(&self) -> Result<Option<(Oid, Oid)>, SnapshotError> {
        let Some(commit) = newest(&self.git_dir) else { return Ok(None) };
        match self.tree_of(&commit).await {
            Ok(tree) => Ok(Some((tree, commit))),
            Err(SnapshotError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the git directory anew. What is there was never finished, or cannot be
    /// read; it is put aside, for people to look at.
    async fn make_git_dir(&self) -> Result<(), SnapshotError> {
        let path = self.git_dir.clone();
        let prepared = |source| SnapshotError::Prepare { path: path.clone(), source };
        let aside = self.git_dir.with_extension("broken");
        let _ = fs::remove_dir_all(&aside);
        match fs::rename(&self.git_dir, &aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(prepared(error)),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir_all(&self.git_dir).map_err(prepared)?;
        let format = format!("--object-format={}", ObjectFormat::of(&self.start).name());
        self.git(&["init", "--quiet", "--bare", "--template=", &format]).await?;
        let info = self.git_dir.join("objects/info");
        fs::create_dir_all(&info).map_err(prepared)?;
        let mut alternates = self.spec.objects.as_os_str().as_encoded_bytes().to_vec();
        alternates.push(b'\n');
        fs::write(info.join("alternates"), alternates).map_err(prepared)?;
        let info = self.git_dir.join("info");
        fs::create_dir_all(&info).map_err(prepared)?;
        let lines: Vec<String> =
            self.spec.exclude.iter().map(|path| exclude::pattern(path) + "\n").collect();
        fs::write(info.join("exclude"), lines.concat()).map_err(prepared)
    }

    async fn tree_of(&self, commit: &Oid) -> Result<Oid, SnapshotError> {
        self.oid(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await
    }

    /// What the snapshots lack; each thing is told once or more.
    pub fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// Takes up the files, except for what is left out.
    async fn add(&mut self) -> Result<(), SnapshotError> {
        let entries = self.entries().await?;
        self.change_index(entries.iter().filter(|it| it.mode == GITLINK).flat_map(gone).collect())
            .await?;
        let (workspace, exclude) = (self.workspace.clone(), self.spec.exclude.clone());
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
        self.as_at_the_start(&entries, &left_out).await?;
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
    async fn as_at_the_start(
        &self,
        entries: &[Entry],
        left_out: &[LeftOut],
    ) -> Result<(), SnapshotError> {
        let left_out: BTreeSet<&[u8]> = left_out.iter().map(LeftOut::path).collect();
        let mut lines = Vec::new();
        for entry in entries.iter().filter(|it| left_out.contains(it.path.as_slice())) {
            let name = format!("{}:{}", self.start, String::from_utf8_lossy(&entry.path));
            // One that the start has is kept as it was there, or as it was last small.
            if self.ask(&["cat-file", "-e", &name], Vec::new()).await?.0 != Some(0) {
                lines.extend(gone(entry));
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

    /// Takes every other repository out of the index, but for the submodules of
    /// the start, unless something else is there. One that was made since we
    /// looked is an entry now, and nothing more: git looks into it the next time
    /// at the earliest.
    async fn put_back(&self, submodules: &[(Vec<u8>, String)]) -> Result<(), SnapshotError> {
        let (linked, files): (Vec<Entry>, Vec<Entry>) =
            self.entries().await?.into_iter().partition(|entry| entry.mode == GITLINK);
        let mut lines: Vec<u8> = linked.iter().flat_map(gone).collect();
        for (path, oid) in submodules {
            let in_the_way = |entry: &Entry| {
                let longer = entry.path.strip_prefix(path.as_slice());
                longer.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
                    || path
                        .strip_prefix(entry.path.as_slice())
                        .is_some_and(|it| it.starts_with(b"/"))
            };
            if !files.iter().any(in_the_way) {
                lines.extend(line(GITLINK, oid, path));
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
        self.known.as_ref()?.commit.as_ref()
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

/// The last snapshot that a git directory of snapshots has.
pub fn newest(git_dir: &Path) -> Option<Oid> {
    Oid::new(fs::read_to_string(git_dir.join(REF)).ok()?.trim()).ok()
}

/// What tells git about an entry of the index.
fn line(mode: &str, oid: &str, path: &[u8]) -> Vec<u8> {
    [format!("{mode} {oid}\t").as_bytes(), path, b"\0"].concat()
}

/// What tells git that an entry is there no more.
fn gone(entry: &Entry) -> Vec<u8> {
    line("0", &"0".repeat(entry.oid.len()), &entry.path)
}

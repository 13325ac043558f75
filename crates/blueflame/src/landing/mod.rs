//! Bringing finished work to the base branch, with git plumbing.
//!
//! A changeset is **folded** into commits on top of what has landed, one for
//! each task; **landed** by moving refs of our own in one transaction, after
//! proof that exactly the approved change is in it; and **published** by a
//! fast-forward of the base branch, which git does in the person's checkout if
//! the branch is checked out. Each step may be repeated after a crash and comes
//! to the same end: names follow from session and changeset, commits from their
//! inputs, and every ref is compared before it is moved.
//!
//! Nothing here decides what lands, and nothing touches what a person has not
//! committed: what would, waits and says why.

mod checkout;
mod fold;
mod halfway;
mod hooks;
mod intent;
mod land;
mod message;
mod moving;
mod patch;
mod proof;
mod publish;
mod resolution;
mod revert;
mod tip;
mod view;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use blueflame_core::ids::{ChangesetId, Oid, SessionId};

pub use self::fold::{FoldOrder, FoldTask, Merger, Source};
pub use self::land::{LandOrder, Work};
pub use self::message::MessageStyle;
pub use self::proof::Missing;
pub use self::publish::{Publication, PublishOrder};
pub use self::resolution::Conflicted;
pub use self::revert::{LandedChangeset, RevertOrder};
pub use self::tip::Tip;
pub use self::view::ChangesetView;
pub use crate::attempt::spec::Author;
use crate::git::GitError;
use crate::git::objects::Objects;
use crate::git::plumbing::Plumbing;
pub use crate::git::trees::FileStat;
use crate::git::trees::Signing;

/// How long someone else's git is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum LandingError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the base branch `{branch}` does not exist")]
    NoBase { branch: String },
    #[error(
        "`{branch}` moved and now conflicts with landed work in {}; merge `{landed}` into it",
        words(files)
    )]
    BaseConflict { branch: String, landed: Oid, files: Vec<String> },
    #[error(
        "`{branch}` no longer has what was published to it; `git merge {published}` brings it back"
    )]
    Withdrawn { branch: String, published: Oid },
    #[error("a commit could not be signed, which `commit.gpgsign` asks for: {message}")]
    NotSigned { message: String },
    #[error("there is nothing to fold")]
    NothingToFold,
    #[error("`{commit}` is not a row of commits on top of `{onto}`")]
    NotOnTop { commit: Oid, onto: Oid },
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("what was approved is another change than `{commit}`")]
    NotApproved { commit: Oid },
    #[error("landing `{commit}` would lose `{landed}`, which landed before")]
    WouldLose { commit: Oid, landed: Oid },
    #[error("`{changeset}` landed already, as `{commit}`")]
    LandedOtherwise { changeset: ChangesetId, commit: Oid },
    #[error("`{commit}` has not landed, so it cannot be published")]
    NotLanded { commit: Oid },
    #[error("no landed changeset is called `{changeset}`")]
    UnknownChangeset { changeset: ChangesetId },
    #[error("`{changeset}` landed in several sessions: {}", words(sessions))]
    AmbiguousChangeset { changeset: ChangesetId, sessions: Vec<String> },
    #[error("cannot {step} `{}`: {source}", path.display())]
    File { step: &'static str, path: PathBuf, source: std::io::Error },
}

impl LandingError {
    /// Whether only the person can put it right, and nothing is wrong with us.
    pub fn is_for_the_person(&self) -> bool {
        matches!(
            self,
            LandingError::NoBase { .. }
                | LandingError::BaseConflict { .. }
                | LandingError::Withdrawn { .. }
                | LandingError::NotSigned { .. }
        )
    }

    /// Whether git or the disk let us down, which says nothing about the work.
    pub fn is_of_git(&self) -> bool {
        matches!(self, LandingError::Git(_) | LandingError::File { .. })
    }
}

fn words(items: &[String]) -> String {
    items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(", ")
}

/// A folded changeset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedRow {
    pub onto: Oid,
    pub commits: Vec<Oid>,
}

/// The person's repository, as work lands in it.
#[derive(Clone, Debug)]
pub struct Landing {
    git: Plumbing,
    common_dir: PathBuf,
    patience: Duration,
}

impl Landing {
    /// The repository that has these objects.
    pub fn over(objects: Objects) -> Self {
        let common_dir = objects.git_dir().to_owned();
        Landing { git: Plumbing::of_repository(objects), common_dir, patience: PATIENCE }
    }

    /// With another surrounding for git and another patience.
    #[cfg(test)]
    fn with(mut self, env: &[(&str, &str)], patience: Duration) -> Self {
        for (name, value) in env {
            self.git = self.git.with_env(name, value);
        }
        self.patience = patience;
        self
    }

    /// The commits of a folded changeset, the oldest first, and what they were
    /// folded onto: the tip of that time, wherever it is by now.
    pub fn folded_row(
        &self,
        session: &SessionId,
        changeset: &ChangesetId,
        commit: &Oid,
        tasks: usize,
    ) -> Result<FoldedRow, LandingError> {
        // One commit for each task at most, and the one below them.
        let most = format!("--max-count={}", tasks.saturating_add(1));
        let mut row = FoldedRow { onto: commit.clone(), commits: Vec::new() };
        for link in self.links(&["--first-parent", &most, commit.as_str()])? {
            let ours = (link.session.as_ref(), link.changeset.as_ref());
            if ours != (Some(session), Some(changeset)) {
                row.onto = link.commit;
                break;
            }
            row.commits.insert(0, link.commit);
        }
        Ok(row)
    }

    /// The commit that a changeset landed as.
    pub fn landed_as(
        &self,
        session: &SessionId,
        changeset: &ChangesetId,
    ) -> Result<Option<Oid>, LandingError> {
        Ok(self.git.commit_at(&Refs(session).landed(changeset))?)
    }

    /// Who commits here: as the person has told git, or else the program.
    pub fn identity(&self) -> Result<Author, LandingError> {
        Ok(self.person()?.unwrap_or_else(Author::program))
    }

    /// The person, if git knows them.
    pub fn person(&self) -> Result<Option<Author>, LandingError> {
        let call = self.git.call(["config", "-z", "--get-regexp", r"^user\.(name|email)$"]);
        let Some(ran) = call.as_configured().run()?.if_any()? else { return Ok(None) };
        // The last word counts, as it does for git.
        let told = |key: &[u8]| {
            let values = ran.fields().filter_map(|field| field.strip_prefix(key));
            values.last().map(|value| String::from_utf8_lossy(value).into_owned())
        };
        let (name, email) = (told(b"user.name\n"), told(b"user.email\n"));
        Ok(name.zip(email).map(|(name, email)| Author { name, email }))
    }

    /// Gives something that is in the way a while to go away.
    fn patiently<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        let end = Instant::now() + self.patience;
        loop {
            let found = look()?;
            if Instant::now() >= end {
                return Some(found);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether the person wants commits signed.
    fn signing(&self) -> Result<Signing, LandingError> {
        let wanted = self.setting("commit.gpgSign", &["--type=bool"])?;
        Ok(if wanted.as_deref() == Some("true") { Signing::On } else { Signing::Off })
    }

    fn setting(&self, key: &str, how: &[&str]) -> Result<Option<String>, LandingError> {
        let call = self.git.call(["config"]).as_configured();
        let ran = call.words(how).words(["--get", key]).run()?;
        Ok(ran.if_any()?.map(|ran| ran.text()))
    }
}

/// The refs of one session. They keep its commits from being collected.
#[derive(Clone, Copy, Debug)]
struct Refs<'a>(&'a SessionId);

impl Refs<'_> {
    /// Everything that has landed in the session.
    fn integration(self) -> String {
        format!("refs/blueflame/{}/integration", self.0)
    }

    /// What was last brought to the base branch.
    fn published(self) -> String {
        format!("refs/blueflame/{}/published", self.0)
    }

    /// The base and the integration as one, while they are apart.
    fn joint(self) -> String {
        format!("refs/blueflame/{}/joint", self.0)
    }

    fn folded(self, changeset: &ChangesetId) -> String {
        format!("refs/blueflame/{}/folded/{changeset}", self.0)
    }

    fn landed(self, changeset: &ChangesetId) -> String {
        format!("refs/blueflame/{}/landed/{changeset}", self.0)
    }
}

fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// Names for people: not every path is text.
fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

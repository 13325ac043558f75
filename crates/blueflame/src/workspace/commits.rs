//! The commits of an agent, read as data.

use blueflame_core::ids::Oid;

use super::error::HarvestError;
use super::plain::PlainRepository;
use crate::attempt::spec::Author;
use crate::git::commit_object::{self, CommitObject};

/// More than anyone would look at.
const MOST: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarvestedCommit {
    pub oid: Oid,
    pub parents: Vec<Oid>,
    /// Whether it lies on the way along the first parents.
    pub first_parent: bool,
    pub author: Author,
    /// The first line of the message.
    pub subject: String,
    pub message: String,
}

/// The commits in `head` that are not in `start`, parents first.
pub(super) fn between(
    plain: &PlainRepository,
    start: &Oid,
    head: &Oid,
) -> Result<Vec<HarvestedCommit>, HarvestError> {
    let list = |more: &[&str]| {
        let most = format!("--max-count={}", MOST + 1);
        let call = plain.git().words(&["rev-list", "--topo-order", "--reverse", &most]).words(more);
        call.word(format!("{start}..{head}")).line()
    };
    let all = list(&[])?;
    let main_line = list(&["--first-parent"])?;
    let count = all.lines().count();
    if count > MOST {
        return Err(HarvestError::TooMany { most: MOST });
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let answer = plain.git().words(&["cat-file", "--batch"]).input(all + "\n").run()?;
    if !answer.status.success() {
        return Err(answer.failure().into());
    }
    let commits = commit_object::read_batch(&answer.stdout).map_err(|line| answer.strange(line))?;
    let on_main_line = |oid: &Oid| main_line.lines().any(|line| line == oid.as_str());
    let harvested = |commit: CommitObject| HarvestedCommit {
        first_parent: on_main_line(&commit.oid),
        oid: commit.oid,
        parents: commit.parents,
        author: Author { name: commit.author.name, email: commit.author.email },
        subject: commit.message.lines().next().unwrap_or_default().to_owned(),
        message: commit.message,
    };
    Ok(commits.into_iter().map(harvested).collect())
}

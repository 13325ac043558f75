//! The commits of an agent, read as data.

use blueflame_core::ids::Oid;

use super::error::HarvestError;
use super::plain::PlainRepository;
use crate::attempt::spec::Author;

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
    let mut rest = answer.stdout.as_slice();
    let mut commits = Vec::with_capacity(count);
    while !rest.is_empty() {
        let (mut commit, after) = next(rest).ok_or_else(|| answer.strange(first_line(rest)))?;
        commit.first_parent = main_line.lines().any(|oid| oid == commit.oid.as_str());
        commits.push(commit);
        rest = after;
    }
    Ok(commits)
}

/// Reads `<oid> commit <size>\n<bytes>\n`.
fn next(bytes: &[u8]) -> Option<(HarvestedCommit, &[u8])> {
    let line = first_line(bytes);
    let text = std::str::from_utf8(line).ok()?;
    let [oid, "commit", size] = text.split(' ').collect::<Vec<_>>()[..] else { return None };
    let body = bytes.get(line.len() + 1..)?;
    let size = size.parse().ok()?;
    let commit = commit(Oid::new(oid).ok()?, body.get(..size)?)?;
    Some((commit, body.get(size + 1..)?))
}

fn commit(oid: Oid, bytes: &[u8]) -> Option<HarvestedCommit> {
    let end = bytes.windows(2).position(|two| two == b"\n\n")?;
    let headers = String::from_utf8_lossy(&bytes[..end]);
    let message = String::from_utf8_lossy(&bytes[end + 2..]).into_owned();
    let values = |name: &'static str| {
        headers.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(' '))
    };
    let parents = values("parent").map(|oid| Oid::new(oid).ok()).collect::<Option<_>>()?;
    // `Ada <ada@example.com> 1700000000 +0000`
    let (name, rest) = values("author").next()?.split_once('<')?;
    let (email, _) = rest.split_once('>')?;
    Some(HarvestedCommit {
        oid,
        parents,
        first_parent: false,
        author: Author { name: name.trim().to_owned(), email: email.to_owned() },
        subject: message.lines().next().unwrap_or_default().to_owned(),
        message,
    })
}

fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_whatever_is_in_it() {
        let oid = "1".repeat(40);
        let body = format!(
            "tree {oid}\nparent {oid}\nauthor A B <a@b> 1 +0000\ncommitter C <c@d> 2 +0000\n\
             gpgsig x\n y\n\nfeat: it\n\nbody\0more\n"
        );
        let bytes = format!("{oid} commit {}\n{body}\nrest", body.len());
        let (commit, rest) = next(bytes.as_bytes()).unwrap();
        assert_eq!(rest, b"rest");
        assert_eq!(commit.author, Author { name: "A B".into(), email: "a@b".into() });
        assert_eq!(commit.parents.len(), 1);
        assert_eq!(commit.subject, "feat: it");
        assert_eq!(commit.message, "feat: it\n\nbody\0more\n");
        assert!(next(b"x missing\n").is_none());
    }
}

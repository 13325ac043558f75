//! A commit, read from the bytes of its object: what git shows of one can be
//! less than what it holds.

use blueflame_core::ids::Oid;

use super::GitError;
use super::objects::{Bounded, Object, Objects};

/// A line of commits that is longer, or in which there is more to read, is for git.
const LINE: usize = 50;
const MOST_BYTES: usize = 1 << 20;

impl Objects {
    /// The commits after `start` up to `end`, the oldest first, if each continues the one
    /// before and nothing else, as most work does. `None` says nothing: there may be
    /// merges, or more than a few, or the end may not come from that start.
    pub fn line(&self, start: &Oid, end: &Oid) -> Result<Option<Vec<CommitObject>>, GitError> {
        let mut line = Vec::new();
        let mut next = end.clone();
        while next != *start {
            let name = [next.to_string()];
            let is_there = self.about(&name)?.iter().all(Option::is_some);
            if line.len() == LINE || !is_there {
                return Ok(None);
            }
            let Bounded::Whole(mut objects) = self.read(&name, MOST_BYTES)? else {
                return Ok(None);
            };
            let Some(commit) = objects.pop().and_then(read) else { return Ok(None) };
            let [parent] = &commit.parents[..] else { return Ok(None) };
            next = parent.clone();
            line.push(commit);
        }
        line.reverse();
        Ok(Some(line))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitObject {
    pub oid: Oid,
    pub parents: Vec<Oid>,
    pub author: Signature,
    pub committer: Signature,
    /// The names of headers that an ordinary commit does not have.
    pub unusual: Vec<String>,
    /// All of it, also what comes behind a zero byte.
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    pub name: String,
    pub email: String,
    /// Seconds since 1970, if it is a time at all.
    pub when: Option<i64>,
}

impl Signature {
    /// `Name <address>`.
    pub fn person(&self) -> String {
        format!("{} <{}>", self.name, self.email)
    }
}

/// Reads a commit; `None` if it is none.
pub fn read(object: Object) -> Option<CommitObject> {
    let Object { oid, kind, bytes } = object;
    (kind == "commit").then(|| commit(oid, &bytes)).flatten()
}

fn commit(oid: Oid, bytes: &[u8]) -> Option<CommitObject> {
    // A commit without a message may end with its headers.
    let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
    let headers = String::from_utf8_lossy(&bytes[..end]);
    let message = bytes.get(end + 2..).unwrap_or_default();
    // As git reads them: what stands in another place means nothing, whatever it is
    // called.
    let mut lines = headers.split('\n').peekable();
    lines.next()?.strip_prefix("tree ")?;
    let mut parents = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with("parent ")) {
        parents.push(Oid::new(line.strip_prefix("parent ")?).ok()?);
    }
    let author = signature(lines.next()?.strip_prefix("author ")?)?;
    let committer = signature(lines.next()?.strip_prefix("committer ")?)?;
    // A line that begins with a blank goes on with the header before it.
    let others = lines.filter(|line| !line.is_empty() && !line.starts_with(' '));
    let unusual = others.map(|line| line.split(' ').next().unwrap_or_default().to_owned());
    let unusual = unusual.collect();
    let message = String::from_utf8_lossy(message).into_owned();
    Some(CommitObject { oid, parents, author, committer, unusual, message })
}

/// Reads `Ada <ada@example.com> 1700000000 +0000`.
fn signature(text: &str) -> Option<Signature> {
    let (name, rest) = text.split_once('<')?;
    let (email, when) = rest.split_once('>')?;
    Some(Signature {
        name: name.trim().to_owned(),
        email: email.to_owned(),
        when: when.split_whitespace().next().and_then(|seconds| seconds.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use blueflame_testkit::TestEnv;

    use super::*;

    #[test]
    fn a_line_is_told_from_whatever_else_a_history_can_be() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let commit = |name: &str| {
            repository.write(name, name);
            Oid::new(repository.commit(name).trim()).unwrap()
        };
        let start = commit("start");
        let one = commit("one");
        let two = commit("two");
        let objects = Objects::of(&repository.path().join(".git"));
        let line = |from: &Oid, to: &Oid| {
            let line = objects.line(from, to).unwrap();
            line.map(|line| line.into_iter().map(|commit| commit.oid).collect::<Vec<_>>())
        };
        assert_eq!(line(&start, &two), Some(vec![one.clone(), two.clone()]));
        assert_eq!(line(&two, &two), Some(Vec::new()));
        assert_eq!(line(&two, &one), None, "it is the other way round");
        repository.git(["checkout", "-q", "-b", "side", start.as_str()]);
        let side = commit("side");
        assert_eq!(line(&one, &side), None, "they have parted");
        repository.git(["merge", "-q", "-m", "joined", one.as_str()]);
        let joined = Oid::new(repository.git(["rev-parse", "HEAD"]).trim()).unwrap();
        assert_eq!(line(&side, &joined), None, "there is a merge");
        for number in 0..=LINE {
            repository.git(["commit", "-q", "--allow-empty", "-m", &number.to_string()]);
        }
        let last = Oid::new(repository.git(["rev-parse", "HEAD"]).trim()).unwrap();
        assert_eq!(line(&joined, &last), None, "there are many");
        let before = Oid::new(repository.git(["rev-parse", "HEAD~50"]).trim()).unwrap();
        assert_eq!(line(&before, &last).map(|line| line.len()), Some(LINE));
        let gone = Oid::new("1".repeat(40)).unwrap();
        assert_eq!(line(&start, &gone), None);
    }

    #[test]
    fn a_commit_is_read_whatever_is_in_it() {
        let oid = "1".repeat(40);
        let object = |kind: &str, bytes: &str| Object {
            oid: Oid::new(oid.as_str()).unwrap(),
            kind: kind.to_owned(),
            bytes: bytes.as_bytes().to_vec(),
        };
        let body = format!(
            "tree {oid}\nparent {oid}\nauthor A B <a@b> 1 +0000\ncommitter C <c@d> x\n\
             gpgsig x\n y\n\nfeat: it\n\nbody\0more\n"
        );
        let commit = read(object("commit", &body)).unwrap();
        assert_eq!((commit.author.person(), commit.author.when), ("A B <a@b>".into(), Some(1)));
        assert_eq!((commit.committer.person(), commit.committer.when), ("C <c@d>".into(), None));
        assert_eq!(commit.parents.len(), 1);
        assert_eq!(commit.unusual, ["gpgsig"]);
        assert_eq!(commit.message, "feat: it\n\nbody\0more\n");
        // Nobody is fooled by what stands in another place than where git looks.
        let other = "2".repeat(40);
        let forged = format!(
            "tree {oid}\nauthor A <a@b> 1 +0000\ncommitter C <c@d> 2 +0000\nparent {other}\n\
             author X <x@y> 3 +0000\ncommitter\ntree {other}\n\nfeat: it\n"
        );
        let commit = read(object("commit", &forged)).unwrap();
        assert_eq!((commit.parents.len(), commit.author.name.as_str()), (0, "A"));
        assert_eq!(commit.unusual, ["parent", "author", "committer", "tree"]);
        let hidden = forged.replacen("author", &format!(" parent {other}\nauthor"), 1);
        assert_eq!(read(object("commit", &hidden)), None);
        assert_eq!(read(object("tag", &body)), None);
        assert_eq!(read(object("commit", "author nobody\n")), None);
    }
}

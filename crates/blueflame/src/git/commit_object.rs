//! A commit, read from the bytes of its object: what git shows of one can be
//! less than what it holds.

use blueflame_core::ids::Oid;

use super::objects::Object;

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
    let mut found = CommitObject {
        oid,
        parents: Vec::new(),
        author: Signature::default(),
        committer: Signature::default(),
        unusual: Vec::new(),
        message: String::from_utf8_lossy(message).into_owned(),
    };
    // A line that begins with a blank goes on with the header before it.
    for line in headers.lines().filter(|line| !line.starts_with(' ')) {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "tree" => {}
            "parent" => found.parents.push(Oid::new(value).ok()?),
            "author" => found.author = signature(value)?,
            "committer" => found.committer = signature(value)?,
            other => found.unusual.push(other.to_owned()),
        }
    }
    Some(found)
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
    use super::*;

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
        assert_eq!(read(object("tag", &body)), None);
        assert_eq!(read(object("commit", "author nobody\n")), None);
    }
}

//! Trees, commits and the differences between them.
//!
//! Nothing here reads or writes an index or a work tree. Differences are made
//! without attributes, so that no `.gitattributes` can hide a change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use blueflame_core::ids::Oid;
use jiff::Timestamp;

use super::ended::DEADLINE;
use super::plumbing::{Call, Plumbing, Ran};
use super::{GitError, ObjectFormat};

/// What came of merging without a work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedTree {
    /// With conflict markers in it, if there are conflicts.
    pub tree: Oid,
    pub conflicts: Vec<PathBuf>,
}

/// A commit to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewCommit<'a> {
    pub tree: &'a Oid,
    pub parents: &'a [&'a Oid],
    pub message: &'a str,
    pub name: &'a str,
    pub email: &'a str,
    pub when: Timestamp,
    pub signing: Signing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    Off,
    On,
}

/// One path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    pub path: PathBuf,
    pub old: Option<Entry>,
    pub new: Option<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    pub oid: Oid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Executable,
    Link,
    Submodule,
}

/// How much of a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    pub path: PathBuf,
    /// Lines added and removed; `None` if the file is not text.
    pub lines: Option<(u32, u32)>,
}

impl Plumbing {
    /// Applies the difference between `base` and `theirs` to `ours`.
    pub fn merge_from(&self, base: &Oid, ours: &Oid, theirs: &Oid) -> Result<MergedTree, GitError> {
        self.merge(ours, theirs, Some(base))
    }

    /// Merges two histories from where they parted.
    pub fn merge_histories(&self, ours: &Oid, theirs: &Oid) -> Result<MergedTree, GitError> {
        self.merge(ours, theirs, None)
    }

    fn merge(&self, ours: &Oid, theirs: &Oid, base: Option<&Oid>) -> Result<MergedTree, GitError> {
        // The attributes of what has landed hold, not those of a work tree.
        let mut words = vec![
            format!("--attr-source={ours}"),
            "merge-tree".into(),
            "--write-tree".into(),
            "-z".into(),
            "--no-messages".into(),
            "--name-only".into(),
        ];
        words.extend(base.map(|base| format!("--merge-base={base}")));
        words.extend([ours.to_string(), theirs.to_string()]);
        let mut call = self.call(words);
        for setting in ["merge.renames=true", "merge.directoryRenames=conflict"] {
            call = call.setting(setting);
        }
        let ran = call.run()?;
        if !matches!(ran.code(), Some(0 | 1)) {
            return Err(ran.failure());
        }
        let mut fields = ran.fields();
        let tree = fields.next().and_then(|field| oid(field).ok()).ok_or_else(|| ran.strange())?;
        let mut conflicts: Vec<PathBuf> = fields.map(path).collect();
        conflicts.sort();
        conflicts.dedup();
        if conflicts.is_empty() != (ran.code() == Some(0)) {
            return Err(ran.strange());
        }
        Ok(MergedTree { tree, conflicts })
    }

    /// Makes a commit. The same input makes the same commit, unless signed.
    pub fn commit(&self, new: &NewCommit<'_>) -> Result<Oid, GitError> {
        let mut words = vec!["commit-tree", "-F", "-"];
        if new.signing == Signing::On {
            words.push("-S");
        }
        for parent in new.parents {
            words.extend(["-p", parent.as_str()]);
        }
        words.push(new.tree.as_str());
        let date = format!("@{} +0000", new.when.as_second());
        let mut call = self.call(words).input(new.message);
        for (name, email, when) in [
            ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
            ("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"),
        ] {
            call = call.env(name, new.name).env(email, new.email).env(when, &date);
        }
        call.answer()?.oid()
    }

    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        self.objects().tree_of(commit)
    }

    /// Every path that differs.
    pub fn changes(&self, from: &Oid, to: &Oid) -> Result<Vec<PathChange>, GitError> {
        let ran = self
            .call(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"])
            .words([from.as_str(), to.as_str()])
            .answer()?;
        let fields: Vec<&[u8]> = ran.fields().collect();
        fields.chunks(2).map(|pair| change(pair).ok_or_else(|| ran.strange())).collect()
    }

    /// The difference for reading, renames shown as such.
    pub fn readable_diff(&self, from: &Oid, to: &Oid) -> Result<Vec<u8>, GitError> {
        Ok(self.diff(&["-p", "-U3", "-M"], from, to)?.stdout)
    }

    pub fn stat(&self, from: &Oid, to: &Oid) -> Result<Vec<FileStat>, GitError> {
        let ran = self.diff(&["--numstat", "-z", "--no-renames"], from, to)?;
        ran.fields().map(|field| file_stat(field).ok_or_else(|| ran.strange())).collect()
    }

    fn diff(&self, how: &[&str], from: &Oid, to: &Oid) -> Result<Ran, GitError> {
        self.differences(from, how).words([from.as_str(), to.as_str()]).answer()
    }

    fn differences(&self, of: &Oid, how: &[&str]) -> Call<'_> {
        let nothing = ObjectFormat::of(of).empty_tree();
        self.call([format!("--attr-source={nothing}")])
            .setting("core.attributesFile=/dev/null")
            .setting("diff.suppressBlankEmpty=false")
            .words(["diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv"])
            .words(["--diff-algorithm=histogram", "--src-prefix=a/", "--dst-prefix=b/"])
            .words(["--submodule=short", "--ignore-submodules=none", "-O/dev/null"])
            .words(how)
    }

    /// Names what each of these commits does to its parent, file by file and without
    /// renames: line numbers do not count, everything else does, blanks too. A commit
    /// that does nothing has no name.
    pub fn patch_ids(&self, commits: &[&Oid]) -> Result<BTreeMap<Oid, Oid>, GitError> {
        let Some(first) = commits.first() else { return Ok(BTreeMap::new()) };
        let list: String = commits.iter().flat_map(|commit| [commit.as_str(), "\n"]).collect();
        let how = ["-p", "-U3", "--full-index", "--no-renames", "--stdin", "--always"];
        let deadline = DEADLINE.saturating_mul(u32::try_from(commits.len()).unwrap_or(u32::MAX));
        let told = self.differences(first, &how).input(list).deadline(deadline).answer()?;
        // Of a commit that is not there nothing is said. Lines of a patch are never bare.
        let bare = |line: &&[u8]| line.len() == first.as_str().len() && oid(line).is_ok();
        let lines = told.stdout.split(|byte| *byte == b'\n').filter(bare);
        if !lines.eq(commits.iter().map(|commit| commit.as_str().as_bytes())) {
            return Err(told.strange());
        }
        let call = self.call(["patch-id", "--verbatim"]).input(told.stdout).deadline(deadline);
        let ran = call.answer()?;
        let mut names = BTreeMap::new();
        for line in ran.text().lines() {
            let pair = line
                .split_once(' ')
                .and_then(|(id, commit)| Some((Oid::new(commit).ok()?, Oid::new(id).ok()?)));
            let (commit, id) = pair.ok_or_else(|| ran.strange())?;
            if !commits.contains(&&commit) || names.insert(commit, id).is_some() {
                return Err(ran.strange());
            }
        }
        Ok(names)
    }

    /// The first lines of the commits in each `from..to`, oldest first and without
    /// merges. Those that start in the same place are read together.
    pub fn subjects(&self, ranges: &[(&Oid, &Oid)]) -> Result<Vec<Vec<String>>, GitError> {
        let mut read: BTreeMap<&Oid, Vec<Described>> = BTreeMap::new();
        for &(from, _) in ranges {
            if !read.contains_key(from) {
                let ends = ranges.iter().filter(|(start, _)| *start == from);
                read.insert(from, self.described(from, ends.map(|(_, to)| *to))?);
            }
        }
        Ok(ranges.iter().map(|(from, to)| subjects_up_to(to, &read[from])).collect())
    }

    /// The commits that come after `from` and lead to any of the others, oldest first.
    fn described<'a>(
        &self,
        from: &Oid,
        to: impl Iterator<Item = &'a Oid>,
    ) -> Result<Vec<Described>, GitError> {
        let ends: Vec<&str> = to.map(Oid::as_str).collect();
        let ran = self
            .call(["log", "-z", "--no-show-signature", "--topo-order", "--reverse"])
            .words(["--format=%H%x1f%P%x1f%s", "--stdin"])
            .input(format!("^{from}\n{}\n", ends.join("\n")))
            .answer()?;
        let described = |field: &[u8]| {
            let text = String::from_utf8_lossy(field);
            let mut parts = text.splitn(3, '\x1f').map(str::to_owned);
            let (commit, parents, subject) = (parts.next()?, parts.next()?, parts.next()?);
            let parents = parents.split_whitespace().map(str::to_owned).collect();
            Some(Described { commit, parents, subject })
        };
        ran.fields().map(|field| described(field).ok_or_else(|| ran.strange())).collect()
    }
}

/// A commit in words.
struct Described {
    commit: String,
    parents: Vec<String>,
    subject: String,
}

/// Of commits with their parents before them, the first lines of those that lead to
/// one of them.
fn subjects_up_to(end: &Oid, commits: &[Described]) -> Vec<String> {
    let mut leading = BTreeSet::from([end.as_str()]);
    let mut subjects = Vec::new();
    for it in commits.iter().rev() {
        if leading.contains(it.commit.as_str()) {
            leading.extend(it.parents.iter().map(String::as_str));
            if it.parents.len() < 2 {
                subjects.push(it.subject.clone());
            }
        }
    }
    subjects.reverse();
    subjects
}

fn oid(field: &[u8]) -> Result<Oid, blueflame_core::ids::BadName> {
    Oid::new(String::from_utf8_lossy(field))
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(field.to_vec()))
}

/// `:<old mode> <new mode> <old> <new> <status>`, then the path.
fn change(pair: &[&[u8]]) -> Option<PathChange> {
    let [about, name] = pair else { return None };
    let about = std::str::from_utf8(about.strip_prefix(b":")?).ok()?;
    let words: Vec<&str> = about.split(' ').collect();
    let [old_mode, new_mode, old, new, _status] = words[..] else { return None };
    let old = entry(old_mode, old).ok()?;
    let new = entry(new_mode, new).ok()?;
    Some(PathChange { path: path(name), old, new })
}

/// Mode and name of one side, on which the path need not exist.
fn entry(mode: &str, oid: &str) -> Result<Option<Entry>, ()> {
    let kind = match mode {
        "000000" => return Ok(None),
        "100755" => Kind::Executable,
        "120000" => Kind::Link,
        "160000" => Kind::Submodule,
        mode if mode.starts_with("100") => Kind::File,
        _ => return Err(()),
    };
    Ok(Some(Entry { kind, oid: Oid::new(oid).map_err(|_| ())? }))
}

/// `<added>\t<removed>\t<path>`, with `-` for what is no text.
fn file_stat(field: &[u8]) -> Option<FileStat> {
    let mut parts = field.splitn(3, |byte| *byte == b'\t');
    let mut number = || std::str::from_utf8(parts.next()?).ok();
    let (added, removed) = (number()?, number()?);
    let lines = match (added, removed) {
        ("-", "-") => None,
        (added, removed) => Some((added.parse().ok()?, removed.parse().ok()?)),
    };
    Some(FileStat { path: path(parts.next()?), lines })
}

#[cfg(test)]
mod tests {
    use blueflame_testkit::TestEnv;

    use super::*;
    use crate::git::objects::Objects;

    #[test]
    fn subjects_are_told_for_each_range_without_merges() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        let commit = |name: &str| {
            repository.write(name, name);
            Oid::new(repository.commit(name).trim()).unwrap()
        };
        let begin = commit("begin");
        let one = commit("one");
        repository.git(["checkout", "-q", "-b", "side", begin.as_str()]);
        commit("two");
        let three = commit("three");
        repository.git(["merge", "-q", "-m", "joined", one.as_str()]);
        let four = commit("four");
        let git = Plumbing::of_repository(Objects::of(&repository.path().join(".git")));
        let ranges = [(&begin, &one), (&begin, &three), (&three, &four), (&begin, &begin)];
        let told = git.subjects(&ranges).unwrap();
        let expected = [&["one"][..], &["two", "three"], &["one", "four"], &[]];
        assert_eq!(told, expected);
        let all = git.subjects(&[(&begin, &four)]).unwrap();
        assert_eq!(all[0].len(), 4, "{all:?}");
        assert!(all[0].ends_with(&["four".to_owned()]), "{all:?}");
        let gone = Oid::new("1".repeat(40)).unwrap();
        assert!(git.subjects(&[(&begin, &gone)]).is_err());
    }

    #[test]
    fn every_commit_is_named_or_does_nothing_or_is_an_error() {
        let env = TestEnv::new();
        let repository = env.repository("project");
        repository.write("a", "1\n");
        repository.commit("start");
        repository.write("a", "2\n");
        repository.commit("change");
        repository.git(["commit", "-q", "--allow-empty", "-m", "nothing"]);
        let at = |name| Oid::new(repository.git(["rev-parse", name]).trim()).unwrap();
        let (change, nothing) = (at("HEAD~1"), at("HEAD"));
        let git = Plumbing::of_repository(Objects::of(&repository.path().join(".git")));
        let names = git.patch_ids(&[&change, &nothing]).unwrap();
        assert_eq!(names.keys().collect::<Vec<_>>(), [&change]);
        let gone = Oid::new("1".repeat(40)).unwrap();
        for commits in [&[&gone][..], &[&change, &gone], &[&gone, &nothing]] {
            let error = git.patch_ids(commits).unwrap_err();
            assert!(matches!(error, GitError::Strange { .. }), "{error}");
        }
    }
}

//! Finished work as facts, read from the person's repository.
//!
//! The objects are asked, by name and with plumbing; no work tree, no index and
//! no git directory of an agent is looked at. What is too much to be looked at
//! becomes a fact as well, so that nothing passes unseen.

use std::time::Duration;

use blueflame_core::ids::Oid;
use blueflame_core::inspection::{Commit, FileChange, FileKind, Lines, Side, Time, TooMuch, Work};

use super::patch::{self, Entry};
use crate::git::commit_object::{self, CommitObject};
use crate::git::objects::{Bounded, Objects};
use crate::git::{GitError, isolated};

/// No question takes longer, or it is given up.
const DEADLINE: Duration = Duration::from_secs(120);

/// The most commits of one task.
const MOST_COMMITS: usize = 200;
const MOST_MESSAGES: usize = 8 << 20;

/// The most of all changed lines, the whole and every commit together.
const MOST_LINES: usize = 64 << 20;
const MOST_FILES: usize = 32 << 20;

/// What diffs are asked for with: every file as text, nothing of the
/// configuration, no programs of others.
const DIFF: [&str; 4] = ["diff-tree", "-r", "-z", "--no-renames"];
const WITH_LINES: [&str; 10] = [
    "--numstat",
    "-p",
    "-U0",
    "--inter-hunk-context=0",
    "--text",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--irreversible-delete",
    "--submodule=short",
];

/// Reads what was done between two commits. `author` is who the agent's commits
/// should be by, as `Name <address>`, and `now` the time in seconds.
pub async fn gather(
    objects: &Objects,
    start: &Oid,
    head: &Oid,
    author: &str,
    now: i64,
) -> Result<Work, GitError> {
    let mut reader =
        Reader { objects, nothing: empty_tree(head), room: MOST_LINES, too_much: Vec::new() };
    let changes = reader.changes(start.as_str(), head, None).await?;
    let History { descends, mut commits } = reader.history(start, head).await?;
    for commit in &mut commits {
        let parent = commit.parents.first().map_or(reader.nothing, Oid::as_str);
        // A single commit does what all of them do.
        commit.changes = if (parent, &commit.name) == (start.as_str(), head) {
            changes.clone()
        } else {
            reader.changes(parent, &commit.name, Some(&commit.name)).await?
        };
    }
    let paths = if changes.is_empty() { Vec::new() } else { reader.paths(head).await? };
    let time = Time { began: reader.time_of(start).await?, ended: now };
    let too_much = reader.too_much;
    Ok(Work { descends, author: author.to_owned(), time, changes, commits, paths, too_much })
}

/// What the first commit of a history is compared with.
fn empty_tree(like: &Oid) -> &'static str {
    match like.as_str().len() {
        64 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        _ => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    }
}

/// The commits between a start and an end.
struct History {
    /// Whether nothing of the start's history is missing in the end's.
    descends: bool,
    commits: Vec<Commit>,
}

struct Reader<'a> {
    objects: &'a Objects,
    /// The tree without files.
    nothing: &'static str,
    /// Bytes of changed lines that may still be read.
    room: usize,
    too_much: Vec<TooMuch>,
}

impl Reader<'_> {
    async fn ask(&self, arguments: &[&str], most: usize) -> Result<Bounded<Vec<u8>>, GitError> {
        let mut command = isolated::command(self.objects.git_dir(), arguments);
        // Attributes could make a text look like a binary file.
        command.env("GIT_ATTR_SOURCE", self.nothing);
        isolated::ask(command, most, DEADLINE).await
    }

    async fn history(&mut self, start: &Oid, head: &Oid) -> Result<History, GitError> {
        let ends = (start.clone(), head.clone());
        let line = isolated::read(self.objects, move |it| it.line(&ends.0, &ends.1)).await?;
        if let Some(line) = line {
            let commits = line.into_iter().map(commit).collect();
            return Ok(History { descends: true, commits });
        }
        let most = format!("--max-count={}", MOST_COMMITS + 1);
        let range = format!("{start}..{head}");
        let arguments = ["rev-list", "--parents", "--topo-order", "--reverse", &most, &range, "--"];
        let listed = match self.ask(&arguments, MOST_MESSAGES).await? {
            Bounded::Whole(listed) => listed,
            // A commit may have as many parents as somebody writes into it.
            Bounded::TooMuch => return Ok(self.too_many_commits(true)),
        };
        let listed = String::from_utf8_lossy(&listed);
        let (mut names, mut descends) = (Vec::new(), start == head);
        for line in listed.lines() {
            let mut words = line.split(' ');
            names.push(words.next().unwrap_or_default().to_owned());
            // Every way from the end to the start ends with one of these.
            descends |= words.any(|parent| parent == start.as_str());
        }
        if names.len() > MOST_COMMITS {
            // Those that were not listed may lead there.
            return Ok(self.too_many_commits(true));
        }
        let read = isolated::read(self.objects, move |it| it.read(&names, MOST_MESSAGES)).await?;
        let Bounded::Whole(objects) = read else { return Ok(self.too_many_commits(descends)) };
        let commits = objects.into_iter().map(|object| {
            let name = object.oid.clone();
            let read = commit_object::read(object).map(commit);
            read.ok_or_else(|| strange("cat-file", format!("no commit: `{name}`")))
        });
        Ok(History { descends, commits: commits.collect::<Result<_, _>>()? })
    }

    fn too_many_commits(&mut self, descends: bool) -> History {
        self.too_much.push(TooMuch::Commits { most: MOST_COMMITS });
        History { descends, commits: Vec::new() }
    }

    /// When the work began. The start may be a commit as programs wrote them long ago.
    async fn time_of(&self, start: &Oid) -> Result<Option<i64>, GitError> {
        let names = [start.to_string()];
        let read = isolated::read(self.objects, move |it| it.read(&names, MOST_MESSAGES)).await?;
        let Bounded::Whole(mut objects) = read else { return Ok(None) };
        let commit = objects.pop().and_then(commit_object::read);
        Ok(commit.and_then(|commit| commit.committer.when))
    }

    /// Every path at the end, among which new ones have to be told apart.
    async fn paths(&mut self, head: &Oid) -> Result<Vec<String>, GitError> {
        let of = head.to_string();
        let read = isolated::read(self.objects, move |it| it.paths(&of, MOST_FILES)).await?;
        let Bounded::Whole(paths) = read else {
            self.too_much.push(TooMuch::Paths { most_bytes: MOST_FILES });
            return Ok(Vec::new());
        };
        Ok(paths.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// The files that changed from one tree to another, with their lines.
    async fn changes(
        &mut self,
        from: &str,
        to: &Oid,
        commit: Option<&Oid>,
    ) -> Result<Vec<FileChange>, GitError> {
        let trees = [from, to.as_str(), "--"];
        let raw = ["--raw", "--no-abbrev"];
        let asked = [&DIFF[..], &raw, &WITH_LINES, &trees].concat();
        let found = match self.ask(&asked, self.room).await? {
            Bounded::Whole(answer) => {
                self.room -= answer.len();
                patch::changes(&answer).map_err(|why| strange("diff-tree", why.to_string()))?
            }
            Bounded::TooMuch => {
                let commit = commit.cloned();
                self.too_much.push(TooMuch::Lines { commit, most_bytes: MOST_LINES });
                let asked = [&DIFF[..], &raw, &trees].concat();
                let entries = match self.ask(&asked, MOST_FILES).await? {
                    Bounded::Whole(answer) => patch::entries(&answer)
                        .map_err(|why| strange("diff-tree", why.to_string()))?,
                    Bounded::TooMuch => Vec::new(),
                };
                entries.into_iter().map(|entry| (entry, Lines::default())).collect()
            }
        };
        self.with_sizes(found).await
    }

    async fn with_sizes(&self, found: Vec<(Entry, Lines)>) -> Result<Vec<FileChange>, GitError> {
        let files = found.iter().flat_map(|(entry, _)| [&entry.before, &entry.after]);
        let files = files.flatten().filter(|(kind, _)| *kind != FileKind::Submodule);
        let names: Vec<String> = files.map(|(_, object)| object.to_string()).collect();
        let about = isolated::read(self.objects, move |it| it.about(&names)).await?;
        let mut about = about.into_iter();
        let mut side = |side: Option<(FileKind, Oid)>| match side {
            None => Ok(None),
            Some((kind @ FileKind::Submodule, object)) => Ok(Some(Side { kind, object, size: 0 })),
            Some((kind, object)) => match about.next().flatten() {
                Some(about) => Ok(Some(Side { kind, object, size: about.size as u64 })),
                None => Err(strange("cat-file", format!("no size of `{object}`"))),
            },
        };
        found
            .into_iter()
            .map(|(entry, lines)| {
                let (before, after) = (side(entry.before)?, side(entry.after)?);
                Ok(FileChange { path: entry.path, before, after, lines })
            })
            .collect()
    }
}

fn commit(object: CommitObject) -> Commit {
    Commit {
        author: object.author.person(),
        committer: object.committer.person(),
        dates: vec![object.author.when, object.committer.when],
        name: object.oid,
        parents: object.parents,
        unusual: object.unusual,
        message: object.message.trim_end().to_owned(),
        changes: Vec::new(),
    }
}

fn strange(command: &str, why: impl Into<String>) -> GitError {
    GitError::Strange { command: command.to_owned(), answer: why.into() }
}

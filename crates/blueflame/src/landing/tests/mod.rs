//! Landing in real repositories.

mod folding;
mod halfway;
mod landing;
mod publishing;
mod reverting;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blueflame_core::event::{FoldResult, LandResult};
use blueflame_core::ids::{AgentId, ChangesetId, Oid, Role, SessionId, TaskId};
use blueflame_core::outcome::Fold;
use blueflame_testkit::env::TestEnv;
use blueflame_testkit::repository::Repository;
use jiff::Timestamp;
use regex::Regex;

use super::*;

/// A person's repository with a few commits on `main`, which is checked out.
struct Scene<'a> {
    env: &'a TestEnv,
    repository: Repository<'a>,
    landing: Landing,
}

/// A subject, and files with what they hold afterwards, if they still exist.
type Commit<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

impl<'a> Scene<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let repository = env.repository("project");
        Scene::of(env, repository)
    }

    fn of(env: &'a TestEnv, repository: Repository<'a>) -> Self {
        repository.write("a.txt", TEN).write("b.txt", TEN).write("dir/c.txt", TEN);
        repository.write(".gitignore", "*.env\nbuild/\n");
        repository.commit("start");
        let home = env.path("home").display().to_string();
        let surroundings = [("HOME", home.as_str()), ("GIT_CONFIG_NOSYSTEM", "1")];
        let common = repository.path().join(".git");
        let landing =
            Landing::over(Objects::of(&common)).with(&surroundings, Duration::from_millis(100));
        Scene { env, repository, landing }
    }

    fn at(&self, name: &str) -> Oid {
        oid(&self.repository.git(["rev-parse", "--verify", name]))
    }

    fn path(&self) -> &Path {
        self.repository.path()
    }

    /// A worker's commits, made in a checkout of its own.
    fn work(&self, task: &str, start: &Oid, commits: &[Commit<'_>]) -> Source {
        let dir = self.env.path(format!("worker-{task}"));
        let name = dir.display().to_string();
        self.repository.git(["worktree", "add", "--quiet", "--detach", &name, start.as_str()]);
        for (subject, files) in commits {
            for (file, text) in *files {
                let path = dir.join(file);
                match text {
                    Some(text) => {
                        fs::create_dir_all(path.parent().unwrap()).unwrap();
                        let _ = fs::remove_dir(&path);
                        fs::write(path, text).unwrap();
                    }
                    None => fs::remove_file(path).unwrap(),
                }
            }
            self.repository.git(["-C", &name, "add", "--all", "--force"]);
            self.repository.git(["-C", &name, "commit", "--quiet", "-m", subject]);
        }
        let commit = oid(&self.repository.git(["-C", &name, "rev-parse", "HEAD"]));
        self.repository.git(["worktree", "remove", "--force", &name]);
        Source { task: TaskId::new(task).unwrap(), start: start.clone(), commit }
    }

    /// A worker that puts one text in one file.
    fn edit(&self, task: &str, start: &Oid, file: &str, text: &str) -> Source {
        self.work(task, start, &[(&format!("feat({task}): edit"), &[(file, Some(text))])])
    }

    fn tip(&self) -> Tip {
        self.landing.integration_tip(&session(), "main", &author(), when()).unwrap()
    }

    fn fold(&self, id: &str, tip: &Tip, sources: &[Source]) -> FoldResult {
        self.landing.fold(&fold_order(id, tip, sources)).unwrap()
    }

    #[track_caller]
    fn folded(&self, id: &str, tip: &Tip, sources: &[Source]) -> Fold {
        match self.fold(id, tip, sources) {
            FoldResult::Folded(fold) => fold,
            FoldResult::Conflict { files } => panic!("conflict in {files:?}"),
        }
    }

    /// Folds and lands one changeset and gives the order to publish it.
    #[track_caller]
    fn landed(&self, id: &str, sources: &[Source]) -> PublishOrder {
        let tip = self.tip();
        let fold = self.folded(id, &tip, sources);
        let order = land_order(id, &tip, &fold, sources);
        assert_eq!(self.landing.land(&order).unwrap(), LandResult::Landed);
        publish_order(&tip, &fold.commit)
    }

    #[track_caller]
    fn publish(&self, order: &PublishOrder) -> Publication {
        self.landing.publish(order).unwrap()
    }

    /// Why it has to wait, without the place of the test in it.
    #[track_caller]
    fn waits(&self, order: &PublishOrder) -> String {
        match self.publish(order) {
            Publication::Waiting { reason } => {
                reason.replace(&self.env.root().display().to_string(), "$ROOT")
            }
            other => panic!("{other:?}"),
        }
    }

    /// A file of a commit.
    fn show(&self, commit: &Oid, file: &str) -> String {
        self.repository.git(["show", &format!("{commit}:{file}")])
    }

    fn refs(&self) -> String {
        self.repository.git(["for-each-ref", "--format=%(refname) %(objectname)"])
    }

    /// Everything in a checkout: files, links, modes, what is staged, and
    /// locks in the git directory.
    fn fingerprint(&self, dir: &Path) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut dirs = vec![dir.to_owned()];
        while let Some(next) = dirs.pop() {
            for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
                let path = entry.path();
                let about = fs::symlink_metadata(&path).unwrap();
                let name = path.strip_prefix(dir).unwrap().to_owned();
                if name == Path::new(".git") {
                } else if about.is_dir() {
                    dirs.push(path);
                } else if about.is_symlink() {
                    all.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
                } else {
                    let bytes = fs::read(&path).unwrap();
                    let mode = std::os::unix::fs::MetadataExt::mode(&about);
                    all.insert(name, format!("{mode:o} {}", blake3::hash(&bytes)));
                }
            }
        }
        let place = dir.display().to_string();
        let index = self.repository.git(["-C", &place, "ls-files", "--stage", "-z"]);
        all.insert("the index".into(), index);
        let status = self.repository.git(["-C", &place, "status", "--porcelain", "--ignored"]);
        all.insert("the status".into(), status);
        let git_dir = self.repository.git(["-C", &place, "rev-parse", "--absolute-git-dir"]);
        for entry in fs::read_dir(self.real(git_dir.trim())).unwrap().map(Result::unwrap) {
            if entry.file_name().as_bytes().ends_with(b".lock") {
                all.insert(entry.path(), "a lock".into());
            }
        }
        all
    }

    fn real(&self, path: &str) -> PathBuf {
        path.replace("$ROOT", &self.env.root().display().to_string()).into()
    }
}

fn oid(text: &str) -> Oid {
    Oid::new(text.trim()).unwrap()
}

fn session() -> SessionId {
    SessionId::new("ses-20260206-143022").unwrap()
}

fn changeset(id: &str) -> ChangesetId {
    ChangesetId::new(id).unwrap()
}

fn author() -> Author {
    Author { name: "Ada".into(), email: "ada@example.com".into() }
}

fn when() -> Timestamp {
    Timestamp::from_second(1_770_000_000).unwrap()
}

/// Ten lines, with one of them replaced.
fn ten_with(line: usize, text: &str) -> String {
    let mut lines: Vec<&str> = TEN.lines().collect();
    lines[line - 1] = text;
    lines.join("\n") + "\n"
}

fn fold_order(id: &str, tip: &Tip, sources: &[Source]) -> FoldOrder {
    let task = |source: &Source| FoldTask {
        source: source.clone(),
        title: format!("the title of {}", source.task),
        agent: Some(AgentId::from_number(Role::Worker, 7)),
        cost: "$0.12".into(),
        validation: "passed".into(),
    };
    FoldOrder {
        session: session(),
        changeset: changeset(id),
        onto: tip.onto.clone(),
        tasks: sources.iter().map(task).collect(),
        author: author(),
        when: when(),
        style: MessageStyle { pattern: Some(Regex::new(r"^feat\([\w-]+\): .+").unwrap()) },
        merger: None,
    }
}

fn land_order(id: &str, tip: &Tip, fold: &Fold, sources: &[Source]) -> LandOrder {
    LandOrder {
        session: session(),
        changeset: changeset(id),
        base_branch: "main".into(),
        tip: tip.clone(),
        commit: fold.commit.clone(),
        approved: fold.patch.clone(),
        work: Work::Tasks(sources.to_vec()),
    }
}

fn publish_order(tip: &Tip, commit: &Oid) -> PublishOrder {
    PublishOrder {
        session: session(),
        base_branch: "main".into(),
        expected: tip.base.clone(),
        commit: commit.clone(),
    }
}

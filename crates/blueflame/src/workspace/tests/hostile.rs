//! Agents that mean harm: nothing of theirs is run, and nothing gets through.

use std::os::unix::fs::symlink;

use super::*;
use crate::attempt::snapshot::{Camera, SnapshotError};
use crate::attempt::spec::Snapshots;

/// One workspace for an agent to spoil. `$MARKER` is what must not come to be.
struct Scene<'a> {
    env: &'a TestEnv,
    repository: Repository<'a>,
    workspaces: Workspaces,
    workspace: Workspace,
}

impl<'a> Scene<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let repository = env.repository("project");
        repository.write("a", "0\n").commit("before");
        let start = oid(&repository.write("a", "1\n").commit("start"));
        let workspaces = workspaces(&repository);
        let workspace = workspaces.create(&order("t1", &start)).unwrap().workspace;
        Scene { env, repository, workspaces, workspace }
    }

    fn agent(&self, script: &str) {
        let script = format!(
            "MARKER='{}'; branch=$(git symbolic-ref HEAD); {script}",
            self.marker().display()
        );
        agent(self.env, &self.workspace, &script);
    }

    fn marker(&self) -> PathBuf {
        self.env.path("marker")
    }

    fn harvest(&self) -> Result<Harvest, HarvestError> {
        let harvest = self.workspaces.harvest(&self.workspace);
        assert!(!self.marker().exists(), "something of the agent's was run");
        self.repository.git(["fsck", "--strict"]);
        harvest
    }

    fn head_after(&self, script: &str) -> String {
        self.agent(script);
        let harvest = self.harvest().unwrap();
        self.repository.git(["show", &format!("{}:a", harvest.head)])
    }
}

const EVIL_CONFIG: &str = r#"
evil="sh -c 'touch $MARKER' --"
mkdir -p .git/evil
for hook in pre-commit post-checkout reference-transaction post-upload-pack pre-auto-gc; do
  printf '#!/bin/sh\ntouch "%s"\n' "$MARKER" > .git/evil/$hook; chmod +x .git/evil/$hook
done
echo two > a; git commit -qam two
git config core.hooksPath "$PWD/.git/evil"
git config core.fsmonitor "$evil"
git config core.sshCommand "$evil"
git config core.alternateRefsCommand "$evil"
git config core.pager "$evil"
git config diff.external "$evil"
git config uploadpack.packObjectsHook "$evil"
git config filter.evil.clean "$evil"
git config filter.evil.smudge "$evil"
git config filter.evil.required true
git config extensions.partialClone origin
git config remote.origin.promisor true
git config remote.origin.url "ext::$evil"
git config protocol.ext.allow always
git config extensions.worktreeConfig true
git config --worktree core.fsmonitor "$evil"
echo '* filter=evil diff=evil' > .gitattributes
echo three > a
"#;

#[test]
fn no_configuration_of_an_agent_is_run() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(EVIL_CONFIG);
    // It would work on anyone who is careless.
    let _ = scene.env.run({
        let mut git = env.command("git");
        git.args(["status"]).current_dir(&scene.workspace.path);
        git
    });
    assert!(scene.marker().exists(), "the trap is not armed");
    fs::remove_file(scene.marker()).unwrap();
    let refused = scene.harvest().unwrap_err();
    let HarvestError::OutOfBounds { violations } = refused else { panic!("{refused}") };
    for (violation, name) in violations.iter().zip(["config", "config.worktree"]) {
        let expected = format!("changes.git: `.git/{name}` was changed.");
        assert!(violation.starts_with(&expected), "{violation}");
    }
    // It is there to be looked at, and was made harmless.
    let reference = scene.workspaces.attempt_ref(&scene.workspace.name);
    assert_eq!(scene.repository.git(["log", "-1", "--format=%s", &reference]), "two\n");
    let harvest = scene.harvest();
    assert!(
        matches!(&harvest, Err(HarvestError::OutOfBounds { violations }) if violations.len() == 1)
    );
    fs::remove_file(scene.workspace.path.join(".git/config.worktree")).unwrap();
    let harvest = scene.harvest().unwrap();
    assert_eq!(harvest.commits, 1);
    assert_eq!(harvest.uncommitted, [".gitattributes", "a"]);
}

#[test]
fn hooks_and_attributes_in_the_git_directory_are_told() {
    for name in ["hooks/pre-commit", "info/attributes", "info/grafts", "objects/info/alternates"] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        scene.agent(&format!(
            "echo two > a; git commit -qam two; mkdir -p .git/hooks .git/info; echo x >> .git/{name}"
        ));
        match scene.harvest() {
            Err(HarvestError::OutOfBounds { violations }) => {
                assert!(violations[0].contains(&format!("`.git/{name}`")), "{violations:?}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn what_would_not_make_way_for_what_is_ours_is_told() {
    for (trick, what) in [
        ("mkdir .git/shallow", "a directory"),
        ("rm .git/config; mkdir .git/config", "a directory"),
        ("mkdir -p .git/info/exclude", "a directory"),
        ("rm -rf .git/info; echo x > .git/info", "no directory"),
    ] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        scene.agent(&format!("echo two > a; git commit -qam two; {trick}"));
        match scene.harvest() {
            Err(error @ HarvestError::Tampered { .. }) => {
                assert!(error.is_the_agents() && error.to_string().ends_with(what), "{error}");
            }
            other => panic!("{trick}: {other:?}"),
        }
    }
}

#[test]
fn what_was_hidden_from_status_is_found() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(
        "echo two > a; git commit -qam two; mkdir -p .git/info; echo /b > .git/info/exclude; \
         echo x > b",
    );
    assert_eq!(scene.harvest().unwrap().uncommitted, ["b"]);
    assert!(!scene.workspace.path.join(".git/info/exclude").exists());
}

#[test]
fn a_repository_inside_the_work_tree_is_not_looked_into() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(
        r#"
        git init -q inner; cd inner; echo x > x; git add x; git -c user.name=x -c user.email=x@y commit -qm x; cd ..
        git -c advice.addEmbeddedRepo=false add inner; git commit -qm inner
        git -C inner config core.fsmonitor "sh -c 'touch $MARKER' --"
        git -C inner config filter.evil.clean "sh -c 'touch $MARKER' --"
        echo '* filter=evil' > inner/.gitattributes; echo y > inner/x
        "#,
    );
    agent(&env, &scene.workspace, "git status >/dev/null");
    assert!(scene.marker().exists(), "the trap is not armed");
    fs::remove_file(scene.marker()).unwrap();
    let harvest = scene.harvest().unwrap();
    assert_eq!((harvest.commits, harvest.tree_changed), (1, true));
    assert!(!scene.marker().exists());
}

/// Takes two snapshots of a workspace in which an agent planted repositories,
/// and gives the files of the second.
fn snapshots_with(planted: &str) -> Result<String, SnapshotError> {
    let env = TestEnv::new();
    let inner = env.repository("inner");
    inner.write("x", "x").commit("inner");
    let repository = env.repository("project");
    let from = inner.path().to_str().unwrap();
    repository.git(["-c", "protocol.file.allow=always", "submodule", "-q", "add", from, "module"]);
    let start = oid(&repository.commit("start"));
    let workspaces = workspaces(&repository);
    let workspace = workspaces.create(&order("t1", &start)).unwrap().workspace;
    let marker = env.path("marker");
    let trap = format!(
        r#"for inner in {planted}; do
          git init -q "$inner"; cd "$inner"; git config core.fsmonitor "sh -c 'touch {}' --"
          git -c user.name=x -c user.email=x@y -c core.fsmonitor= commit -q --allow-empty -m x
          cd ..
        done; echo file > file"#,
        marker.display()
    );
    agent(&env, &workspace, &trap);
    let spec = Snapshots {
        every: std::time::Duration::from_secs(1),
        objects: repository.path().join(".git/objects"),
        exclude: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _ = fs::remove_file(&marker);
    let git_dir = env.path("snapshots.git");
    let taken = runtime.block_on(async {
        let (path, author) = (workspace.path.clone(), workspace.author.clone());
        let mut camera = Camera::new(git_dir.clone(), path, author, start.clone(), spec);
        let first = camera.take().await;
        fs::write(workspace.path.join("file"), "again").unwrap();
        first.and(camera.take().await)
    });
    assert!(!marker.exists(), "something of the agent's was run");
    let mut git = env.command("git");
    git.args(["ls-tree", "-r", "--name-only", taken?.unwrap().as_str()]).env("GIT_DIR", git_dir);
    Ok(env.run(git).success())
}

#[test]
fn snapshots_do_not_look_into_one_either() {
    let files = snapshots_with("planted module").unwrap();
    assert_eq!(files, ".gitmodules\nfile\nmodule\n");
    // Whatever becomes of a name that is no text, nothing in it is run.
    let _ = snapshots_with("\"$(printf 'p\\377')\"");
}

#[test]
fn head_tags_notes_and_branches_without_commits_do_not_matter() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let content = scene.head_after(
        "echo two > a; git commit -qam two; git checkout -q --orphan other; git commit -qm other
         git tag evil; git notes add -m x; git checkout -q --detach; git branch -qD other
         git branch same $branch",
    );
    assert_eq!(content, "two\n");
    let refs = scene.repository.git(["for-each-ref", "--format=%(refname)"]);
    assert_eq!(
        refs,
        "refs/blueflame/ses-20260206-143022/attempts/t1.a1\n\
         refs/blueflame/ses-20260206-143022/base/t1.a1\nrefs/heads/main\n"
    );
}

#[test]
fn commits_on_other_branches_and_replaced_objects_are_refused_and_kept() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(
        "echo two > a; git commit -qam two; git checkout -q --orphan other; git commit -qm other
         git replace $branch HEAD",
    );
    let refused = scene.harvest().unwrap_err();
    let HarvestError::OutOfBounds { violations } = refused else { panic!("{refused}") };
    let kept = "refs/blueflame/ses-20260206-143022/elsewhere/t1.a1/1";
    assert!(violations[0].starts_with("changes.branches:") && violations[0].contains(kept));
    assert!(violations[1].starts_with("changes.history: `refs/replace/"), "{violations:?}");
    assert_eq!(scene.repository.git(["log", "--format=%s", kept]), "other\n");
}

#[test]
fn a_branch_that_is_gone_or_rewound_is_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent("git reset -q --hard HEAD^; echo x > a; git commit -qam rewritten");
    assert!(matches!(scene.harvest(), Err(HarvestError::Rewound { .. })));
    scene.agent("git checkout -q --detach; git update-ref -d $branch");
    assert!(matches!(scene.harvest(), Err(HarvestError::BranchGone { .. })));
}

/// It says so where git does not look, and nobody else does either.
#[test]
fn a_commit_that_only_seems_to_continue_the_start_is_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(
        "start=$(git rev-parse HEAD); tree=$(git rev-parse HEAD^{tree})
         alone=$(git commit-tree -m alone $tree)
         forged=$(git cat-file commit $alone | sed \"/^committer/a parent $start\" |
             git hash-object -t commit -w --stdin --literally)
         git update-ref $branch $forged",
    );
    assert!(matches!(scene.harvest(), Err(HarvestError::Rewound { .. })));
}

#[test]
fn more_commits_than_anyone_would_look_at_are_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let many = |count: u32| {
        format!(
            "{{ echo \"reset $branch\"; echo \"from $branch^0\"; for i in $(seq {count}); do
               echo \"commit $branch\"; echo 'committer A <a@b.c> 1700000000 +0000'
               echo 'data <<E'; echo x; echo E; done; }} | git fast-import --quiet"
        )
    };
    scene.agent(&many(10_000));
    assert_eq!(scene.harvest().unwrap().commits, 10_000);
    scene.agent(&many(1));
    assert!(matches!(scene.harvest(), Err(HarvestError::TooMany { most: 10_000 })));
}

#[test]
fn a_branch_that_points_to_no_commit_is_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(
        "blob=$(git rev-parse HEAD:a); mkdir -p .git/${branch%/*}; echo $blob > .git/$branch",
    );
    let refused = scene.harvest().unwrap_err();
    assert!(
        matches!(refused, HarvestError::NotACommit { .. } | HarvestError::Refused { .. }),
        "{refused}"
    );
    // A tag is none either, although it leads to one.
    let start = &scene.workspace.start;
    scene.agent(&format!("git tag -a -m x evil {start}; git rev-parse evil > .git/$branch"));
    let refused = scene.harvest().unwrap_err();
    assert!(matches!(refused, HarvestError::NotACommit { .. }), "{refused}");
    scene.agent("printf 1111111111111111111111111111111111111111 > .git/$branch");
    let refused = scene.harvest().unwrap_err();
    assert!(
        matches!(refused, HarvestError::BranchGone { .. } | HarvestError::Refused { .. }),
        "{refused}"
    );
}

#[test]
fn links_pipes_and_pointers_in_the_git_directory_are_refused() {
    let rows = [
        ("mkdir -p .git/${branch%/*}; ln -s /etc/passwd .git/$branch", "a symbolic link"),
        ("mv .git/refs /tmp/../$PWD/r; ln -s ../r .git/refs", "a symbolic link"),
        ("mv .git/objects o; ln -s ../o .git/objects", "a symbolic link"),
        ("rm .git/config; ln -s /etc/passwd .git/config", "a symbolic link"),
        ("rm .git/packed-refs; mkfifo .git/packed-refs", "a special file"),
        ("echo /tmp > .git/commondir", "a pointer elsewhere"),
        ("mv .git g; ln -s g .git", "no directory"),
        ("mv .git g; echo 'gitdir: g' > .git", "no directory"),
        ("rm -rf .git", "gone"),
    ];
    for (script, expected) in rows {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        scene.agent(script);
        match scene.harvest() {
            Err(HarvestError::Tampered { what, .. }) => assert_eq!(what, expected, "{script}"),
            other => panic!("{script}: {other:?}"),
        }
    }
}

#[test]
fn objects_from_elsewhere_are_not_taken() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let secret = env.repository("secret");
    secret.write("s", "secret\n").commit("secret");
    scene.agent(
        "echo ../../../../../../secret/.git/objects > .git/objects/info/alternates
         blob=$(git -C ../../../../secret rev-parse HEAD:s)
         echo \"$PWD/../../../../secret/.git/objects\" > .git/objects/info/alternates
         tree=$(printf '100644 blob %s\\ts\\n' $blob | git mktree)
         cat ../../../.git/objects/info/alternates 2>/dev/null || true
         echo \"$PWD/../../../.git/objects\" >> .git/objects/info/alternates
         git update-ref $branch $(git commit-tree $tree -p HEAD -m x)",
    );
    let refused = scene.harvest().unwrap_err();
    assert!(matches!(refused, HarvestError::Refused { .. }), "{refused}");
}

#[test]
fn a_planted_end_of_history_changes_nothing() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let content =
        scene.head_after("echo two > a; git commit -qam two; git rev-parse HEAD > .git/shallow");
    assert_eq!(content, "two\n");
    assert!(!scene.repository.path().join(".git/shallow").exists());
}

/// Writes a tree with one entry that git itself would never write, and commits it.
fn commit_tree(scene: &Scene<'_>, mode: &str, name: &str, what: &str) {
    let text = |words: &[&str]| {
        let mut git = scene.env.command("git");
        git.args(words).current_dir(&scene.workspace.path);
        scene.env.run(git).success().trim().to_owned()
    };
    let inner = text(&["rev-parse", what]);
    let mut tree = format!("{mode} {name}\0").into_bytes();
    tree.extend(
        (0..inner.len()).step_by(2).map(|at| u8::from_str_radix(&inner[at..at + 2], 16).unwrap()),
    );
    fs::write(scene.env.path("tree"), tree).unwrap();
    let file = scene.env.path("tree");
    let tree = text(&["hash-object", "-t", "tree", "--literally", "-w", file.to_str().unwrap()]);
    let commit = text(&["commit-tree", &tree, "-p", "HEAD", "-m", "x"]);
    text(&["update-ref", &format!("refs/heads/{}", scene.workspace.branch), &commit]);
}

#[test]
fn trees_that_would_write_where_they_must_not_are_refused() {
    for (mode, name, what) in [
        ("40000", ".git", "HEAD^{tree}"),
        ("40000", ".GIT", "HEAD^{tree}"),
        ("40000", "..", "HEAD^{tree}"),
        ("40000", ".", "HEAD^{tree}"),
        ("40000", "git~1", "HEAD^{tree}"),
        ("100644", "a/b", "HEAD:a"),
        ("120000", ".gitmodules", "HEAD:a"),
    ] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        commit_tree(&scene, mode, name, what);
        let refused = scene.harvest().unwrap_err();
        assert!(matches!(refused, HarvestError::Refused { .. }), "{mode} {name}: {refused}");
        let reference = scene.workspaces.attempt_ref(&scene.workspace.name);
        assert_eq!(scene.repository.git(["for-each-ref", &reference]), "");
    }
}

#[test]
fn broken_objects_are_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent(
        "echo two > a; git commit -qam two; blob=$(git rev-parse HEAD:a)
         file=.git/objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-)
         chmod u+w $file; echo garbage > $file",
    );
    let refused = scene.harvest().unwrap_err();
    assert!(matches!(refused, HarvestError::Refused { .. }), "{refused}");
}

/// An agent that could bring the session to a halt would have a say in it.
#[test]
fn a_ruined_repository_is_the_agents_own_affair() {
    for ruin in ["rm -rf .git/objects", "rm -rf .git/objects .git/refs", "rm .git/HEAD"] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        scene.agent(&format!("echo two > a; git commit -qam two; {ruin}"));
        let refused = scene.harvest().unwrap_err();
        assert!(refused.is_the_agents(), "{ruin}: {refused}");
    }
}

/// Whatever is missing in its git directory: it is no use to try again, and
/// nobody else is kept from working.
#[test]
fn a_repository_that_was_broken_is_its_own_fault() {
    for script in [
        "rm .git/HEAD",
        "echo garbage > .git/HEAD",
        "rm -rf .git/refs",
        "find .git -mindepth 1 -delete",
        "git pack-refs --all; echo garbage > .git/packed-refs",
        "mkdir -p .git/${branch%/*}; echo garbage > .git/$branch",
        "echo two > a; git commit -qam two; rm -rf .git/objects",
        "echo two > a; git commit -qam two; rm -r .git/objects/??",
        "echo two > a; git commit -qam two; chmod -R u+w .git
         find .git/objects/?? -type f | xargs truncate -s 9",
    ] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        scene.agent(script);
        match scene.harvest() {
            Err(error) => assert!(error.is_the_agents(), "{script}: {error}"),
            Ok(found) => panic!("{script}: {found:?}"),
        }
    }
}

#[test]
fn removing_follows_no_links_and_minds_no_modes() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let outside = env.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("keep"), "x").unwrap();
    symlink(&outside, scene.workspace.path.join("link")).unwrap();
    scene.agent("mkdir -p locked/in; echo > locked/in/f; chmod 500 locked/in; chmod 000 locked");
    scene.workspaces.remove(&scene.workspace).unwrap();
    assert!(!scene.workspace.path.exists());
    assert!(outside.join("keep").exists());
    // Its session's directory went with the last workspace.
    assert!(!scene.workspace.path.parent().unwrap().exists());
    scene.workspaces.remove(&scene.workspace).unwrap();
}

#[test]
fn a_work_tree_that_is_a_link_is_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let moved = env.path("moved");
    fs::rename(&scene.workspace.path, &moved).unwrap();
    symlink(&moved, &scene.workspace.path).unwrap();
    assert!(matches!(scene.harvest(), Err(HarvestError::Tampered { .. })));
    scene.workspaces.remove(&scene.workspace).unwrap();
    assert!(moved.exists());
}

/// A list of commits as git writes it, in which the last commit has the files of the first.
const LYING_GRAPH: &str = r#"
import glob, hashlib, os, struct, subprocess
oid = lambda name: bytes.fromhex(subprocess.check_output(["git", "rev-parse", name]).decode().strip())
path = ".git/objects/info/commit-graph"
graph = bytearray(open(path, "rb").read()[:-20])
old, new = oid("HEAD^{tree}"), oid("HEAD~1^{tree}")
assert graph.count(old) == 1
at = graph.index(old)
graph[at:at + 20] = new
os.chmod(path, 0o644)
open(path, "wb").write(bytes(graph) + hashlib.sha1(graph).digest())
assert subprocess.check_output(["git", "log", "-1", "--format=%T"]).decode().strip() == new.hex()
"#;

/// A list of where objects are in a pack that leads git astray.
const LYING_ORDER: &str = r#"
import glob, hashlib, os
[path] = glob.glob(".git/objects/pack/*.rev")
data = bytearray(open(path, "rb").read()[:-20])
for at in range(12, len(data) - 20, 4): data[at:at + 4] = b"\x7f\xff\xff\xff"
os.chmod(path, 0o644)
open(path, "wb").write(bytes(data) + hashlib.sha1(data).digest())
"#;

/// Whatever is said of objects beside them is not what they are.
#[test]
fn what_is_said_of_objects_is_not_believed() {
    for (prepare, lie) in [
        ("git commit-graph write --reachable", LYING_GRAPH),
        ("git -c pack.writeReverseIndex=true repack -adlq", LYING_ORDER),
        ("git repack -adlbq", ""),
        ("git repack -adlq; git repack -dq; git multi-pack-index write", ""),
    ] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        fs::write(env.path("lie.py"), lie).unwrap();
        let lie = env.path("lie.py");
        let work = "echo two > a; git commit -qam two";
        scene.agent(&format!("{work}; {prepare}; python3 '{}'", lie.display()));
        assert_eq!(scene.harvest().unwrap().commits, 1, "{prepare}");
        scene.repository.git(["fsck", "--strict"]);
    }
}

/// A pack whose list has another object under the name of the start. Whoever believes it
/// takes the files of that for files that are there already.
#[test]
fn a_pack_is_not_what_its_list_says() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.agent("echo two > a; git commit -qam two; git repack -adlq; chmod -R u+w .git");
    let lie = r#"
import glob, hashlib, subprocess
oid = lambda name: bytes.fromhex(subprocess.check_output(["git", "rev-parse", name]).decode().strip())
[path] = glob.glob(".git/objects/pack/*.idx")
index = open(path, "rb").read()
tip, start = oid("HEAD"), oid("HEAD~1")
assert index.count(tip) == 1
# Its place has to fit its name, so only one that begins with the same is swapped.
index = bytearray(index[:-20]); at = index.index(tip); index[at + 1:at + 20] = start[1:]
open(path, "wb").write(bytes(index) + hashlib.sha1(index).digest())
"#;
    fs::write(env.path("lie.py"), lie).unwrap();
    scene.agent(&format!("python3 '{}'", env.path("lie.py").display()));
    // Our own list of it has the commit.
    assert_eq!(scene.harvest().unwrap().commits, 1);
    scene.repository.git(["fsck", "--strict"]);
}

#[test]
fn what_is_not_all_there_does_not_come_in() {
    for lost in ["HEAD:a", "HEAD^{tree}", "HEAD~1", "HEAD~1:a", "HEAD"] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        scene.agent(&format!(
            "for text in two three; do echo $text > a; git commit -qam $text; done
             lost=$(git rev-parse {lost}); rm -f .git/objects/$(echo $lost | sed 's|^..|&/|')"
        ));
        let refused = scene.harvest().unwrap_err();
        assert!(matches!(refused, HarvestError::Refused { .. }), "{lost}: {refused}");
        let reference = scene.workspaces.attempt_ref(&scene.workspace.name);
        assert_eq!(scene.repository.git(["for-each-ref", &reference]), "", "{lost}");
        scene.repository.git(["fsck", "--strict"]);
    }
}

/// One that is there under the name of another would be taken for it.
#[test]
fn an_object_is_what_its_name_says() {
    let file = "file() { echo .git/objects/$(git rev-parse $1 | sed 's|^..|&/|'); }";
    let other = "other=$(git commit-tree -p HEAD -m other HEAD^{tree})";
    for script in [
        "cp $(file $(echo other | git hash-object -w --stdin)) $(file HEAD:a)",
        &format!("{other}; cp $(file $other) $(file HEAD)"),
        &format!(
            "git checkout -q -b side; git commit -q --allow-empty -m side; {other}
                  cp $(file $other) $(file HEAD); git checkout -qf -"
        ),
    ] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let work = "echo two > a; git commit -qam two; chmod -R u+w .git";
        scene.agent(&format!("{file}\n{work}\n{script}"));
        let refused = scene.harvest().unwrap_err();
        assert!(refused.is_the_agents(), "{script}: {refused}");
    }
}

/// Two packed objects that are each told by the other: nobody can say what they are.
#[test]
fn objects_that_need_each_other_are_refused() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let pack = r#"
import hashlib, os, struct, zlib
a, b = b"\x11" * 20, b"\x22" * 20
delta = zlib.compress(b"\x04\x04\x90\x04")
data = b"PACK" + struct.pack(">II", 2, 2) + b"".join(b"\x74" + base + delta for base in (a, b))
os.makedirs(".git/objects/pack", exist_ok=True)
open(".git/objects/pack/pack-x.pack", "wb").write(data + hashlib.sha1(data).digest())
"#;
    fs::write(env.path("pack.py"), pack).unwrap();
    let work = "echo two > a; git commit -qam two";
    scene.agent(&format!("{work}; python3 '{}'", env.path("pack.py").display()));
    let refused = scene.harvest().unwrap_err();
    assert!(matches!(refused, HarvestError::Refused { .. }), "{refused}");
}

/// What the agent says is in git's own words.
#[test]
fn an_agent_does_not_speak_for_the_machine() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let objects = || scene.repository.git(["count-objects", "-v"]);
    let before = objects();
    scene.agent(
        "git config -f .gitmodules submodule.x.path x
         git config -f .gitmodules submodule.x.url '-x: No space left on device'
         git add .gitmodules; git commit -qm modules",
    );
    let refused = scene.harvest().unwrap_err();
    assert!(refused.to_string().contains("No space left on device"), "{refused}");
    assert!(refused.is_the_agents(), "{refused}");
    // Nothing of what was refused is there for another to refer to.
    let unfinished =
        |line: &&str| !line.starts_with("garbage") && !line.starts_with("size-garbage");
    let readable = |text: &str| text.lines().filter(unfinished).collect::<Vec<_>>().join("\n");
    assert_eq!(readable(&objects()), readable(&before));
}

/// A long history that the person has elsewhere is no burden.
#[test]
fn what_the_person_has_elsewhere_is_not_walked_to_its_end() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let stream: String = (0..60_000).fold(String::new(), |text, number| {
        text + &format!(
            "commit refs/heads/long\ncommitter A <a@b> {} +0000\ndata 1\nx\n",
            1_000_000_000 + number
        )
    });
    let file = env.path("stream");
    fs::write(&file, stream).unwrap();
    let mut import = env.command("git");
    import.args(["fast-import", "--quiet"]).current_dir(scene.repository.path());
    import.stdin(fs::File::open(&file).unwrap());
    assert!(import.status().unwrap().success());
    let tip = scene.repository.git(["rev-parse", "long"]);
    let refused = {
        scene.agent(&format!("git reset -q --hard {}", tip.trim()));
        scene.harvest().unwrap_err()
    };
    assert!(refused.is_the_agents(), "{refused}");
}

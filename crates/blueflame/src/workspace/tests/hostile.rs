//! Agents that mean harm: nothing of theirs is run, and nothing gets through.

use std::os::unix::fs::symlink;

use super::*;
use crate::attempt::snapshot::{Camera, SnapshotError};
use crate::attempt::spec::Snapshots;

/// One workspace for an agent to spoil. `$MARKER` is what must not come to be.
pub(super) struct Scene<'a> {
    env: &'a TestEnv,
    pub repository: Repository<'a>,
    pub workspaces: Workspaces,
    pub workspace: Workspace,
}

impl<'a> Scene<'a> {
    pub fn new(env: &'a TestEnv) -> Self {
        let repository = env.repository("project");
        repository.write("a", "0\n").commit("before");
        let start = oid(&repository.write("a", "1\n").commit("start"));
        let workspaces = workspaces(&repository);
        let workspace = workspaces.create(&order("t1", &start)).unwrap().workspace;
        Scene { env, repository, workspaces, workspace }
    }

    pub fn agent(&self, script: &str) {
        let script = format!(
            "MARKER='{}'; branch=$(git symbolic-ref HEAD); {script}",
            self.marker().display()
        );
        agent(self.env, &self.workspace, &script);
    }

    fn marker(&self) -> PathBuf {
        self.env.path("marker")
    }

    pub fn harvest(&self) -> Result<Harvest, HarvestError> {
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

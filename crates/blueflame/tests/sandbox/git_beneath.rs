//! What git goes by in a workspace that is laid over a checkout: most of it is in the
//! checkout, for all of them, and what an agent does to it is its own doing.

use std::fs;

use blueflame::attempt::spec::Author;
use blueflame::workspace::{HarvestError, Layers};

use crate::layered::{Scene, layers, order};

const FILES: &[(&str, &str)] = &[("a", "1\n")];

#[test]
fn a_workspace_has_only_its_branch_of_its_own() {
    let scene = Scene::made_by(FILES, layers());
    let workspace = scene.create("task-001");
    let own = Layers::of(&workspace.path).unwrap().changes().join(".git");
    let mut names: Vec<String> = fs::read_dir(&own)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["HEAD", "packed-refs"]);
    let seen = scene.agent(&workspace, "git fsck --strict; git config user.name; ls .git/hooks");
    assert_eq!(seen, "Agent\n");
}

#[test]
fn an_agent_finds_its_way_back() {
    let scene = Scene::made_by(FILES, layers());
    let workspace = scene.create("task-001");
    let work = "for text in two three; do echo $text > a; git commit -qam $text; done
                git reset -q --hard HEAD~1; git reset -q --hard HEAD@{1}; echo four > a; git stash -q
                git checkout -q --detach; git checkout -q -; git stash pop -q; cat a
                git reflog --format=%gs | head -n 2; test ! -e .git/logs/refs/heads";
    let seen = scene.agent(&workspace, work);
    let branch = &workspace.branch;
    let back = seen.strip_prefix("four\n").unwrap().lines().next().unwrap();
    assert!(back.starts_with("checkout: moving from ") && back.ends_with(branch), "{seen}");
    scene.agent(&workspace, "git commit -qam four");
    assert_eq!(scene.harvest(&workspace).commits, 3);
}

/// As little as possible was done: there is next to nothing in the upper layer then.
#[test]
fn whatever_references_there_are_is_seen_from_outside() {
    let scene = Scene::made_by(FILES, layers());
    for (script, commits) in [
        ("true", 0),
        ("git status", 0),
        ("git tag v1", 0),
        ("git pack-refs --all", 0),
        ("git branch other; git branch -q -d other; git pack-refs --all", 0),
        ("git commit -q --allow-empty -m x; git pack-refs --all --prune", 1),
    ] {
        let workspace = scene.create("task-001");
        scene.agent(&workspace, script);
        // Once more changes nothing.
        for _ in 0..2 {
            let found = scene.harvest(&workspace);
            assert_eq!((found.commits, found.uncommitted.len()), (commits, 0), "{script}");
            let kept = scene.git(&["rev-parse", &scene.workspaces.attempt_ref(&workspace.name)]);
            assert_eq!(kept, found.head.as_str(), "{script}");
        }
        assert_eq!(scene.agent(&workspace, "git status --porcelain"), "", "{script}");
        scene.workspaces.remove(&workspace).unwrap();
    }
}

#[test]
fn who_changes_what_git_goes_by_has_not_done_the_task() {
    let scene = Scene::made_by(FILES, layers());
    let work = "echo 2 > a; git commit -qam two";
    for (script, changed) in [
        ("echo '[core]' >> .git/config", "`.git/config` was changed"),
        ("echo /tmp >> .git/objects/info/alternates", "`.git/objects/info/alternates` was changed"),
        (
            "cp -r .git/objects/info i; rm -r .git/objects/info; mkdir .git/objects/info",
            "`.git/objects/info/alternates` was changed",
        ),
        ("echo x > .git/hooks/pre-commit", "`.git/hooks/pre-commit` was changed"),
        ("rm -r .git/hooks; mkdir .git/hooks; echo x > .git/hooks/p", "`.git/hooks/p` was changed"),
        ("echo x > .git/info/attributes", "`.git/info/attributes` was changed"),
    ] {
        let workspace = scene.create("task-001");
        scene.agent(&workspace, &format!("{work}; {script}"));
        match scene.workspaces.harvest(&workspace) {
            Err(HarvestError::OutOfBounds { violations }) => {
                assert!(
                    violations.iter().any(|it| it.contains(changed)),
                    "{script}: {violations:?}"
                );
            }
            other => panic!("{script}: {other:?}"),
        }
        scene.workspaces.remove(&workspace).unwrap();
    }
    // What is gone leaves a note of the kernel's, which is no file.
    for script in
        ["rm .git/config", "rm -r .git/objects/info", "rm -r .git/refs", "rm -r .git/hooks"]
    {
        let workspace = scene.create("task-001");
        scene.agent(&workspace, &format!("{work}; {script}"));
        let refused = scene.workspaces.harvest(&workspace).unwrap_err();
        assert!(refused.is_the_agents(), "{script}: {refused}");
        scene.workspaces.remove(&workspace).unwrap();
    }
}

#[test]
fn a_checkout_that_was_made_for_somebody_else_is_not_used() {
    let scene = Scene::made_by(FILES, layers());
    scene.create("task-001");
    let grace = Author { name: "Grace".into(), email: "grace@example.com".into() };
    let again = scene.another_session().committing_as(grace);
    let workspace = again.create(&order("task-101", &scene.head())).unwrap().workspace;
    assert_eq!(scene.bases().len(), 2);
    assert_eq!(scene.agent(&workspace, "git config user.name"), "Grace\n");
    scene.agent(&workspace, "echo 2 > a; git commit -qam two");
    assert_eq!(again.harvest(&workspace).unwrap().commits, 1);
}

/// Git goes up to a repository around it where it finds none: the person's own.
#[test]
fn what_was_refused_can_be_looked_at_with_git() {
    let scene = Scene::made_by(FILES, layers());
    let workspace = scene.create("task-001");
    scene.agent(
        &workspace,
        "head -c 3000 /dev/zero | tr '\\0' x > .gitattributes; git add .; git commit -qm long",
    );
    let refused = scene.workspaces.harvest(&workspace).unwrap_err();
    assert!(matches!(refused, HarvestError::Refused { .. }), "{refused}");
    let kept = scene.workspaces.kept(&workspace);
    let place = kept.split('`').nth(1).unwrap();
    assert_eq!(scene.git(&["-C", place, "log", "-1", "--format=%s"]), "long", "{kept}");
}

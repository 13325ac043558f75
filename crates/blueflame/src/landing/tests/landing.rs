//! Landing by compare-and-swap.

use super::*;

#[test]
fn a_changeset_lands_once() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let one = [scene.edit("one", &scene.at("main"), "a.txt", "x\n")];
    let tip = scene.tip();
    let fold = scene.folded("auth.c1", &tip, &one);
    let order = land_order("auth.c1", &tip, &fold, &one);
    assert_eq!(scene.landing.land(&order).unwrap(), LandResult::Landed);
    let refs = scene.refs();
    for (name, at) in [
        ("refs/heads/main", &tip.base),
        ("refs/blueflame/ses-20260206-143022/integration", &fold.commit),
        ("refs/blueflame/ses-20260206-143022/landed/auth.c1", &fold.commit),
    ] {
        assert!(refs.contains(&format!("{name} {at}\n")), "{refs}");
    }
    assert_eq!(scene.landing.land(&order).unwrap(), LandResult::Landed);
    assert_eq!(scene.refs(), refs);

    let two = [scene.edit("two", &scene.at("main"), "b.txt", "y\n")];
    let tip = scene.tip();
    assert_eq!(tip.onto, fold.commit);
    let fold = scene.folded("auth.c1", &tip, &two);
    let error = scene.landing.land(&land_order("auth.c1", &tip, &fold, &two)).unwrap_err();
    assert!(matches!(error, LandingError::LandedOtherwise { .. }), "{error}");
}

#[test]
fn nothing_lands_on_a_base_or_on_landed_work_that_moved() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let one = [scene.edit("one", &base, "a.txt", "x\n")];
    let two = [scene.edit("two", &base, "b.txt", "y\n")];
    let tip = scene.tip();
    let fold = scene.folded("one.c1", &tip, &one);
    let stale = scene.folded("two.c1", &tip, &two);
    let order = land_order("one.c1", &tip, &fold, &one);
    let late = land_order("two.c1", &tip, &stale, &two);

    scene.repository.write("dir/c.txt", "person\n").commit("the person goes on");
    let refs = scene.refs();
    assert_eq!(scene.landing.land(&order).unwrap(), LandResult::BaseMoved);
    assert_eq!(scene.refs(), refs);

    let tip = scene.tip();
    let again = scene.folded("one.c1", &tip, &one);
    assert_eq!(again.patch, fold.patch);
    let order = land_order("one.c1", &tip, &again, &one);
    assert_eq!(scene.landing.land(&order).unwrap(), LandResult::Landed);
    let late = LandOrder { tip: Tip { base: scene.at("main"), ..late.tip.clone() }, ..late };
    assert_eq!(scene.landing.land(&late).unwrap(), LandResult::BaseMoved);
}

#[test]
fn only_what_was_approved_and_what_the_tasks_did_can_land() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let one = scene.edit("one", &base, "a.txt", "x\n");
    let two = scene.edit("two", &base, "b.txt", "y\n");
    let tip = scene.tip();
    let both = [one.clone(), two.clone()];
    let fold = scene.folded("auth.c1", &tip, &both);
    let good = land_order("auth.c1", &tip, &fold, &both);
    let refused = |order: LandOrder| scene.landing.land(&order).unwrap_err().to_string();

    let other = LandOrder { approved: "another".into(), ..good.clone() };
    assert!(refused(other).starts_with("what was approved is another change"));
    let less = LandOrder { work: Work::Tasks(vec![one.clone()]), ..good.clone() };
    assert_eq!(refused(less), "`two` is in what would land, but nobody approved it there");
    let three = Source { task: TaskId::new("three").unwrap(), ..two.clone() };
    let more = vec![one.clone(), two.clone(), three];
    let more = LandOrder { work: Work::Tasks(more), ..good.clone() };
    assert_eq!(refused(more), "`three` is not in what would land");
    let changed = scene.edit("two2", &base, "b.txt", "z\n");
    let changed = Source { task: two.task.clone(), ..changed };
    let changed = LandOrder { work: Work::Tasks(vec![one, changed]), ..good.clone() };
    assert!(refused(changed).ends_with("is not what its tasks did, in `b.txt`"));
    assert_eq!(scene.landing.land(&good).unwrap(), LandResult::Landed);
}

#[test]
fn a_base_that_moved_is_joined_with_what_waits_to_be_published() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let base = scene.at("main");
    let waiting = scene.landed("one.c1", &[scene.edit("one", &base, "a.txt", "x\n")]);
    scene.repository.write("b.txt", "person\n").commit("the person goes on");
    let base = scene.at("main");
    assert_eq!(scene.publish(&waiting), Publication::Moved { base: base.clone() });

    let tip = scene.tip();
    assert!(tip.is_joint());
    assert_eq!(scene.tip(), tip);
    let parents = scene.repository.git(["log", "-1", "--format=%P", tip.onto.as_str()]);
    assert_eq!(parents, format!("{base} {}\n", waiting.commit));
    // With a changeset on top, or without one.
    let two = [scene.edit("two", &base, "dir/c.txt", "y\n")];
    let fold = scene.folded("two.c1", &tip, &two);
    scene.landing.adopt(&session(), &tip).unwrap();
    scene.landing.adopt(&session(), &tip).unwrap();
    let order = publish_order(&tip, &tip.onto);
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.at("main"), tip.onto);
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
    let order = land_order("two.c1", &tip, &fold, &two);
    assert_eq!(scene.landing.land(&order).unwrap(), LandResult::BaseMoved);
    assert_eq!(scene.folded("two.c1", &scene.tip(), &two).commit, fold.commit);
}

#[test]
fn a_base_that_conflicts_with_landed_work_is_for_the_person_to_merge() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let waiting = scene.landed("one.c1", &[scene.edit("one", &scene.at("main"), "a.txt", "x\n")]);
    scene.repository.write("a.txt", "person\n").commit("the person goes on");
    let asked = scene.landing.integration_tip(&session(), "main", &author(), when());
    let expected = format!(
        "`main` moved and now conflicts with landed work in `a.txt`; merge `{}` into it",
        waiting.commit
    );
    assert_eq!(asked.unwrap_err().to_string(), expected);
    scene.repository.git(["merge", "--quiet", "-s", "ours", waiting.commit.as_str()]);
    assert_eq!(scene.tip().onto, scene.at("main"));
    assert_eq!(scene.publish(&waiting), Publication::Published);
}

#[test]
fn published_work_that_was_rebased_is_known_again_and_what_was_dropped_stays_out() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let start = scene.at("main");
    let order = scene.landed("one.c1", &[scene.edit("one", &start, "a.txt", "x\n")]);
    assert_eq!(scene.publish(&order), Publication::Published);

    // As `git pull --rebase` would: another commit below, ours made anew.
    scene.repository.git(["reset", "--quiet", "--hard", start.as_str()]);
    scene.repository.write("b.txt", "colleague\n").commit("from elsewhere");
    scene.repository.git(["cherry-pick", order.commit.as_str()]);
    let tip = scene.tip();
    assert_eq!(tip.onto, scene.at("main"));
    let two = [scene.edit("two", &tip.base, "dir/c.txt", "y\n")];
    let next = scene.landed("two.c1", &two);
    assert_eq!(scene.publish(&next), Publication::Published);

    scene.repository.git(["reset", "--quiet", "--hard", start.as_str()]);
    let asked = scene.landing.integration_tip(&session(), "main", &author(), when());
    assert!(matches!(asked.unwrap_err(), LandingError::Withdrawn { .. }));
}

/// A machine that stopped while refs moved leaves git's locks behind.
#[test]
fn locks_of_a_git_that_died_do_not_stay() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let one = [scene.edit("one", &scene.at("main"), "a.txt", "x\n")];
    let tip = scene.tip();
    let fold = scene.folded("auth.c1", &tip, &one);
    let order = land_order("auth.c1", &tip, &fold, &one);
    let git_dir = scene.path().join(".git");
    let locks = ["refs/heads/main.lock", "packed-refs.lock"].map(|name| git_dir.join(name));
    let note = git_dir.join("blueflame/moving.json");
    fs::write(&locks[0], "").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&note, r#"["refs/heads/main.lock","packed-refs.lock"]"#).unwrap();
    fs::write(&locks[1], "").unwrap();
    // The first is older than what was announced, so it is somebody else's.
    assert!(scene.landing.land(&order).is_err());
    assert!(locks[0].exists() && !locks[1].exists());
    fs::write(&note, r#"["refs/heads/main.lock","packed-refs.lock"]"#).unwrap();
    fs::write(&locks[0], "").unwrap();
    assert_eq!(scene.landing.land(&order).unwrap(), LandResult::Landed);
    assert!(!locks[0].exists() && !note.exists());
}

/// After a power loss a ref may be an empty file. What it held would be forgotten.
#[test]
fn a_ref_that_cannot_be_read_is_not_taken_for_none() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let path = scene.path().join(".git").join(Refs(&session()).integration());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for text in ["", "nothing that git knows\n"] {
        fs::write(&path, text).unwrap();
        let tip = scene.landing.integration_tip(&session(), "main", &author(), when());
        let error = tip.unwrap_err().to_string();
        assert!(error.contains("ignoring broken ref refs/blueflame/"), "{error}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(scene.tip().integration, None);
}

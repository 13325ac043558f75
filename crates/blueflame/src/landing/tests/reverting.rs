//! Taking a landed changeset back.

use super::*;

fn revert_order(scene: &Scene<'_>, tip: &Tip, id: &str) -> RevertOrder {
    let undo = scene.landing.find_landed(&tip.onto, &changeset(id), None).unwrap();
    RevertOrder {
        session: session(),
        changeset: changeset(&format!("revert-{id}")),
        onto: tip.onto.clone(),
        undo,
        author: author(),
        when: when(),
    }
}

#[test]
fn a_changeset_is_taken_back_on_top_of_what_came_after() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let start = scene.at("main");
    let one = scene.edit("one", &start, "a.txt", &ten_with(2, "two"));
    let two = scene.edit("two", &one.commit, "b.txt", "x\n");
    assert_eq!(scene.publish(&scene.landed("auth.c1", &[one, two])), Publication::Published);
    let three = scene.edit("three", &scene.at("main"), "dir/c.txt", "later\n");
    assert_eq!(scene.publish(&scene.landed("api.c1", &[three])), Publication::Published);

    let tip = scene.tip();
    let order = revert_order(&scene, &tip, "auth.c1");
    assert_eq!(order.undo.before, start);
    let FoldResult::Folded(fold) = scene.landing.revert(&order).unwrap() else { panic!() };
    assert_eq!(scene.landing.revert(&order).unwrap(), FoldResult::Folded(fold.clone()));
    let land = LandOrder {
        work: Work::Revert(order.undo.clone()),
        ..land_order("revert-auth.c1", &tip, &fold, &[])
    };
    assert_eq!(scene.landing.land(&land).unwrap(), LandResult::Landed);
    assert_eq!(scene.publish(&publish_order(&tip, &fold.commit)), Publication::Published);
    let read = |name| fs::read_to_string(scene.path().join(name)).unwrap();
    assert_eq!((read("a.txt"), read("b.txt")), (TEN.to_owned(), TEN.to_owned()));
    assert_eq!(read("dir/c.txt"), "later\n");
    let message = scene.repository.git(["log", "-1", "--format=%B"]);
    insta::assert_snapshot!(message, @r"
    revert: ses-20260206-143022/auth.c1

    Takes back what `ses-20260206-143022/auth.c1` had landed.

    Blueflame-Session: ses-20260206-143022
    Blueflame-Changeset: revert-auth.c1
    Blueflame-Reverts: ses-20260206-143022/auth.c1
    ");
}

#[test]
fn what_was_built_upon_conflicts_and_says_where() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let one = scene.edit("one", &scene.at("main"), "a.txt", &ten_with(2, "two"));
    let order = scene.landed("auth.c1", &[one]);
    assert_eq!(scene.publish(&order), Publication::Published);
    scene.repository.write("a.txt", &ten_with(2, "deux")).commit("the person goes on");
    let order = revert_order(&scene, &scene.tip(), "auth.c1");
    let files = vec!["a.txt".to_owned()];
    assert_eq!(scene.landing.revert(&order).unwrap(), FoldResult::Conflict { files });
}

#[test]
fn only_the_undoing_lands_as_an_undoing() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let one = scene.edit("one", &scene.at("main"), "a.txt", "x\n");
    scene.landed("auth.c1", &[one]);
    let tip = scene.tip();
    let undo = revert_order(&scene, &tip, "auth.c1").undo;
    let two = [scene.edit("two", &scene.at("main"), "b.txt", "y\n")];
    let fold = scene.folded("two.c1", &tip, &two);
    let order = land_order("two.c1", &tip, &fold, &two);
    let order = LandOrder { work: Work::Revert(undo), ..order };
    assert!(matches!(scene.landing.land(&order), Err(LandingError::Missing(_))));
}

#[test]
fn a_changeset_that_nobody_landed_is_not_found() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.repository.write("x", "").commit("x\n\nBlueflame-Changeset: auth.c10\n");
    let found = scene.landing.find_landed(&scene.at("main"), &changeset("auth.c1"), None);
    assert_eq!(found.unwrap_err().to_string(), "no landed changeset is called `auth.c1`");
}

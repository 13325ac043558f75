use super::*;

#[test]
fn a_branch_that_is_checked_out_moves_with_its_files() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let work = scene.work(
        "one",
        &scene.at("main"),
        &[(
            "feat(one): many",
            &[("a.txt", Some("x\n")), ("b.txt", None), ("dir/ü n.txt", Some("new\n"))],
        )],
    );
    let order = scene.landed("auth.c1", &[work]);
    assert_eq!(scene.publish(&order), Publication::Published);
    assert_eq!(scene.at("HEAD"), order.commit);
    assert_eq!(scene.repository.git(["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(scene.path().join("dir/ü n.txt")).unwrap(), "new\n");
    assert!(!scene.path().join("b.txt").exists());
    assert_eq!(scene.publish(&order), Publication::Published);
    assert!(!scene.landing.intent_path().exists());
}

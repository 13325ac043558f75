//! Where tasks start that build on others.

use super::*;

struct Scene<'a> {
    repository: Repository<'a>,
    workspaces: Workspaces,
    base: Oid,
}

fn scene(env: &TestEnv) -> Scene<'_> {
    let repository = env.repository("project");
    let base = oid(&repository.write("a", "1\n2\n3\n").write("b", "b\n").commit("base"));
    let workspaces = workspaces(&repository);
    Scene { repository, workspaces, base }
}

impl Scene<'_> {
    /// The work of a task: a commit on top of another.
    fn work(&self, on: &Oid, file: &str, text: &str) -> Oid {
        self.repository.git(["checkout", "-q", "--detach", on.as_str()]);
        oid(&self.repository.write(file, text).commit(file))
    }
}

#[test]
fn the_work_of_others_is_there_and_the_commit_is_always_the_same() {
    let env = TestEnv::new();
    let scene = scene(&env);
    let one = scene.work(&scene.base, "one", "1\n");
    let two = scene.work(&scene.base, "two", "2\n");
    let after_one = scene.work(&one, "three", "3\n");
    let start = |all: &[Oid]| scene.workspaces.starting_point(&scene.base, all).unwrap();
    assert_eq!(start(&[]), StartPoint::Ready(scene.base.clone()));
    assert_eq!(start(std::slice::from_ref(&one)), StartPoint::Ready(one.clone()));
    assert_eq!(start(&[after_one.clone(), one.clone()]), StartPoint::Ready(after_one.clone()));
    let point = start(&[after_one.clone(), two.clone()]);
    assert_eq!(start(&[after_one, two]), point);
    let StartPoint::Ready(commit) = point else { panic!("{point:?}") };
    let files = scene.repository.git(["ls-tree", "-r", "--name-only", commit.as_str()]);
    assert_eq!(files, "a\nb\none\nthree\ntwo\n");
    let workspace = scene.workspaces.create(&order("t1", &commit)).unwrap().workspace;
    assert_eq!(read(&workspace, "two"), "2\n");
    // Clean-up takes nothing that a workspace stands on.
    scene.repository.git(["checkout", "-q", "main"]);
    scene.repository.git(["reflog", "expire", "--expire=now", "--all"]);
    scene.repository.git(["gc", "-q", "--prune=now"]);
    agent(&env, &workspace, "git fsck --strict; git log -p >/dev/null");
}

#[test]
fn work_that_does_not_fit_together_is_named() {
    let env = TestEnv::new();
    let scene = scene(&env);
    let one = scene.work(&scene.base, "a", "1\n2 one\n3\n");
    let two = scene.work(&scene.base, "a", "1\n2 two\n3\n");
    let three = scene.work(&scene.base, "c", "c\n");
    let point = scene.workspaces.starting_point(&scene.base, &[three, one, two.clone()]).unwrap();
    assert_eq!(point, StartPoint::Conflict { dependency: two, files: vec!["a".into()] });
}

#[test]
fn merge_programs_and_attributes_of_the_person_have_no_say() {
    let env = TestEnv::new();
    let scene = scene(&env);
    let marker = env.path("marker");
    let driver = format!("touch '{}'", marker.display());
    scene.repository.git(["config", "merge.mine.driver", &driver]);
    let base = scene.work(&scene.base, ".gitattributes", "* merge=mine\n");
    let one = scene.work(&base, "a", "1 one\n2\n3\n");
    let two = scene.work(&base, "a", "1\n2\n3 two\n");
    let point = scene.workspaces.starting_point(&base, &[one, two]).unwrap();
    let StartPoint::Ready(commit) = point else { panic!("{point:?}") };
    let content = scene.repository.git(["show", &format!("{commit}:a")]);
    assert_eq!(content, "1 one\n2\n3 two\n");
    assert!(!marker.exists());
}

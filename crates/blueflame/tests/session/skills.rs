//! A session of somebody who has skills in their home: each role is taught its own.

use std::fs;

use crate::script::{Script, task};
use crate::stage::Stage;

fn skill(stage: &Stage, name: &str, description: &str) {
    let folder = stage.env.path("home/.claude/skills").join(name);
    fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: {description}\n---\nTEXT OF {name}\n");
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// The first request of the attempt whose name begins like this.
fn request(stage: &Stage, attempt: &str) -> String {
    let attempts = fs::read_dir(stage.session().join("attempts")).unwrap();
    let mut paths = attempts.map(|it| it.unwrap().path());
    let path = paths.find(|it| it.file_name().unwrap().to_str().unwrap().starts_with(attempt));
    let traffic = fs::read_to_string(path.unwrap().join("traffic.jsonl")).unwrap();
    traffic.lines().next().unwrap().to_owned()
}

#[test]
fn each_role_is_taught_its_own_skills_and_the_journal_says_which() {
    let script = Script::new()
        .plans(&[task("task-001", "one", "src/a.txt")])
        .works("task-001", &[("src/a.txt", "x\n")])
        .passes();
    let stage = Stage::new(
        "skills: {worker: [house-style, nowhere], merger: [finishing-a-development-branch]}\n",
    )
    .script(&script)
    .decisions("plan: [approve]\nchangesets: {'*': approve}\nsession: []\n");
    let all = [
        ("test-driven-development", "FOR WORKERS"),
        ("house-style", "FOR NAMES"),
        ("writing-plans", "FOR PLANNERS"),
        ("requesting-code-review", "FOR REVIEWS"),
        ("finishing-a-development-branch", "FOR BRANCHES"),
        ("unnamed", "FOR NOBODY"),
    ];
    for (name, description) in all {
        skill(&stage, name, description);
    }
    let told = stage.run().exits(0).says("everything landed");
    let told = told
        .says("warning: the skill `nowhere` is not there. There are: `house-style`, `requesting")
        .says("is never given to agents");
    drop(told);
    for (attempt, taught) in [
        ("task-001.a1", &["test-driven-development", "house-style"][..]),
        ("plan", &["writing-plans"]),
        ("task-001.v1", &["requesting-code-review"]),
    ] {
        let request = request(&stage, attempt);
        for (name, description) in all {
            let expected = taught.contains(&name);
            assert_eq!(request.contains(description), expected, "{attempt} {name}: {request}");
        }
    }
    // What was given is on record, by its content.
    let started = stage.events("agent.started");
    let worker = started.iter().find(|it| it["agent"].as_str().unwrap().starts_with("worker"));
    let skills = worker.unwrap()["skills"].as_array().unwrap();
    let mut names: Vec<&str> = skills.iter().map(|it| it["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["house-style", "test-driven-development"]);
    assert!(skills.iter().all(|it| it["digest"].as_str().unwrap().len() == 32), "{skills:?}");
    let status = stage.blueflame(&["status"]).exits(0).stdout;
    assert!(status.contains("skills    planner: writing-plans\n"), "{status}");
    assert!(
        status.contains("skills    worker: house-style, test-driven-development\n"),
        "{status}"
    );
    let document = stage.blueflame(&["status", "--json"]).exits(0).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["skills"]["validator"][0]["name"], "requesting-code-review");
    let doctor = stage.blueflame(&["doctor"]).stdout;
    for said in [
        "house-style for worker, from ~/.claude/skills",
        "left out: finishing-a-development-branch from ~/.claude/skills: it has agents manage",
        "left out: unnamed from ~/.claude/skills: the configuration gives it to no role",
        "the skill `nowhere` is not there.",
    ] {
        assert!(doctor.contains(said), "{doctor}");
    }
    stage.assert_tidy();
}

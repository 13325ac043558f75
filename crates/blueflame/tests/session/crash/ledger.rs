//! What a session came to, in a form that can be compared with another.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::stage::{Stage, name_of, wait_until};

/// Everything that must not depend on who died when.
#[derive(Debug, PartialEq)]
pub struct Ledger {
    pub repository: Repository,
    /// Changesets.
    landed: Vec<String>,
    /// Every question that was answered, with its answer.
    answers: Vec<String>,
    /// Who did what, and how it ended.
    work: Vec<String>,
    /// Tokens, as the journal has them, and as the model gave them.
    spent: u64,
    asked_of_the_model: usize,
}

/// What the person is left with.
#[derive(Debug, PartialEq)]
pub struct Repository {
    tree: String,
    subjects: Vec<String>,
    files: BTreeMap<String, String>,
    status: String,
}

/// What the person has in the checkout besides what is committed.
pub struct Person(Vec<&'static str>);

impl Person {
    /// Something edited, something staged, something new, something ignored.
    pub fn begins(stage: &Stage) -> Person {
        stage.write("README.md", "A project, and a word of mine.\n");
        stage.write("staged.txt", "staged\n");
        stage.git(&["add", "staged.txt"]);
        stage.write("staged.txt", "staged, and then some\n");
        stage.write("new.txt", "new\n");
        stage.write("local.env", "mine alone\n");
        stage.write(".git/info/exclude", "local.env\n");
        Person(vec!["README.md", "staged.txt", "new.txt", "local.env"])
    }
}

impl Ledger {
    /// Whether the person is left with the same, having answered the same. Who did
    /// how much for it may differ.
    pub fn leads_to_the_same_as(&self, other: &Ledger) -> bool {
        self.repository == other.repository
            && self.landed == other.landed
            && self.answers == other.answers
    }

    /// Looks everything up, once nothing runs any more.
    pub fn of(stage: &Stage, person: &Person) -> Ledger {
        wait_until("no process is left", || stage.processes().is_empty());
        assert_eq!(stage.workspaces(), Vec::<String>::new(), "workspaces were left");
        assert!(!stage.session().join("checkouts").exists(), "checkouts were left");
        assert_eq!(stage.sessions().len(), 1, "there is more than the one session");
        let replay = stage.blueflame(&["replay", &stage.session_id()]).exits(0);
        assert!(replay.stderr.contains("decisions all as this version takes them"), "{replay}");
        // What lived through all of it and what the journal alone leads to are the
        // same, to the last byte.
        let views = stage.views();
        stage.blueflame(&["replay", "--rebuild"]).exits(0);
        assert_eq!(stage.views(), views, "the state is not what its journal says");
        stage.git(&["fsck", "--strict", "--no-dangling"]);
        let answered = stage.events("gate.answered").into_iter();
        let mut answers: Vec<String> =
            answered.map(|it| format!("{}: {}", name_of(&it["gate"]), it["answer"])).collect();
        answers.sort();
        let landed = stage.events("land.finished").into_iter();
        let mut landed: Vec<String> = landed.map(|it| it["changeset"].to_string()).collect();
        landed.sort();
        let (work, spent) = work(stage);
        let repository = repository(stage, person);
        let asked_of_the_model = stage.requests().values().sum();
        Ledger { repository, landed, answers, work, spent, asked_of_the_model }
    }
}

fn repository(stage: &Stage, person: &Person) -> Repository {
    let mut subjects = stage.landed();
    subjects.sort();
    let file = |name: &&str| ((*name).to_owned(), stage.read(name));
    Repository {
        tree: stage.git(&["rev-parse", "main:src"]),
        subjects,
        files: person.0.iter().map(file).collect(),
        status: stage.git(&["status", "--porcelain"]),
    }
}

fn work(stage: &Stage) -> (Vec<String>, u64) {
    let claimed = stage.events("agent.claimed");
    let mut spent = 0;
    let mut work: Vec<String> = stage
        .events("agent.exited")
        .iter()
        .map(|exit| {
            let usage = &exit["spend"]["usage"];
            spent += ["input", "output"].iter().filter_map(|key| usage[key].as_u64()).sum::<u64>();
            let claim = claimed.iter().find(|it| it["agent"] == exit["agent"]).unwrap();
            format!("{}: {}", claim["work"], outcome(&exit["outcome"]))
        })
        .collect();
    work.sort();
    (work, spent)
}

fn outcome(outcome: &Value) -> String {
    outcome["kind"].to_string()
}

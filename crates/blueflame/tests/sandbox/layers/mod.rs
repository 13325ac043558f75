//! The matrix of layers: every case of the corpus, really made, at the layer that
//! must decide it and at all others, and which of them are left when that one is
//! switched off. `docs/layers.md` is this matrix; `BLUEFLAME_WRITE_DOCS=1` writes
//! it anew.

mod page;
mod requests;
#[path = "../../../../core/tests/policy/corpus_rules.rs"]
mod rules;
mod trial;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Mutex;

use blueflame_core::proof::Layer;
use serde_json::{Value, json};

use crate::cage::attempts;
use trial::{Left, Trial};

const CASES: &str = include_str!("../../../../core/tests/policy/cases.json");

/// What a layer says to a case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    /// It stops it, by this.
    Stops(String),
    /// It was asked, and lets it pass.
    Passes,
}

impl Cell {
    fn stops(by: impl Into<String>) -> Cell {
        Cell::Stops(by.into())
    }

    fn by(rule: Option<String>) -> Cell {
        rule.map_or(Cell::Passes, Cell::Stops)
    }
}

/// One case and what every layer says to it.
#[derive(Clone, Debug)]
struct Row {
    id: String,
    /// The layer that must decide.
    own: Layer,
    expected: String,
    /// What the layers say; those that are missing have nothing to do with it.
    cells: BTreeMap<Layer, Cell>,
    /// Why nothing else stops it, if nothing does.
    alone: String,
    /// What is wrong with it; empty if the case is decided as it must be.
    wrong: String,
}

/// What is left to say where a layer is alone.
const OWN_FILES: &str = "it changes only files of the task, which are validated and reviewed";
const NO_SUCH_TOOL: &str = "no program stands behind that tool: there is nothing else to stop";
const INSIDE: &str = "what a program does once it runs is held by the sandbox alone";

#[test]
fn every_case_is_stopped_where_it_must_be_and_the_matrix_says_who_else_would() {
    if attempts().is_none() {
        return;
    }
    let corpus: Value = serde_json::from_str(CASES).unwrap();
    let cases = corpus["cases"].as_array().unwrap();
    let queue: Mutex<VecDeque<&Value>> = Mutex::new(cases.iter().collect());
    let rows: Mutex<Vec<Row>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().unwrap().pop_front() else { return };
                    let row = row(case, &corpus["meta"]);
                    rows.lock().unwrap().push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    let place = |row: &Row| cases.iter().position(|case| case["id"] == row.id.as_str());
    rows.sort_by_key(place);
    let wrong: Vec<String> = rows
        .iter()
        .filter(|row| !row.wrong.is_empty())
        .map(|row| format!("{}: {}; {:?}", row.id, row.wrong, row.cells))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    let page = page::page(&rows);
    println!("{page}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/layers.md");
    if std::env::var_os("BLUEFLAME_WRITE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "docs/layers.md is not what is true: BLUEFLAME_WRITE_DOCS=1 writes it");
}

fn row(case: &Value, meta: &Value) -> Row {
    let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
    let (id, tool, expected) = (text("id"), text("tool"), text("expected"));
    let input = &case["tool_input"];
    let mut row = Row {
        own: Layer::Policy,
        cells: BTreeMap::new(),
        alone: String::new(),
        wrong: String::new(),
        expected,
        id,
    };
    if tool == "gateway-request" {
        request(&mut row, meta);
        return row;
    }
    let trial = Trial::new(rules::rules_for(meta, &row.id));
    let word = trial.judge(&tool, input);
    let denied = word.is_some();
    row.cells.insert(Layer::Policy, Cell::by(word));
    row.own = match (text("layer").as_str(), text("run").as_str()) {
        ("hook", _) => Layer::Policy,
        (_, "sandbox") => Layer::Sandbox,
        _ => Layer::PostCheck,
    };
    if row.own == Layer::Policy && denied != (row.expected == "deny") {
        row.wrong = format!("the policy decides otherwise: {input}");
    }
    if row.own == Layer::Policy && row.expected == "allow" {
        return row;
    }
    if row.own == Layer::Policy && input.to_string().contains("git commit") {
        trial.stage();
    }
    let Some(made) = trial.make(&tool, input) else {
        NO_SUCH_TOOL.clone_into(&mut row.alone);
        return row;
    };
    if !made.harm.is_empty() {
        row.wrong = format!("the sandbox lets it happen: {:?}", made.harm);
    }
    if made.ended {
        row.cells.insert(Layer::Supervision, Cell::stops("ended at its deadline"));
    }
    if made.changed && row.own != Layer::PostCheck {
        trial.commit();
    }
    let left = if made.changed { trial.post_check() } else { Left::Nothing };
    let looked_over = match &left {
        Left::Refused(rule) => Some(Cell::stops(rule)),
        Left::Stands => Some(Cell::Passes),
        Left::Nothing if made.changed => Some(Cell::stops("not taken over")),
        Left::Nothing => None,
    };
    row.cells.extend(looked_over.map(|cell| (Layer::PostCheck, cell)));
    let pwned = made.stdout.contains("PWNED");
    let held = match row.own {
        Layer::Sandbox => match row.expected.as_str() {
            "allow" if made.stdout.contains(&text("must")) => Cell::Passes,
            "deny" if !pwned => Cell::stops("fails inside"),
            "contain" => Cell::stops("contained"),
            _ => {
                row.wrong = format!("decided otherwise inside: {}", made.stdout);
                Cell::Passes
            }
        },
        // What changes the workspace is not the sandbox's to judge.
        _ if made.changed || row.own == Layer::PostCheck => Cell::Passes,
        _ => Cell::stops("contained"),
    };
    row.cells.insert(Layer::Sandbox, held);
    let stands = matches!(left, Left::Stands);
    if row.own == Layer::PostCheck && stands && row.expected == "deny" {
        row.wrong = "the post-check lets it pass".into();
    }
    if row.own == Layer::PostCheck && !stands && row.expected == "allow" {
        row.wrong = format!("the post-check does not let it pass: {left:?}");
    }
    row.alone = if row.own == Layer::Sandbox { INSIDE.to_owned() } else { OWN_FILES.to_owned() };
    row
}

/// A case of the gateway: what it answers, and what happens to a program that
/// goes the same way without it.
fn request(row: &mut Row, meta: &Value) {
    row.own = Layer::Gateway;
    let refusal = requests::refusal(&row.id);
    let request = requests::of_case(&row.id, "token");
    if refusal.is_some() != (row.expected == "deny") {
        row.wrong = format!("the gateway answers otherwise: {refusal:?}");
    }
    row.cells.insert(Layer::Gateway, Cell::by(refusal));
    request.alone.clone_into(&mut row.alone);
    let Some((host, port)) = request.elsewhere else { return };
    let trial = Trial::new(rules::rules_for(meta, &row.id));
    let command = json!({"command": format!("curl http://{host}:{port}/")});
    row.cells.insert(Layer::Policy, Cell::by(trial.judge("Bash", &command)));
    let made = trial.run(&format!("exec 3<>/dev/tcp/{host}/{port} && echo PWNED"));
    let held = if made.stdout.contains("PWNED") {
        row.wrong = "a program gets there without the gateway".into();
        Cell::Passes
    } else {
        Cell::stops("no connection")
    };
    row.cells.insert(Layer::Sandbox, held);
}

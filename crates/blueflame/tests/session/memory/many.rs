//! A thousand sessions: what is told stays within its bound, and is looked up in
//! no time to speak of.

use std::fs;
use std::time::Instant;

use blueflame::memory::{Keeper, Recall, Terms};
use blueflame::store::Store;
use blueflame_core::config;
use blueflame_testkit::notes::{left_by, session};
use serde_json::Value;

use crate::install;
use crate::stage::Stage;

const SESSIONS: u32 = 1_000;

#[test]
fn a_thousand_sessions_are_within_the_bound() {
    let stage = Stage::new("");
    let config = config::read(stage.read("blueflame.yaml").as_bytes()).config.unwrap();
    let memory = config.memory.as_ref().unwrap();
    let store = Store::find(&stage.repository()).unwrap();
    let keeper = Keeper::of(&store);
    keeper.import(&Terms::of(memory), (0..SESSIONS).flat_map(left_by).collect()).unwrap();

    let begun = Instant::now();
    let recall = Recall::of(&store, Some(memory), None);
    let context = recall.for_planner("Do it.").unwrap();
    let took = begun.elapsed();
    let bytes = fs::metadata(keeper.file()).unwrap().len();
    let found = keeper.look().unwrap().len();
    install::say(&format!(
        "{SESSIONS} sessions, {found} notes, {bytes} bytes: looked up and chosen in {took:?}\n"
    ));
    assert!(context.text.len() <= 4 * memory.context_tokens, "{}", context.text.len());
    assert!(context.text.len() > 3 * memory.context_tokens, "{}", context.text.len());
    assert!(context.text.contains(" unresolved failures, "), "some are left out");
    assert!(!context.text.contains("What came off"), "before what came off");
    assert!(context.text.contains(session(SESSIONS - 1).as_str()), "the newest are there");

    // The program itself, with what it makes of it.
    let told = stage.blueflame(&["memory", "show", "--json"]).exits(0);
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(document["text"], context.text);
    assert!(document["tokens"].as_u64().unwrap() <= 8_000);

    // And what it forecasts by it.
    let plan = crate::script::plan(&[crate::script::task("task-001", "one", "src/a.txt")]);
    let stage = stage.plan(&plan);
    fs::write(stage.env.path("script.yaml"), "replies: [{say: hi}]\n").unwrap();
    let arguments = ["run", "--dry-run", "--task", "Do it.", "--plan", "../plan.yaml"];
    let page = stage.blueflame(&arguments).exits(0).stdout;
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "a worker: 1m 49s (learned from earlier sessions), $0.30 (learned from earlier sessions)",
        "a worker by embedded: learned from 100 runs of earlier sessions; such a forecast was off \
         by ",
        "% in time and 0 % in cost so far",
    ] {
        assert!(page.contains(told), "`{told}` is not in {page}");
    }
}

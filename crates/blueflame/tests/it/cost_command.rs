//! `blueflame cost`: the books add up.

use blueflame_testkit::TestEnv;
use serde_json::Value;

use crate::status_command::repository;

const PROGRAM: &str = env!("CARGO_BIN_EXE_blueflame");

#[test]
fn a_session_is_accounted_for() {
    for (name, seed, records) in [("ended", 5926, 999), ("at_work", 5926, 60), ("new", 391, 2)] {
        let env = TestEnv::new();
        let (repository, _) = repository(&env, seed, records);
        insta::assert_snapshot!(format!("cost_{name}"), repository.run(PROGRAM, ["cost"]));
    }
}

/// At every moment of every sample, each table adds up to the total in every
/// kind of token and in dollars, and the parts of the budget make it whole.
#[test]
fn every_table_adds_up_to_the_same_total() {
    let keys = [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "total_tokens",
        "cost_micro_usd",
    ];
    let number = |value: &Value| value.as_u64().unwrap();
    for (seed, records) in
        [(391, 10), (391, 999), (5667, 12), (5667, 999), (5926, 60), (5926, 110), (5926, 999)]
    {
        let env = TestEnv::new();
        let (repository, _) = repository(&env, seed, records);
        let document = repository.run(PROGRAM, ["cost", "--json"]).success();
        let books: Value = serde_json::from_str(&document).unwrap();
        let runs = books["runs"].as_array().unwrap();
        assert!(!runs.is_empty());
        for table in ["by_role", "by_task", "by_executor", "runs"] {
            let rows = books[table].as_array().unwrap();
            for key in keys {
                let sum: u64 = rows.iter().map(|row| number(&row[key])).sum();
                assert_eq!(sum, number(&books["total"][key]), "{seed}/{records} {table} {key}");
            }
            if table != "runs" {
                let count: u64 = rows.iter().map(|row| number(&row["runs"])).sum();
                assert_eq!(count, runs.len() as u64, "{table}");
            }
        }
        let total: u64 = keys[..4].iter().map(|key| number(&books["total"][*key])).sum();
        assert_eq!(total, number(&books["total"]["total_tokens"]));
        let (unit, spent) = match books["budget"].get("usd") {
            Some(_) => ("usd", number(&books["total"]["cost_micro_usd"])),
            None => ("tokens", total),
        };
        let part = |key: &str| books[key].get(unit).map_or(0, number);
        let gone = spent + part("held") + part("written_off");
        // More than the budget is gone only by a last request that cost more than was left.
        assert_eq!(part("left"), part("budget").saturating_sub(gone), "{seed}/{records}: {books}");
    }
}

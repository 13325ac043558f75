//! Real shells as the oracle: whatever the policy allows, no shell may take it
//! for something that the policy forbids. `cargo run --release -p blueflame
//! --example bash_oracle` does the same for as long as one likes.

use std::fs;

use blueflame_testkit::TestEnv;
use blueflame_testkit::oracle::shells::{Shell, Stage};
use blueflame_testkit::oracle::{Tally, try_seed};

#[path = "../../examples/bash_oracle/judge.rs"]
mod judge;

use judge::RealJudge;

fn stage(env: &TestEnv) -> Stage {
    fs::create_dir_all(env.path("stage")).unwrap();
    Stage::in_directory(&env.path("stage")).unwrap()
}

#[test]
fn shells_run_nothing_that_the_policy_forbids() {
    let env = TestEnv::new();
    let stage = stage(&env);
    let judge = RealJudge::new(stage.workspace());
    let mut tally = Tally::default();
    for seed in 0..6_000 {
        try_seed(seed, &judge, &stage, &mut tally);
    }
    let told: Vec<String> = tally.unsound.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(tally.executed >= 300 && tally.commands >= 300, "too little was tried: {tally}");
}

/// The oracle would notice: what is forbidden is seen when it is run.
#[test]
fn what_is_forbidden_is_seen_in_every_shell() {
    use blueflame_testkit::oracle::wrong;

    let env = TestEnv::new();
    let stage = stage(&env);
    let judge = RealJudge::new(stage.workspace());
    for line in [
        "evil",
        "ls; evil x",
        "echo $(evil)",
        "echo `evil`",
        "eval evil",
        "if true; then evil; fi",
        "echo x > ../out",
        ". src/a",
        "cat <<E\n`evil`\nE\n",
        "trap evil EXIT",
    ] {
        for shell in Shell::ALL {
            assert!(wrong(&stage.run(shell, line), &judge).is_some(), "{shell}: {line}");
        }
    }
    for line in ["ls src", "git status; cat src/a | head", "echo evil", "cd src && ls"] {
        for shell in Shell::ALL {
            assert_eq!(wrong(&stage.run(shell, line), &judge), None, "{shell}: {line}");
        }
    }
}

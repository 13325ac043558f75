//! Who is started, in which order, and on whose files.

use blueflame_core::event::{Event, StartFault};
use blueflame_core::ids::{AgentId, Role};
use blueflame_core::outcome::{Outcome, Tally};
use blueflame_core::rules::{PerRole, Rules};

use crate::story::{NOTHING, Story};
use crate::words::{Details, executor, pipelined, rules, task};

#[test]
fn lower_numbers_go_first_and_then_the_order_of_the_plan() {
    let tasks = [
        task("late").priority(3),
        task("second").priority(2),
        task("first").priority(1),
        task("also-second").priority(2),
    ];
    let mut story = Story::begin(rules(), tasks);
    assert_eq!(
        story.approves_the_plan(),
        [
            "cycle 1",
            "develop first#1",
            "develop second#1",
            "develop also-second#1",
            "develop late#1"
        ]
    );
}

#[test]
fn no_more_workers_at_once_than_there_are_places() {
    let tasks = [task("a"), task("b"), task("c"), task("d")];
    let mut story = Story::begin(Rules { workers: 2, ..rules() }, tasks);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1", "develop b#1"]);
    assert_eq!(story.builds("b"), ["inspect b", "develop c#1"]);
    assert_eq!(story.passes_inspection("b"), NOTHING);
    assert_eq!(story.fails("a", Outcome::NoOp), ["develop a#2"], "its turn comes before d");
}

#[test]
fn no_more_validators_at_once_than_there_are_places() {
    let tasks = [task("a"), task("b"), task("c")];
    let mut story = Story::developing(Rules { validators: 1, ..rules() }, tasks);
    story.finishes("a");
    story.finishes("b");
    assert_eq!(story.finishes("c"), ["inspect c", "validation", "accept a"]);
    // Commands are cheap and may spare a validator: they go first.
    assert_eq!(story.is_accepted("a"), ["accept b"]);
    assert_eq!(story.is_accepted("b"), ["accept c"]);
    assert_eq!(story.is_accepted("c"), ["validate a#1"]);
    assert_eq!(story.is_judged("a", true, ""), ["validate b#1"]);
    assert_eq!(story.state.crew.live_in(Role::Validator), 1);
}

#[test]
fn validators_take_the_seats_that_acceptance_leaves() {
    let tasks = [task("a"), task("b"), task("c")];
    let mut story = Story::developing(Rules { validators: 2, ..rules() }, tasks);
    story.finishes("a");
    story.finishes("b");
    assert_eq!(story.finishes("c"), ["inspect c", "validation", "accept a", "accept b"]);
    assert_eq!(story.is_accepted("b"), ["accept c"]);
    assert_eq!(story.is_accepted("a"), ["validate a#1"], "c is in acceptance");
    assert_eq!(story.is_accepted("c"), ["validate b#1"]);
    assert_eq!(story.is_judged("b", true, ""), ["validate c#1"]);
}

#[test]
fn row_23_tasks_with_the_same_files_run_one_after_the_other_in_one_wave() {
    let tasks = [
        task("a").locks(&["src/lib.rs"]),
        task("b").locks(&["src/lib.rs", "src/b.rs"]),
        task("c").locks(&["src/b.rs"]),
    ];
    let mut story = Story::begin(rules(), tasks);
    // b conflicts with a and is passed over; c conflicts only with b.
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1", "develop c#1"]);
    assert_eq!(story.finishes("a"), ["inspect a"], "c holds a file of b's");
    assert_eq!(story.finishes("c"), ["inspect c", "develop b#1"]);
    assert_eq!(
        story.finishes("b"),
        ["inspect b", "validation", "accept a", "accept b", "accept c"]
    );
    assert_eq!(story.state.cycle, 1);
}

#[test]
fn row_23_files_given_out_in_the_same_decision_count_as_taken() {
    let tasks = [task("a").locks(&["x"]), task("b").locks(&["y"]), task("c").locks(&["y"])];
    let mut story = Story::begin(rules(), tasks);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1", "develop b#1"]);
    assert_eq!(story.builds("b"), ["inspect b", "develop c#1"]);
}

#[test]
fn files_are_free_when_the_worker_ends_and_not_before() {
    let tasks = [task("a").locks(&["x"]), task("b").locks(&["x"]).priority(2)];
    let mut story = Story::developing(rules(), tasks);
    assert_eq!(story.fails("a", Outcome::TimedOut), ["develop a#2"]);
    let claim = Event::AgentClaimed {
        agent: blueflame_core::ids::AgentId::from_number(Role::Worker, 99),
        work: blueflame_core::event::Work::Develop { task: crate::words::task_id("b"), attempt: 1 },
        executor: executor("claude"),
        cap: blueflame_core::money::Budget::Unlimited,
        grant: blueflame_core::money::Budget::Unlimited,
        passed_over: Vec::new(),
    };
    assert_eq!(story.refuses(&claim), "its files are taken by another task");
    assert_eq!(story.builds("a"), ["inspect a", "develop b#1"]);
}

#[test]
fn a_directory_covers_everything_below_it() {
    let tasks = [
        task("dir").locks(&["src/auth"]),
        task("below").locks(&["src/auth/jwt.rs"]),
        task("beside").locks(&["src/authors.rs"]),
        task("above").locks(&["src"]),
    ];
    let mut story = Story::begin(rules(), tasks);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop dir#1", "develop beside#1"]);
    assert_eq!(story.builds("dir"), ["inspect dir", "develop below#1"]);
    assert_eq!(story.builds("below"), ["inspect below"]);
    assert_eq!(story.builds("beside"), ["inspect beside", "develop above#1"]);
}

#[test]
fn priority_files_dependencies_and_places_together() {
    let tasks = [
        task("a").priority(2).locks(&["x"]),
        task("b").priority(1).locks(&["x"]),
        task("c").priority(1).needs(&["a"]),
        task("d").priority(3),
        task("e").priority(4),
    ];
    let mut story = Story::begin(Rules { workers: 2, ..rules() }, tasks);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop b#1", "develop d#1"]);
    assert_eq!(story.finishes("b"), ["inspect b", "develop a#1"]);
    assert_eq!(story.builds("a"), ["inspect a", "develop e#1"]);
    // c becomes ready when a is done, and has to wait for a place.
    assert_eq!(story.passes_inspection("a"), NOTHING);
    assert_eq!(story.builds("d"), ["inspect d", "develop c#1"]);
}

#[test]
fn pipelined_tasks_are_validated_as_soon_as_they_are_done() {
    let mut story = Story::developing(pipelined(), [task("a"), task("b")]);
    assert_eq!(story.builds("a"), ["inspect a"]);
    assert_eq!(story.passes_inspection("a"), ["accept a"]);
    assert_eq!(story.is_accepted("a"), ["validate a#1"]);
    assert_eq!(story.is_judged("a", true, ""), NOTHING, "b is still at work");
    story.finishes("b");
    assert_eq!(story.passes("b"), ["validate b#1", "merge g.c1[a b]", "fold g.c1[a b]"]);
}

#[test]
fn strict_waves_do_not_overlap() {
    let mut story = Story::developing(rules(), [task("a"), task("b")]);
    assert_eq!(story.finishes("a"), ["inspect a"]);
    let refused = story.refuses(&Event::ValidationStarted);
    assert_eq!(refused, "development is still under way");
    assert_eq!(story.finishes("b"), ["inspect b", "validation", "accept a", "accept b"]);
}

#[test]
fn a_task_names_its_executor_and_the_next_one_steps_in_after_a_crash() {
    let chain = vec![executor("claude"), executor("codex")];
    let executors = PerRole { worker: chain, ..rules().executors };
    let crash = || Outcome::Crashed { detail: "exit 1".into() };
    let tasks = [task("own").by("opencode"), task("plain"), task("last").by("codex")];
    let rules = Rules { executors, max_retries: 4, ..rules() };
    let mut story = Story::begin(rules, tasks);
    assert_eq!(
        story.approves_the_plan(),
        ["cycle 1", "develop own#1 with opencode", "develop plain#1", "develop last#1 with codex"]
    );
    assert_eq!(story.fails("own", crash()), ["develop own#2"]);
    assert_eq!(story.fails("own", crash()), ["develop own#3 with codex"]);
    assert_eq!(story.fails("own", crash()), ["develop own#4 with codex"], "nobody is left to try");
    assert_eq!(story.fails("plain", Outcome::TimedOut), ["develop plain#2"], "not its fault");
    assert_eq!(story.fails("plain", crash()), ["develop plain#3 with codex"]);
    assert_eq!(story.fails("last", crash()), ["develop last#2"], "the chain without codex");
}

fn start_failed(agent: AgentId, fault: StartFault, reason: &str) -> Event {
    Event::AgentStartFailed { agent, reason: reason.into(), fault }
}

#[test]
fn a_place_that_is_not_fit_costs_a_retry_and_no_executor() {
    let executors =
        PerRole { worker: vec![executor("claude"), executor("codex")], ..rules().executors };
    let mut story = Story::developing(Rules { executors, max_retries: 1, ..rules() }, [task("a")]);
    for expected in ["develop a#2", "end Incomplete"] {
        let failed = start_failed(story.agent("a"), StartFault::Place, "no room");
        assert_eq!(story.fact(failed), [expected]);
    }
}

#[test]
fn a_validator_without_a_fit_place_costs_a_retry_and_no_executor() {
    let chain = vec![executor("claude"), executor("codex")];
    let executors = PerRole { validator: chain, ..rules().executors };
    let mut story = Story::developing(Rules { executors, ..rules() }, [task("a")]);
    story.finishes("a");
    assert_eq!(story.is_accepted("a"), ["validate a#1"]);
    let validator = story.state.crew.live().keys().next().unwrap().clone();
    let failed = start_failed(validator, StartFault::Place, "no room");
    assert_eq!(story.fact(failed), ["validate a#1"], "by the same executor");
}

#[test]
fn what_is_stopped_while_it_starts_costs_nothing() {
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
    let agent = story.agent("a");
    story.fact(Event::StopRequested);
    let said = story.fact(start_failed(agent, StartFault::Stopped, "stopped"));
    assert_eq!(said, ["suspend"]);
    assert_eq!(story.task("a").tally, Tally::default());
    assert_eq!(
        story.fact(Event::SessionResumed { repaired_bytes: None, verify: None }),
        ["develop a#2"]
    );
}

#[test]
fn what_nobody_could_start_costs_nothing_however_often_it_is_tried() {
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
    for attempt in 2..12 {
        let agent = story.agent("a");
        // Both are told at once: nobody was told to stop in between.
        story.record(Event::SessionObstructed { reason: "no room".into() });
        let said = story.fact(start_failed(agent, StartFault::Stopped, "no room"));
        assert_eq!(said, ["suspend"]);
        assert_eq!(story.resumes(), [format!("develop a#{attempt}")]);
    }
    assert_eq!(story.task("a").tally, Tally::default());
}

#[test]
fn an_executor_that_cannot_be_started_gives_way_and_costs_nothing_while_there_is_another() {
    let executors =
        PerRole { worker: vec![executor("claude"), executor("codex")], ..rules().executors };
    let mut story = Story::developing(Rules { executors, max_retries: 0, ..rules() }, [task("a")]);
    let agent = story.agent("a");
    let failed = start_failed(agent, StartFault::Program, "no such program");
    assert_eq!(story.fact(failed), ["develop a#2 with codex"]);
    assert_eq!(story.history("a"), ["#1 Failed: could not be started: no such program"]);
    story.starts("a");
    let agent = story.agent("a");
    let running = start_failed(agent.clone(), StartFault::Program, "");
    assert_eq!(story.refuses(&running), format!("`{agent}` is running"));
    assert_eq!(story.task("a").tally.retries, 0);
    assert_eq!(story.fails("a", Outcome::TimedOut), ["end Incomplete"]);
}

#[test]
fn when_no_executor_can_be_started_the_task_fails() {
    let executors =
        PerRole { worker: vec![executor("claude"), executor("codex")], ..rules().executors };
    let mut story = Story::developing(Rules { executors, max_retries: 0, ..rules() }, [task("a")]);
    for expected in ["develop a#2 with codex", "end Incomplete"] {
        let agent = story.agent("a");
        let failed = start_failed(agent, StartFault::Program, "no such program");
        assert_eq!(story.fact(failed), [expected]);
    }
}

#[test]
fn validation_goes_group_by_group_in_landing_order_and_by_priority_within() {
    let tasks = [
        task("ui").group("ui").needs(&["api-late"]).priority(1),
        task("api-late").group("api").priority(9),
        task("api-soon").group("api").priority(3),
        task("docs").group("docs").priority(1),
    ];
    let mut story = Story::developing(Rules { validators: 1, ..rules() }, tasks);
    for name in ["api-late", "api-soon", "docs"] {
        story.finishes(name);
    }
    let order = ["api-soon", "api-late", "ui", "docs"];
    let mut said = story.finishes("ui");
    for name in order {
        said.extend(story.is_accepted(name));
    }
    for name in order {
        said.extend(story.is_judged(name, true, ""));
    }
    let steps = |step: &str| -> Vec<&str> {
        said.iter().filter_map(|said| said.strip_prefix(step)).collect()
    };
    assert_eq!(steps("accept "), order);
    assert_eq!(steps("validate "), order.map(|name| format!("{name}#1")));
}

//! Plans on paper: what they take with any number of workers.

use blueflame_core::event::Work;
use blueflame_core::forecast::simulation::{self, Doing};
use blueflame_core::forecast::{Estimate, Estimates, Forecast, Parallel};
use blueflame_core::money::Usd;
use blueflame_core::plan::{Plan, TaskSpec};
use blueflame_core::rules::{PerRole, Rules};
use proptest::prelude::*;

use crate::words::{Details, lock, pipelined, rules, task, usd};

fn plan(tasks: impl Into<Vec<TaskSpec>>) -> Plan {
    Plan { tasks: tasks.into() }
}

fn minutes(mut task: TaskSpec, minutes: u32) -> TaskSpec {
    task.estimate_minutes = Some(minutes);
    task
}

/// Validators and checks take no time, so that development is all there is.
fn workers_only() -> Rules {
    let nothing = Estimate { seconds: 0, cost: Usd::ZERO };
    let estimates = Estimates { validator: nothing, check_seconds: 0, ..Estimates::default() };
    Rules { estimates, ..rules() }
}

#[test]
fn a_chain_gains_nothing_from_more_workers() {
    let chain = [task("a"), task("b").needs(&["a"]), task("c").needs(&["b"])];
    let forecast = Forecast::of(&workers_only(), &plan(chain)).unwrap();
    assert_eq!(forecast.parallel(), Parallel::NotWorthIt);
    assert!(forecast.by_workers.iter().all(|line| line.seconds == 3 * 240), "{forecast:?}");
    assert_eq!(forecast.critical_seconds, forecast.work_seconds);
    assert_eq!(forecast.critical_path.len(), 3);
}

#[test]
fn independent_tasks_pay_up_to_their_number() {
    let tasks = [task("a"), task("b"), task("c")];
    let forecast = Forecast::of(&workers_only(), &plan(tasks)).unwrap();
    let seconds: Vec<u64> = forecast.by_workers.iter().map(|line| line.seconds).collect();
    assert_eq!(seconds, [720, 480, 240, 240], "as many lines as the session has workers");
    assert_eq!(forecast.parallel(), Parallel::UpTo(3));
    assert_eq!(forecast.configured().unwrap().seconds, 240);
}

#[test]
fn tasks_with_the_same_files_gain_nothing_either() {
    let tasks = [task("a").locks(&["x"]), task("b").locks(&["x"])];
    let forecast = Forecast::of(&workers_only(), &plan(tasks)).unwrap();
    assert_eq!(forecast.parallel(), Parallel::NotWorthIt);
}

#[test]
fn a_long_task_beside_short_ones_is_the_critical_path() {
    let tasks = [minutes(task("long"), 30), task("a"), task("b").needs(&["a"])];
    let forecast = Forecast::of(&workers_only(), &plan(tasks)).unwrap();
    assert_eq!(forecast.critical_path, [crate::words::task_id("long")]);
    assert_eq!((forecast.critical_seconds, forecast.work_seconds), (1_800, 2_280));
    assert_eq!(forecast.parallel(), Parallel::UpTo(2));
}

#[test]
fn validation_and_checks_take_their_time() {
    let mut one = task("a");
    let estimates = Estimates { verifies: true, ..Estimates::default() };
    let strict = Rules { estimates, ..rules() };
    // A worker, a validator, and the check of the merged tree.
    let forecast = Forecast::of(&strict, &plan([one.clone()])).unwrap();
    assert_eq!(forecast.configured().unwrap().seconds, 240 + 60 + 60);
    one.acceptance = vec!["cargo test".into()];
    let forecast = Forecast::of(&strict, &plan([one])).unwrap();
    assert_eq!(forecast.configured().unwrap().seconds, 240 + 60 + 60 + 60);
    let accepted = |span: &simulation::Span| matches!(span.what, Doing::Acceptance(_));
    assert!(forecast.schedule.spans.iter().any(accepted));
}

#[test]
fn pipelined_waves_validate_while_others_work() {
    let tasks = || plan([task("a"), minutes(task("b"), 10)]);
    let strict = Forecast::of(&rules(), &tasks()).unwrap();
    let overlapping = Forecast::of(&pipelined(), &tasks()).unwrap();
    assert_eq!(strict.configured().unwrap().seconds, 600 + 60);
    assert_eq!(overlapping.configured().unwrap().seconds, 600 + 60);
    let validators = |forecast: &Forecast| {
        let spans = forecast.schedule.spans.iter();
        spans
            .filter(|span| matches!(span.what, Doing::Agent(Work::Validate { .. })))
            .map(|span| span.start)
            .collect::<Vec<_>>()
    };
    assert_eq!(validators(&strict), [600, 600]);
    assert_eq!(validators(&overlapping), [240, 600]);
}

#[test]
fn cost_is_a_range_within_the_budgets_of_the_agents() {
    let tasks = || plan([task("a"), minutes(task("b"), 8)]);
    let forecast = Forecast::of(&rules(), &tasks()).unwrap();
    // 0.45 and twice that, and 0.02 for each validator; two retries each.
    assert_eq!(forecast.cost.once, Usd::from_micros(1_390_000));
    assert_eq!(forecast.cost.with_retries, Usd::from_micros(3 * 1_390_000));
    let agent_budgets = PerRole { worker: usd(100_000), ..PerRole::default() };
    let forecast = Forecast::of(&Rules { agent_budgets, ..rules() }, &tasks()).unwrap();
    assert_eq!(forecast.cost.once, Usd::from_micros(240_000));
}

#[test]
fn an_empty_plan_takes_no_time() {
    let forecast = Forecast::of(&rules(), &Plan::default()).unwrap();
    assert!(forecast.by_workers.iter().all(|line| line.seconds == 0));
    assert_eq!(forecast.parallel(), Parallel::NotWorthIt);
}

/// Up to twelve tasks that build on earlier ones; some share files.
fn plans(share: bool) -> impl Strategy<Value = Plan> {
    let one = (1..60u32, 1..4u32, proptest::collection::vec(any::<prop::sample::Index>(), 0..3));
    proptest::collection::vec((one, 0..4u32), 1..12).prop_map(move |drawn| {
        let name = |number: usize| format!("t{number}");
        let tasks =
            drawn.into_iter().enumerate().map(|(number, ((long, priority, needs), file))| {
                let needs =
                    needs.iter().filter(|_| number > 0).map(|need| name(need.index(number)));
                let needs: std::collections::BTreeSet<String> = needs.collect();
                let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
                let mut spec = minutes(task(&name(number)), long).needs(&needs);
                spec.priority = priority;
                if share {
                    spec.file_locks = vec![lock(&format!("shared{file}"))];
                }
                spec
            });
        Plan { tasks: tasks.collect() }
    })
}

/// The bounds hold, and without shared files the schedule is no worse than
/// any that never leaves a worker idle.
#[test]
fn development_keeps_within_its_bounds() {
    proptest!(|(plan in plans(false))| {
    let forecast = Forecast::of(&workers_only(), &plan).unwrap();
    let (work, chain) = (forecast.work_seconds, forecast.critical_seconds);
    for line in &forecast.by_workers {
        let workers = u64::from(line.workers);
        prop_assert!(line.development_seconds >= line.bound_seconds);
        prop_assert!(line.development_seconds * workers <= work + (workers - 1) * chain);
        prop_assert_eq!(line.seconds, line.development_seconds);
    }
    prop_assert_eq!(forecast.by_workers[0].development_seconds, work);
    prop_assert_eq!(Forecast::of(&workers_only(), &plan).unwrap(), forecast);
    });
}

/// Whatever the plan, every task is worked on once, never two at a time on
/// the same files, never before what it needs.
#[test]
fn what_is_shown_could_be_done() {
    proptest!(|(plan in plans(true), waits in any::<bool>())| {
    let rules = if waits { rules() } else { pipelined() };
    let forecast = Forecast::of(&rules, &plan).unwrap();
    let span = |id: &blueflame_core::ids::TaskId| {
        let mut found = forecast.schedule.spans.iter().filter(|span| {
            matches!(&span.what, Doing::Agent(Work::Develop { task, .. }) if task == id)
        });
        let span = found.next().expect("it is worked on").clone();
        assert!(found.next().is_none(), "twice");
        span
    };
    for one in &plan.tasks {
        let mine = span(&one.id);
        for need in &one.dependencies {
            prop_assert!(span(need).end <= mine.start);
        }
        for other in plan.tasks.iter().filter(|other| other.id != one.id) {
            let theirs = span(&other.id);
            let apart = theirs.end <= mine.start || mine.end <= theirs.start;
            prop_assert!(apart || one.file_locks != other.file_locks);
        }
    }
    });
}

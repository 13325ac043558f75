//! What holds a session back from outside: memory, providers, cycles, a
//! configuration that changes.

use blueflame_core::event::{Event, PassedOver, Shortcoming, Work};
use blueflame_core::ids::{AccountName, AgentId, Role};
use blueflame_core::outcome::Outcome;
use blueflame_core::plan::TaskSpec;
use blueflame_core::rules::Rules;

use crate::story::{NOTHING, Story};
use crate::words::{Details, executor, pipelined, rules, second, task, usd};

fn free(mb: u64) -> Event {
    Event::MemorySampled { free_mb: mb }
}

fn frugal() -> Rules {
    Rules { memory_per_agent_mb: Some(600), ..rules() }
}

#[test]
fn row_36_little_memory_means_fewer_agents_and_more_memory_more() {
    let tasks = [task("a"), task("b"), task("c"), task("d")];
    let mut story = Story::begin(frugal(), tasks);
    assert_eq!(story.fact(free(1_799)), NOTHING);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1", "develop b#1"]);
    assert_eq!(story.builds("a"), ["inspect a", "develop c#1"], "two at a time");
    // What is free now comes on top of the two that run.
    assert_eq!(story.fact(free(599)), NOTHING);
    assert_eq!(story.fact(free(600)), ["develop d#1"]);
}

#[test]
fn row_36_a_full_memory_starts_nobody_beside_those_who_run() {
    let tasks = [task("a"), task("b"), task("c")];
    let mut story = Story::begin(Rules { workers: 2, ..frugal() }, tasks);
    story.fact(free(6_000));
    story.approves_the_plan();
    story.builds("a");
    assert_eq!(story.state.crew.live().len(), 2);
    story.fact(free(0));
    assert_eq!(story.fails("b", Outcome::NoOp), ["develop b#2"], "a seat became free");
    story.fact(free(0));
    assert_eq!(story.builds("c"), ["inspect c"]);
}

#[test]
fn row_36_never_less_than_one_agent() {
    let mut story = Story::begin(frugal(), [task("a"), task("b")]);
    story.fact(free(0));
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1"]);
    assert_eq!(story.fact(free(0)), NOTHING);
    assert_eq!(story.builds("a"), ["inspect a", "develop b#1"]);
}

#[test]
fn row_36_all_roles_sit_in_the_same_memory() {
    let rules = Rules { waves: pipelined().waves, ..frugal() };
    let mut story = Story::begin(rules, [task("a"), task("b")]);
    story.fact(free(1_200));
    story.approves_the_plan();
    story.builds("a");
    story.fact(free(0));
    story.passes_inspection("a");
    assert_eq!(story.is_accepted("a"), NOTHING, "b has the only seat");
    assert_eq!(story.builds("b"), ["inspect b", "validate a#1"]);
}

#[test]
fn row_36_without_a_sample_only_one_agent_is_sure_to_fit() {
    let mut story = Story::begin(frugal(), [task("a"), task("b"), task("c")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1"]);
    assert_eq!(story.fact(free(600)), ["develop b#1"]);
    assert_eq!(story.resumes(), NOTHING, "an old sample counts no more");
    assert_eq!(story.fact(free(600)), ["develop c#1"]);
}

#[test]
fn row_36_without_a_figure_for_agents_memory_does_not_matter() {
    let mut story = Story::begin(rules(), [task("a"), task("b")]);
    story.fact(free(0));
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1", "develop b#1"]);
}

#[test]
fn row_28_after_the_last_cycle_the_session_ends_with_work_left() {
    let mut story = Story::developing(Rules { max_wave_cycles: 2, ..rules() }, [task("a")]);
    for expected in ["ask session", "end CycleLimit"] {
        story.finishes("a");
        story.passes("a");
        story.folds();
        story.verifies();
        assert_eq!(story.rejects("no"), [expected]);
        if expected == "ask session" {
            assert_eq!(story.continues(&[]), ["cycle 2", "develop a#2"]);
        }
    }
    assert_eq!(story.phase("a"), "requeued");
}

#[test]
fn row_28_what_lands_in_the_last_cycle_completes_the_session() {
    let mut story = Story::developing(Rules { max_wave_cycles: 1, ..rules() }, [task("a")]);
    story.finishes("a");
    story.passes("a");
    assert_eq!(story.merges().last().unwrap(), "end Complete");
}

#[test]
fn row_28_a_cycle_beyond_the_limit_is_refused() {
    let mut story = Story::begin(Rules { max_wave_cycles: 0, ..rules() }, [task("a")]);
    let gate = story.gate();
    let answer = blueflame_core::gate::PlanAnswer::Approve;
    let answer = blueflame_core::gate::Answer::Plan(answer);
    story.state.apply(second(9), &Event::GateAnswered { gate, answer }).unwrap();
    let cycle = Event::CycleStarted { cycle: 1, config: "original".into() };
    assert_eq!(story.refuses(&cycle), "only 0 cycles are allowed");
}

#[test]
fn row_46_a_changed_configuration_is_noticed_at_the_next_cycle() {
    let mut story = Story::developing(rules(), [task("a")]);
    let reject = |story: &mut Story| {
        story.finishes("a");
        story.passes("a");
        story.folds();
        story.verifies();
        story.rejects("no");
    };
    assert!(!story.state.config_drifted);
    reject(&mut story);
    story.config = "edited".into();
    story.continues(&[]);
    assert!(story.state.config_drifted);
    assert_eq!(story.state.config, "original", "the session goes on by its own rules");
    reject(&mut story);
    story.config = "original".into();
    story.continues(&[]);
    assert!(!story.state.config_drifted, "changed back");
}

#[test]
fn a_rate_limit_pauses_everyone_until_it_is_over() {
    let tasks = [task("a"), task("b"), task("c").needs(&["b"])];
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, tasks);
    let limited = Outcome::RateLimited { until: second(500) };
    assert_eq!(story.fails("a", limited), ["wait until 500"]);
    assert_eq!(story.task("a").tally.retries, 0);
    assert_eq!(story.finishes("b"), ["inspect b", "wait until 500", "wait until 500"]);
    // The longest pause holds, whatever comes in between.
    assert_eq!(story.fact(limit(600)), ["wait until 600"]);
    assert_eq!(story.fact(limit(400)), ["wait until 600"]);
    let early = story.refuses(&Event::PauseEnded);
    assert!(early.starts_with("the pause lasts until"), "{early}");
    story.idle = 600;
    assert_eq!(story.fact(Event::PauseEnded), ["develop a#2", "develop c#1"]);
    assert_eq!(story.refuses(&Event::PauseEnded), "nothing is paused");
}

/// A mistake in a header must not stop work for good.
#[test]
fn no_pause_is_longer_than_a_week_and_a_restart_tries_again() {
    let mut story = Story::developing(rules(), [task("a"), task("b").needs(&["a"])]);
    let main = AccountName::default();
    let forever = Event::ProviderLimited { until: jiff::Timestamp::MAX, account: main.clone() };
    let now = story.now();
    story.fact(forever);
    let week = jiff::SignedDuration::from_hours(7 * 24);
    assert_eq!(story.state.pauses.of(&main, now), Some(now.checked_add(week).unwrap()));
    story.finishes("a");
    assert_eq!(story.resumes(), ["develop b#1"]);
}

#[test]
fn those_who_run_go_on_and_get_money_during_a_pause() {
    let rules = Rules { session_budget: usd(160), ..rules() };
    let mut story = Story::developing(rules, [task("a")]);
    assert_eq!(story.fact(limit(500)), NOTHING);
    assert_eq!(story.wants_more("a"), ["grant develop a#1 up to 20"]);
    assert_eq!(story.finishes("a"), ["inspect a", "validation", "accept a"]);
    assert_eq!(story.is_accepted("a"), ["wait until 500"]);
    story.idle = 500;
    assert_eq!(story.fact(Event::PauseEnded), ["validate a#1 up to 10"]);
}

/// An overload is not a matter of the account: others go on with it, and what was
/// turned away waits for a while of its own that is longer the next time.
#[test]
fn an_overload_makes_only_its_own_work_wait_and_longer_each_time() {
    let rules = Rules { max_retries: 0, workers: 2, ..rules() };
    let mut story = Story::developing(rules, [task("a"), task("b"), task("c")]);
    let overloaded = || Outcome::Overloaded { status: 529 };
    // The third one takes the place; nobody is told to leave the account alone.
    assert_eq!(story.fails("a", overloaded())[0], "develop c#1");
    assert!(story.state.pauses.is_empty());
    let waits = |story: &Story| {
        let until = story.state.next_opening().expect("something waits");
        until.duration_since(story.now()).as_secs()
    };
    let first = waits(&story);
    assert!((4..10).contains(&first), "{first} s");
    let early = story.refuses(&Event::PauseEnded);
    assert!(early.starts_with("the pause lasts until"), "{early}");
    assert_eq!(story.builds("b")[0], "inspect b");
    story.idle = 100;
    assert_eq!(story.fact(Event::PauseEnded), ["develop a#2"]);
    story.fails("a", overloaded());
    let second = waits(&story);
    assert!((9..20).contains(&second), "{second} s");
    // It costs no retry, and what got through begins anew.
    assert_eq!(story.task("a").tally.retries, 0);
    story.idle = 200;
    assert_eq!(story.fact(Event::PauseEnded), ["develop a#3"]);
    story.builds("a");
    assert!(story.state.back_offs.is_empty());
}

/// What was turned away is given to an executor with another account at once, and
/// the journal says why.
#[test]
fn another_account_does_what_an_overloaded_one_turned_away() {
    let mut story = Story::developing(two_accounts(), [task("a")]);
    let again = story.fails("a", Outcome::Overloaded { status: 503 });
    assert_eq!(again, ["develop a#2 with codex"]);
    let passed_over = story.journal.iter().rev().find_map(|(_, event)| match event {
        Event::AgentClaimed { passed_over, .. } => Some(passed_over.clone()),
        _ => None,
    });
    let passed_over = passed_over.expect("a claim");
    assert!(
        matches!(&passed_over[..], [PassedOver { because: Shortcoming::Overloaded { .. }, .. }]),
        "{passed_over:?}"
    );
    let claim = story.journal.iter().rev().find_map(|(_, event)| match event {
        Event::AgentClaimed { work, cap, grant, .. } => Some((work.clone(), *cap, *grant)),
        _ => None,
    });
    // Both turned it away: nobody may be started for it, whoever writes that down.
    story.fails("a", Outcome::Overloaded { status: 503 });
    let (_, cap, grant) = claim.expect("a claim");
    let refused = story.refuses(&Event::AgentClaimed {
        agent: AgentId::from_number(Role::Worker, 99),
        work: Work::Develop { task: story.task("a").spec.id.clone(), attempt: 3 },
        executor: executor("codex"),
        cap,
        grant,
        passed_over: Vec::new(),
    });
    assert_eq!(refused, "it waits because the provider was overloaded");
}

fn limit(at: i64) -> Event {
    Event::ProviderLimited { until: second(at), account: AccountName::default() }
}

/// Workers by claude, and by codex with an account of its own.
fn two_accounts() -> Rules {
    let mut rules = rules();
    rules.executors.worker = vec![executor("claude"), executor("codex")];
    rules.accounts = [(executor("codex"), AccountName::new("other").expect("a plain word"))].into();
    rules
}

#[test]
fn while_one_account_is_paused_another_one_does_the_work() {
    let tasks = [task("a"), task("b").needs(&["a"]), task("c").needs(&["a"])];
    let mut story = Story::developing(two_accounts(), tasks);
    assert_eq!(story.fact(limit(500)), NOTHING);
    let started = ["inspect a", "develop b#1 with codex", "develop c#1 with codex"];
    assert_eq!(story.finishes("a"), started);
    // One after the other is limited: nobody is left to ask.
    let limited = Outcome::RateLimited { until: second(400) };
    assert_eq!(story.fails("b", limited), ["wait until 400"]);
    story.idle = 400;
    assert_eq!(story.fact(Event::PauseEnded), ["develop b#2 with codex"]);
    story.idle = 500;
    assert_eq!(story.fails("c", Outcome::TimedOut), ["develop c#2"], "the first one again");
}

#[test]
fn an_executor_has_no_more_agents_than_it_may_and_the_next_one_helps_out() {
    let mut rules = two_accounts();
    rules.executor_caps = [(executor("claude"), 1), (executor("codex"), 2)].into();
    let tasks = ["a", "b", "c", "d"].map(task);
    let mut story = Story::developing(rules, tasks);
    let with = |story: &Story, name: &str| story.state.crew.live_with(&executor(name));
    assert_eq!((with(&story, "claude"), with(&story, "codex")), (1, 2));
    assert_eq!(story.builds("a"), ["inspect a", "develop d#1"]);
    assert_eq!((with(&story, "claude"), with(&story, "codex")), (1, 2));
}

#[test]
fn a_task_whose_executor_is_full_does_not_hold_up_the_others() {
    let mut rules = two_accounts();
    rules.executors.worker = vec![executor("claude")];
    rules.executor_caps = [(executor("codex"), 1)].into();
    let by_codex = |name: &str| TaskSpec { executor: Some(executor("codex")), ..task(name) };
    let tasks = [by_codex("a"), by_codex("b"), task("c").priority(9)];
    let story = Story::developing(rules, tasks);
    let live = story.state.crew.live().values();
    let mut who: Vec<String> = live
        .map(|agent| format!("{} {}", agent.work.task().expect("a task"), agent.executor))
        .collect();
    who.sort();
    // The second one for codex is given to the next in line.
    assert_eq!(who, ["a codex", "b claude", "c claude"]);
}

#[test]
fn the_journal_says_who_was_passed_over_and_why() {
    let mut rules = two_accounts();
    rules.executors.worker.push(executor("embedded"));
    rules.executor_caps = [(executor("embedded"), 1)].into();
    let mut story = Story::developing(rules, [task("a"), task("b").needs(&["a"])]);
    story.fails("a", Outcome::Crashed { detail: "x".into() });
    let claimed = |story: &Story| {
        let of_last = |event: &Event| match event {
            Event::AgentClaimed { executor, passed_over, .. } => {
                Some((executor.clone(), passed_over.clone()))
            }
            _ => None,
        };
        story.journal.iter().rev().find_map(|(_, event)| of_last(event)).expect("a claim")
    };
    let failed = PassedOver { executor: executor("claude"), because: Shortcoming::Failed };
    assert_eq!(claimed(&story), (executor("codex"), vec![failed]));
}

//! Limits hold against any event, not only against our own decisions.

use blueflame_core::event::{End, Event, Work};
use blueflame_core::ids::{AccountName, AgentId, ExecutorName, Role, TaskId};
use blueflame_core::money::Budget;
use blueflame_core::rules::Rules;

use crate::story::Story;
use crate::words::{Details, executor, rules, task, usd};

/// Two tasks that want the same file: the second has to wait for the first.
fn one_at_work(rules: Rules) -> Story {
    let rules = Rules { session_budget: usd(32), ..rules };
    let tasks = [task("a").locks(&["src/x"]), task("b").locks(&["src/x"])];
    Story::developing(rules, tasks)
}

fn claim(work: Work, executor: &str, cap: Budget, grant: Budget) -> Event {
    let agent = AgentId::from_number(Role::Worker, 99);
    let executor = ExecutorName::new(executor).expect("a plain word");
    Event::AgentClaimed { agent, work, executor, cap, grant, passed_over: Vec::new() }
}

fn b() -> TaskId {
    TaskId::new("b").expect("a plain word")
}

fn develop() -> Work {
    Work::Develop { task: b(), attempt: 1 }
}

fn good() -> Event {
    claim(develop(), "claude", Budget::Unlimited, usd(2))
}

#[test]
fn an_agent_is_claimed_within_every_limit_or_not_at_all() {
    let none = Budget::Unlimited;
    let validate = Work::Validate { task: b(), attempt: 0 };
    for (event, why) in [
        (good(), "its files are taken by another task"),
        (claim(develop(), "claude", none, usd(31)), "the session has no $0.000031 to give"),
        (
            claim(develop(), "claude", none, Budget::Tokens(1)),
            "the session has no 1 tokens to give",
        ),
        (claim(develop(), "claude", none, none), "the session has no unlimited to give"),
        (claim(develop(), "codex", none, usd(2)), "`codex` is not configured"),
        (claim(develop(), "claude", usd(1), usd(1)), "a worker has another limit"),
        (claim(validate, "claude", none, usd(2)), "it is not the time for a validator"),
    ] {
        let mut story = one_at_work(rules());
        assert_eq!(story.refuses(&event), why);
    }
}

#[test]
fn places_and_memory_are_counted_for_everyone() {
    let mut story = one_at_work(Rules { workers: 1, ..rules() });
    assert_eq!(story.refuses(&good()), "all places for a worker are taken");
    let mut story = one_at_work(Rules { memory_per_agent_mb: Some(600), ..rules() });
    assert_eq!(story.refuses(&good()), "the memory holds no more agents");
    let executor_caps = [(executor("claude"), 1)].into();
    let mut story = one_at_work(Rules { executor_caps, ..rules() });
    assert_eq!(story.refuses(&good()), "`claude` has all the agents that it may have");
}

#[test]
fn nobody_is_claimed_while_stopping_or_during_a_pause() {
    let mut story = one_at_work(rules());
    let until = story.now().checked_add(jiff::SignedDuration::from_secs(60)).expect("soon");
    story.fact(Event::ProviderLimited { until, account: AccountName::default() });
    assert_eq!(story.refuses(&good()), "the provider asked for a pause");
    story.asks_to_stop();
    assert_eq!(story.refuses(&good()), "the session is stopping");
}

#[test]
fn a_share_is_granted_within_what_is_left() {
    let mut story = one_at_work(rules());
    let agent = story.agent("a");
    let granted = |grant| Event::Granted { agent: agent.clone(), grant };
    let unasked = format!("`{agent}` did not ask for more");
    assert_eq!(story.refuses(&granted(usd(4))), unasked);
    for too_much in [usd(100), Budget::Unlimited, Budget::Tokens(3)] {
        let mut asking = one_at_work(rules());
        let agent = asking.agent("a");
        asking.silently(Event::GrantWanted { agent: agent.clone() });
        let refused = asking.refuses(&Event::Granted { agent, grant: too_much });
        assert_eq!(refused, format!("the session has no {too_much} to give"));
    }
}

#[test]
fn a_session_is_not_called_complete_while_a_task_is_open() {
    let mut story = Story::developing(rules(), [task("a")]);
    story.fails("a", blueflame_core::outcome::Outcome::NoOp);
    story.silently(Event::StopRequested);
    let agent = story.agent("a");
    let outcome = blueflame_core::outcome::Outcome::NoOp;
    story.silently(Event::AgentExited { agent, outcome, spend: crate::words::cost(0) });
    let ended = Event::SessionEnded { end: End::Complete };
    assert_eq!(story.refuses(&ended), "`a` has not landed");
}

#[test]
fn nobody_suspends_a_session_that_was_not_stopped() {
    let mut story = Story::begin(rules(), [task("a")]);
    assert_eq!(story.refuses(&Event::SessionSuspended), "nobody asked to stop");
}

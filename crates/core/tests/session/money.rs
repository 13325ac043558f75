//! Budgets: shares, requests for more, the question, and the end.

use blueflame_core::event::Event;
use blueflame_core::gate::{Answer, BudgetAnswer};
use blueflame_core::ids::Role;
use blueflame_core::money::Budget;
use blueflame_core::outcome::{BudgetScope, Killer, Outcome};
use blueflame_core::rules::{PerRole, Rules};

use crate::story::{NOTHING, Story};
use crate::words::{Details, cost, oid, pipelined, rules, task, usd};

fn with_budget(budget: Budget) -> Rules {
    Rules { session_budget: budget, ..rules() }
}

fn raise(by: Budget) -> Answer {
    Answer::Budget(BudgetAnswer::Raise { by })
}

fn stop() -> Answer {
    Answer::Budget(BudgetAnswer::Stop)
}

/// The whole budget is gone: `a` is done and has cost 15 of 16, `b` holds the
/// rest and asks for more.
fn spent_up(rules: Rules) -> Story {
    let mut story = Story::begin(rules, [task("a"), task("b")]);
    story.approves_the_plan();
    assert_eq!(story.has_spent("a", 15), NOTHING);
    story.finishes("a");
    assert_eq!(story.has_spent("b", 1), NOTHING);
    story
}

#[test]
fn row_27_at_the_end_of_the_budget_the_session_pauses_and_a_raise_goes_on() {
    let mut story = spent_up(with_budget(usd(16)));
    assert_eq!(story.wants_more("b"), ["ask budget"]);
    assert_eq!(story.has_spent("b", 1), NOTHING, "everything waits for the answer");
    for (by, why) in [
        (usd(0), "a budget of $0.000016 cannot be raised by $0.00"),
        (Budget::Tokens(9), "a budget of $0.000016 cannot be raised by 9 tokens"),
    ] {
        let useless = Event::GateAnswered { gate: story.gate(), answer: raise(by) };
        assert_eq!(story.refuses(&useless), why);
    }
    assert_eq!(story.answers(raise(usd(32))), ["grant develop b#1 up to 4"]);
    assert_eq!(story.state.crew.session_budget(), usd(48));
    assert_eq!(story.finishes("b"), ["inspect b", "validation", "accept a", "accept b"]);
}

#[test]
fn row_27_a_stop_ends_the_agents_and_the_session() {
    let mut story = spent_up(with_budget(usd(16)));
    story.wants_more("b");
    assert_eq!(story.answers(stop()), ["stop develop b#1"]);
    assert_eq!(story.has_spent("b", 1), NOTHING);
    assert_eq!(story.fails("b", Outcome::Killed { by: Killer::Us }), ["end Budget"]);
    assert_eq!(story.phases(["a", "b"]), ["done", "pending"]);
}

#[test]
fn row_27_what_is_validated_is_merged_after_a_stop() {
    let rules = Rules { session_budget: usd(32), workers: 1, ..pipelined() };
    let mut story = Story::developing(rules, [task("a"), task("b").group("h"), task("c")]);
    story.finishes("a");
    story.passes("a");
    story.has_spent("b", 28);
    story.finishes("b");
    story.passes("b");
    story.has_spent("c", 4);
    assert_eq!(story.wants_more("c"), ["ask budget"]);
    assert_eq!(story.answers(stop()), ["stop develop c#1"]);
    let killed = Outcome::Killed { by: Killer::Us };
    assert_eq!(story.fails("c", killed), ["merge g.c1[a], h.c1[b]", "fold g.c1[a]"]);
    assert_eq!(story.merges().last().unwrap(), "fold h.c1[b]");
    // A conflict would take a merger, and nobody is started any more.
    assert_eq!(story.conflicts(), ["defer h.c1: no budget", "end Budget"]);
    assert_eq!(story.phases(["a", "b", "c"]), ["merged", "validated", "pending"]);
}

#[test]
fn row_27_disputes_are_still_settled_after_a_stop() {
    let rules = Rules { session_budget: usd(16), ..pipelined() };
    let mut story = Story::developing(rules, [task("a"), task("b")]);
    story.finishes("a");
    story.is_accepted("a");
    story.has_spent("b", 15);
    story.has_spent("a", 1);
    story.wants_more("a");
    assert_eq!(story.wants_more("b"), ["ask budget"]);
    assert_eq!(story.answers(stop()), ["stop validate a#1", "stop develop b#1"]);
    assert_eq!(story.is_judged("a", false, "bad"), NOTHING, "b is still being stopped");
    let killed = Outcome::Killed { by: Killer::Us };
    assert_eq!(story.fails("b", killed), ["ask validation a"]);
    let drop = blueflame_core::gate::ValidationAnswer::Drop;
    assert_eq!(story.answers(Answer::ValidationFailed(drop)), ["end Budget"]);
}

#[test]
fn row_27_a_planner_without_money_is_asked_about_too() {
    let mut story = Story::to_be_planned(with_budget(usd(1)));
    story.has_spent("planner", 1);
    assert_eq!(story.fails("planner", Outcome::TimedOut), ["ask budget"]);
    assert_eq!(story.answers(stop()), ["end Budget"]);
}

#[test]
fn row_49_a_token_budget_counts_tokens() {
    let mut story = spent_up(with_budget(Budget::Tokens(16)));
    assert_eq!(story.wants_more("b"), ["ask budget"]);
    assert_eq!(story.answers(raise(Budget::Tokens(16))), ["grant develop b#1 up to 3 tokens"]);
    assert_eq!(story.state.crew.session_budget(), Budget::Tokens(32));
}

#[test]
fn row_49_tokens_of_every_kind_count() {
    let mut story = Story::begin(with_budget(Budget::Tokens(4)), [task("a")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1 up to 1 tokens"]);
    let mut spend = cost(0);
    spend.usage.output = 1;
    spend.usage.cache_read = 1;
    spend.usage.cache_write = 2;
    let agent = story.agent("a");
    story.fact(Event::UsageReported { agent, spend });
    assert_eq!(story.wants_more("a"), ["ask budget"]);
}

#[test]
fn row_50_an_agent_at_its_own_limit_costs_a_retry_and_keeps_the_work() {
    let agent_budgets = PerRole { worker: Budget::Tokens(500), ..PerRole::default() };
    let rules = Rules { agent_budgets, max_retries: 1, ..rules() };
    let mut story = Story::developing(rules, [task("a")]);
    let agent = story.agent("a");
    assert_eq!(story.state.crew.live()[&agent].cap, Budget::Tokens(500));
    story.fact(Event::SnapshotTaken { agent, commit: oid(7) });
    let spent = || Outcome::BudgetSpent { limit: BudgetScope::Agent };
    assert_eq!(story.fails("a", spent()), ["develop a#2"]);
    assert_eq!(story.task("a").snapshot, Some(oid(7)));
    assert_eq!(story.task("a").tally.retries, 1);
    assert_eq!(story.fails("a", spent()), ["end Incomplete"]);
}

#[test]
fn row_50_the_limit_of_each_role_is_its_own() {
    let agent_budgets =
        PerRole { planner: usd(1), worker: usd(2), validator: usd(3), merger: usd(4) };
    let mut story = Story::to_be_planned(Rules { agent_budgets, ..rules() });
    let cap = |story: &Story, who: &str| story.state.crew.live()[&story.agent(who)].cap;
    assert_eq!(cap(&story, "planner"), usd(1));
    story.proposes([task("a")]);
    story.approves_the_plan();
    assert_eq!(cap(&story, "a"), usd(2));
    story.finishes("a");
    story.is_accepted("a");
    assert_eq!(cap(&story, "a"), usd(3));
    story.is_judged("a", true, "");
    story.conflicts();
    assert_eq!(cap(&story, "merger"), usd(4));
}

#[test]
fn row_50_when_the_sessions_share_runs_out_it_is_not_the_tasks_fault() {
    let mut story = Story::developing(Rules { max_retries: 0, ..rules() }, [task("a")]);
    let spent = Outcome::BudgetSpent { limit: BudgetScope::Session };
    assert_eq!(story.fails("a", spent), ["develop a#2"]);
}

#[test]
fn row_51_without_a_budget_nobody_is_ever_asked() {
    let mut story = Story::begin(with_budget(Budget::Unlimited), [task("a")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1"]);
    assert_eq!(story.has_spent("a", u64::MAX), NOTHING);
    let agent = story.agent("a");
    let wanted = Event::GrantWanted { agent: agent.clone() };
    assert_eq!(story.refuses(&wanted), format!("`{agent}` has no limit to extend"));
    assert_eq!(story.fails("a", Outcome::TimedOut), ["develop a#2"]);
    assert_eq!(story.finishes("a"), ["inspect a", "validation", "accept a"]);
}

#[test]
fn shares_are_a_sixteenth_and_grow_on_request() {
    let mut story = Story::begin(with_budget(usd(160)), [task("a"), task("b")]);
    assert_eq!(
        story.approves_the_plan(),
        ["cycle 1", "develop a#1 up to 10", "develop b#1 up to 10"]
    );
    let agent = story.agent("a");
    let unasked = Event::Granted { agent: agent.clone(), grant: usd(99) };
    assert_eq!(story.refuses(&unasked), format!("`{agent}` did not ask for more"));
    story.has_spent("a", 10);
    assert_eq!(story.wants_more("a"), ["grant develop a#1 up to 20"]);
    assert_eq!(story.has_spent("a", 20), NOTHING, "it asked once");
    // A request that cost more than was left: the share grows from there.
    story.has_spent("a", 47);
    assert_eq!(story.wants_more("a"), ["grant develop a#1 up to 57"]);
}

#[test]
fn a_share_ends_at_the_agents_own_limit() {
    let agent_budgets = PerRole { worker: usd(15), ..PerRole::default() };
    let rules = Rules { agent_budgets, ..with_budget(usd(160)) };
    let mut story = Story::begin(rules, [task("a")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1 up to 10"]);
    story.has_spent("a", 10);
    assert_eq!(story.wants_more("a"), ["grant develop a#1 up to 15"]);
    let agent = story.agent("a");
    let wanted = Event::GrantWanted { agent: agent.clone() };
    assert_eq!(story.refuses(&wanted), format!("`{agent}` has all it may ever have"));
}

#[test]
fn an_agent_past_its_own_limit_gets_nothing_and_keeps_its_place() {
    let agent_budgets = PerRole { worker: usd(15), ..PerRole::default() };
    let rules = Rules { agent_budgets, workers: 1, ..with_budget(usd(160)) };
    let mut story = Story::developing(rules, [task("a"), task("b")]);
    story.has_spent("a", 20);
    let more = Event::GrantWanted { agent: story.agent("a") };
    let why = format!("`{}` has all it may ever have", story.agent("a"));
    assert_eq!(story.refuses(&more), why, "its attempt process ends it");
    let spent = Outcome::BudgetSpent { limit: BudgetScope::Agent };
    assert_eq!(story.fails("a", spent), ["develop a#2 up to 10"]);
}

#[test]
fn nobody_is_asked_while_someone_may_leave_money_over() {
    let tasks = [task("a"), task("b"), task("c")];
    let mut story = Story::begin(with_budget(usd(2)), tasks);
    assert_eq!(
        story.approves_the_plan(),
        ["cycle 1", "develop a#1 up to 1", "develop b#1 up to 1"],
        "nothing is left for c"
    );
    assert_eq!(story.wants_more("a"), NOTHING, "b is busy");
    // b leaves its share over, and who is at work goes before who is not.
    assert_eq!(story.builds("b"), ["grant develop a#1 up to 2", "inspect b"]);
    assert_eq!(story.builds("a"), ["inspect a", "develop c#1 up to 1"]);
}

#[test]
fn what_the_gone_have_spent_stays_spent() {
    let mut story = Story::begin(with_budget(usd(16)), [task("a")]);
    assert_eq!(story.approves_the_plan(), ["cycle 1", "develop a#1 up to 1"]);
    story.has_spent("a", 9);
    // The last figure may come with the end, and a smaller one is a late one.
    let agent = story.agent("a");
    let exit = Event::AgentExited { agent, outcome: Outcome::TimedOut, spend: cost(15) };
    assert_eq!(story.fact(exit), ["develop a#2 up to 1"]);
    assert_eq!(story.state.crew.spent(), cost(15));
    story.has_spent("a", 1);
    story.has_spent("a", 0);
    assert_eq!(story.state.crew.spent(), cost(16));
    assert_eq!(story.wants_more("a"), ["ask budget"]);
    let past = &story.state.crew.past()[0];
    assert_eq!((past.spend, past.outcome), (cost(15), "timed-out"));
}

#[test]
fn the_question_is_withdrawn_when_money_turns_up() {
    let mut story = Story::begin(with_budget(usd(2)), [task("a"), task("b")]);
    story.approves_the_plan();
    assert_eq!(story.wants_more("a"), NOTHING);
    assert_eq!(story.wants_more("b"), ["ask budget"]);
    assert_eq!(
        story.fails("a", Outcome::TimedOut),
        ["withdraw budget", "grant develop b#1 up to 2"]
    );
    assert_eq!(story.state.crew.live_in(Role::Worker), 1);
}

#[test]
fn agents_that_are_being_stopped_get_nothing_more() {
    let tasks = [task("a"), task("b").needs(&["a"])];
    let mut story = Story::developing(with_budget(usd(160)), tasks);
    story.finishes("a");
    story.finishes("b");
    story.is_accepted("a");
    story.is_accepted("b");
    assert_eq!(story.is_judged("a", false, "bad"), ["stop validate b#1", "ask validation a"]);
    assert_eq!(story.wants_more("b"), NOTHING);
}

/// What a lost agent spent while nobody listened is not known, so all that it
/// held is gone: otherwise every crash would make the budget larger.
#[test]
fn a_lost_agent_takes_its_share_with_it() {
    let mut story = Story::developing(with_budget(usd(32)), [task("a")]);
    for held in [2, 4, 6] {
        assert_eq!(left(&story), 32 - held, "one share is held, the others are gone");
        let lost = Event::AgentLost { agent: story.agent("a"), spend: None };
        story.fact(lost);
    }
    let known = Event::AgentLost { agent: story.agent("a"), spend: Some(cost(1)) };
    story.fact(known);
    assert_eq!(left(&story), 32 - 6 - 1 - 2, "what is known is all that is booked");
    assert_eq!(story.state.crew.spent(), cost(1), "and all that is shown as spent");
    assert_eq!(story.state.crew.written_off(), Some(usd(6)), "the rest is shown beside it");
    assert!(!story.state.crew.is_nearly_spent(22) && story.state.crew.is_nearly_spent(21));
}

fn left(story: &Story) -> u64 {
    match story.state.crew.room() {
        blueflame_core::state::crew::Room::Limited { left, .. } => left,
        blueflame_core::state::crew::Room::Unlimited => u64::MAX,
    }
}

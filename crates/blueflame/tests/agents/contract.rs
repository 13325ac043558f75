//! What every executor has to hold to, with the real programs: the requests
//! that reach the model, and what the attempt process makes of the run.

use std::net::TcpListener;
use std::time::Duration;

use blueflame::attempt::messages::{Command, Report};
use blueflame::attempt::sealed::Ending;
use blueflame::executor::{self, abilities::OwnTokens};
use blueflame::sandbox::{Limits, Terms, Tier};
use blueflame_core::config::{self, ProcessLimit};
use blueflame_core::money::{Budget, Spend};
use blueflame_core::outcome::{BudgetScope, Killer, Outcome};
use serde_json::json;

use crate::stage::{Agent, Run, Stage, WORKER};

/// One test for each executor.
macro_rules! contract {
    ($($name:ident)*) => {
        mod claude {
            $(#[test]
            fn $name() {
                super::$name(super::Agent::Claude);
            })*
        }
        mod codex {
            $(#[test]
            fn $name() {
                super::$name(super::Agent::Codex);
            })*
        }
        mod opencode {
            $(#[test]
            fn $name() {
                super::$name(super::Agent::Opencode);
            })*
        }
        mod embedded {
            $(#[test]
            fn $name() {
                super::$name(super::Agent::Embedded);
            })*
        }
    };
}

contract! {
    tools_are_used_and_the_work_is_committed
    the_weaker_sandbox_is_good_enough_to_work_in
    a_denied_call_is_explained_to_the_model_and_the_run_goes_on
    structured_output_is_handed_on
    missing_structured_output_is_no_success
    structured_output_of_the_wrong_shape_is_no_success
    a_token_budget_stops_it_within_the_request_that_crosses_it
    a_turn_limit_is_its_own_outcome
    a_larger_share_of_the_budget_lets_it_go_on
    no_larger_share_ends_it_for_the_session
    a_login_that_is_not_accepted_is_a_crash_that_says_so
    a_rate_limit_has_its_time
    an_overloaded_provider_is_waited_for
    an_internal_error_of_the_provider_is_a_crash
    a_stream_that_is_cut_is_no_success
    a_provider_that_cannot_be_reached_is_a_crash
    a_model_that_hangs_runs_out_of_time
    a_stop_ends_it_and_what_it_started
    a_prompt_of_a_megabyte_arrives_whole
    a_prompt_that_looks_like_a_command_reaches_the_model
    a_line_of_twenty_megabytes_is_taken
}

fn expect(run: &Run, end: &str) {
    assert_eq!(run.end(), end, "{}", run.story());
}

/// How many requests reached the model, by whoever was the agent. All of them
/// are streamed: how far an answer got is known while it comes.
fn asked(run: &Run, agent: Agent, of: [usize; 4]) {
    let expected = match agent {
        Agent::Claude => of[0],
        Agent::Codex => of[1],
        Agent::Opencode => of[2],
        Agent::Embedded => of[3],
    };
    let requests = run.requests();
    assert_eq!(requests.len(), expected, "requests of {agent:?}: {}", run.story());
    assert!(requests.iter().all(|request| request["stream"] == true), "not all are streamed");
}

fn tools_are_used_and_the_work_is_committed(agent: Agent) {
    works_in(agent, Tier::Namespaces);
}

fn the_weaker_sandbox_is_good_enough_to_work_in(agent: Agent) {
    works_in(agent, Tier::Landlock);
}

/// With the limits that agents have unless somebody says otherwise.
fn works_in(agent: Agent, tier: Tier) {
    let defaults = config::read(b"schema_version: 2\n").config.unwrap();
    let limits = Limits::of_agents(&defaults.sandbox, ProcessLimit::Kernel);
    let Some(stage) = Stage::new(agent) else { return };
    let run = stage
        .with(|spec| spec.sandbox = Terms { tier, limits, ..Terms::default() })
        .script(
            "
replies:
  - when: {role: worker, task: task-001, turn: 0}
    say: I will write the file.
    call:
      - {tool: Write, input: {file_path: hello.txt, content: \"hello\\n\"}}
  - when: {role: worker, turn: 1}
    call:
      - {tool: Bash, input: {command: \"git add hello.txt && git commit -q -m 'feat(task-001): greet'\"}}
  - when: {role: worker}
    say: All done.
",
        )
        .run();
    expect(&run, "stopped");
    assert_eq!(run.git(&["log", "-1", "--format=%s %an"]), "feat(task-001): greet Ada");
    assert_eq!(run.git(&["status", "--porcelain"]), "");
    assert_eq!(run.file("hello.txt").unwrap(), "hello\n");
    assert_eq!((run.sealed.calls, run.sealed.denied), (2, 0), "{}", run.story());
    // What the gateway counted is what the program says itself.
    assert_eq!(Some(run.sealed.spend.usage), run.sealed.own_usage);
    asked(&run, agent, [3, 3, 3, 3]);
    let told = run.told(0);
    assert!(told.contains("You work on a small project."), "{told}");
    assert!(told.contains("Do the task."), "{told}");
}

fn a_denied_call_is_explained_to_the_model_and_the_run_goes_on(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = stage
        .script(
            "
replies:
  - when: {turn: 0}
    call:
      - {tool: Write, input: {file_path: forbidden.md, content: x}}
  - when: {contains: paths.}
    say: Then I will not.
",
        )
        .run();
    expect(&run, "stopped");
    assert_eq!(run.file("forbidden.md"), None);
    assert_eq!((run.sealed.calls, run.sealed.denied), (1, 1));
    asked(&run, agent, [2, 2, 2, 2]);
    let audit = run.audit();
    assert_eq!(audit.len(), 1);
    assert_eq!((&audit[0]["tool"], &audit[0]["decision"]), (&json!("Write"), &json!("deny")));
    assert!(run.last_message().contains("forbidden.md"), "{}", run.last_message());
}

fn verdict(stage: Stage) -> Stage {
    stage.with(|spec| {
        spec.order.output_schema = Some(json!({
            "type": "object",
            "properties": {"status": {"enum": ["pass", "fail"]}},
            "required": ["status"],
        }));
    })
}

fn structured_output_is_handed_on(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = verdict(stage).script("replies: [{output: {status: pass}}]").run();
    expect(&run, "stopped");
    assert_eq!(run.output(), Some(&json!({"status": "pass"})));
    asked(&run, agent, [1, 1, 1, 1]);
    let request = run.requests()[0].to_string();
    assert!(request.contains("StructuredOutput"), "{request}");
}

fn missing_structured_output_is_no_success(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = verdict(stage).script("replies: [{say: It is fine.}]").run();
    expect(&run, "malformed");
    // It is reminded once.
    asked(&run, agent, [2, 1, 1, 2]);
}

fn structured_output_of_the_wrong_shape_is_no_success(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = verdict(stage).script("replies: [{output: {status: maybe}}]").run();
    expect(&run, "malformed");
    asked(&run, agent, [5, 1, 1, 5]);
    let told = executor::named(run.stage.spec.executor.as_str()).unwrap().abilities();
    assert_eq!(run.requests().len(), usize::try_from(told.output.tries()).unwrap());
}

/// A model that calls tools for ever, at 1,000 tokens a request.
const FOR_EVER: &str = "
replies:
  - call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
";

fn a_token_budget_stops_it_within_the_request_that_crosses_it(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = stage.script(FOR_EVER).with(|spec| spec.limits.cap = Budget::Tokens(2_500)).run();
    expect(&run, "budget");
    // The third request crosses the limit; there is no fourth.
    asked(&run, agent, [3, 3, 3, 3]);
    assert_eq!(run.sealed.spend.usage.total(), 3_000);
    // It says itself what it used when the code promises that, and only then.
    let told = executor::named(run.stage.spec.executor.as_str()).unwrap().abilities().tokens;
    let says = matches!(told, OwnTokens::EachAnswer | OwnTokens::AtItsEnd);
    assert_eq!(run.sealed.own_usage.is_some(), says, "{}", run.story());
}

fn a_turn_limit_is_its_own_outcome(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = stage.script(FOR_EVER).with(|spec| spec.order.max_turns = Some(2)).run();
    expect(&run, "max-turns");
    asked(&run, agent, [2, 2, 2, 2]);
}

/// Two turns of 1,000 tokens each.
const TWO_TURNS: &str = "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
  - say: Done.
    usage: {input: 900, output: 100}
";

fn a_larger_share_of_the_budget_lets_it_go_on(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let stage = stage.script(TWO_TURNS).with(|spec| spec.limits.grant = Budget::Tokens(500));
    let run = stage.run_with(|report| match report {
        Report::GrantWanted => Some(Command::Grant { grant: Budget::Tokens(5_000) }),
        _ => None,
    });
    expect(&run, "stopped");
    assert_eq!(run.reports.iter().filter(|report| **report == Report::GrantWanted).count(), 1);
    assert_eq!(run.sealed.spend.usage.total(), 2_000);
    asked(&run, agent, [2, 2, 2, 2]);
}

fn no_larger_share_ends_it_for_the_session(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = stage
        .script(TWO_TURNS)
        .with(|spec| {
            spec.limits.grant = Budget::Tokens(500);
            spec.limits.grant_wait = Duration::from_millis(100);
        })
        .run();
    let limit = BudgetScope::Session;
    assert_eq!(run.sealed.ending, Ending::Failed(Outcome::BudgetSpent { limit }));
    asked(&run, agent, [1, 1, 1, 1]);
}

fn failing(agent: Agent, fail: &str) -> Option<Run> {
    let script = format!("replies: [{{fail: {{{fail}}}}}]");
    Some(Stage::new(agent)?.script(&script).run())
}

fn a_login_that_is_not_accepted_is_a_crash_that_says_so(agent: Agent) {
    let Some(run) = failing(agent, "status: 401, message: bad key") else { return };
    expect(&run, "crashed");
    assert!(run.story().contains("does not accept the login (401)"), "{}", run.story());
    asked(&run, agent, [5, 3, 1, 1]);
}

fn a_rate_limit_has_its_time(agent: Agent) {
    let Some(run) = failing(agent, "status: 429, retry_after: 1h") else { return };
    expect(&run, "rate-limited");
    let Ending::Failed(Outcome::RateLimited { until }) = run.sealed.ending else { panic!() };
    let wait = until.duration_since(run.sealed.started).as_secs();
    assert!((3_500..3_700).contains(&wait), "{wait} s");
    // An hour is not waited for.
    asked(&run, agent, [1, 1, 1, 1]);
    let told = |report: &Report| matches!(report, Report::ProviderLimited { status: 429, .. });
    assert!(run.reports.iter().any(told));
}

fn an_overloaded_provider_is_waited_for(agent: Agent) {
    let Some(run) = failing(agent, "status: 529") else { return };
    expect(&run, "overloaded");
    // It tries a few times by itself.
    asked(&run, agent, [5, 9, 6, 5]);
}

fn an_internal_error_of_the_provider_is_a_crash(agent: Agent) {
    let Some(run) = failing(agent, "status: 500, message: oops") else { return };
    expect(&run, "crashed");
    assert!(run.story().contains("answered 500"), "{}", run.story());
    asked(&run, agent, [5, 9, 6, 5]);
}

fn a_stream_that_is_cut_is_no_success(agent: Agent) {
    // After the head; inside the words; and after all of them, where only the
    // word is missing that this was all (claude takes that for a success). How
    // often it asks again depends on how much arrives before the cut.
    for cut_after in [1, 3, WHOLE_BLOCK] {
        let Some(stage) = Stage::new(agent) else { return };
        let reply = format!("{{say: Short., pause: 50ms, cut_after: {cut_after}}}");
        let run = stage.script(&format!("replies: [{reply}]")).run();
        expect(&run, "crashed");
        let streamed: Vec<bool> =
            run.requests().iter().map(|request| request["stream"] == true).collect();
        let story = || format!("cut after {cut_after}: {streamed:?} {}", run.story());
        assert!((1..=10).contains(&streamed.len()) && streamed[0], "{}", story());
        match agent {
            // In the end it does not ask for a stream any more.
            Agent::Claude => assert!(streamed.is_sorted_by(|one, next| one >= next), "{}", story()),
            Agent::Codex | Agent::Opencode | Agent::Embedded => {
                assert!(!streamed.contains(&false), "{}", story());
            }
        }
    }
}

/// The events of an answer that says one short thing, up to the end of that.
const WHOLE_BLOCK: u32 = 5;

fn a_provider_that_cannot_be_reached_is_a_crash(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = stage
        .with(|spec| {
            let address = format!("http://{closed}");
            spec.model.gateway.upstream = config::Upstream::Url(address);
        })
        .run();
    expect(&run, "crashed");
    assert!(!run.sealed.warnings.is_empty(), "{}", run.story());
    assert_eq!(run.sealed.spend, Spend::default());
    // Nobody was reached, so nothing is recorded.
    asked(&run, agent, [0, 0, 0, 0]);
}

fn a_model_that_hangs_runs_out_of_time(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = stage
        .script("replies: [{say: x, hang_after: 0}]")
        .with(|spec| spec.limits.wall = Duration::from_secs(5))
        .run();
    expect(&run, "timed-out");
    // One that is never answered is not recorded.
    asked(&run, agent, [0, 0, 0, 0]);
}

fn a_stop_ends_it_and_what_it_started(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let stage = stage.script("replies: [{call: [{tool: Bash, input: {command: sleep 600}}]}]");
    let run = stage.run_with(|report| match report {
        Report::Judged { allowed, .. } => {
            assert!(allowed);
            Some(Command::Stop)
        }
        _ => None,
    });
    assert_eq!(
        run.sealed.ending,
        Ending::Failed(Outcome::Killed { by: Killer::Us }),
        "{}",
        run.story()
    );
    asked(&run, agent, [1, 1, 1, 1]);
    let left = run.stage.processes();
    assert_eq!(left, Vec::<String>::new());
}

fn a_prompt_of_a_megabyte_arrives_whole(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let middle = "0123456789abcdef".repeat(1 << 16);
    let run = stage
        .script("replies: [{say: Read.}]")
        .with(|spec| {
            // As much does not fit into the usual context of 200,000 tokens.
            spec.order.model = "sonnet[1m]".into();
            spec.order.prompt = format!("{WORKER}{middle} THE END");
        })
        .run();
    expect(&run, "stopped");
    asked(&run, agent, [1, 1, 1, 1]);
    let message = run.told(0);
    assert!(message.contains(&format!("{middle} THE END")), "{} bytes arrived", message.len());
}

fn a_prompt_that_looks_like_a_command_reaches_the_model(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let run = stage
        .script("replies: [{say: Read.}]")
        .with(|spec| spec.order.prompt = "/compact everything".into())
        .run();
    expect(&run, "stopped");
    asked(&run, agent, [1, 1, 1, 1]);
    assert!(run.told(0).contains("/compact everything"));
}

fn a_line_of_twenty_megabytes_is_taken(agent: Agent) {
    let Some(stage) = Stage::new(agent) else { return };
    let line = "x".repeat(20 << 20);
    let run =
        stage.script(&format!("replies: [{{say: {line}, usage: {{input: 1, output: 1}}}}]")).run();
    expect(&run, "stopped");
    let Ending::Stopped { text, .. } = &run.sealed.ending else { panic!() };
    assert_eq!(text.len(), line.len());
    asked(&run, agent, [1, 1, 1, 1]);
}

//! The tokens that the gateway counts against those that each program says it has
//! used, and how far a budget is passed. `docs/figures.md` is what is found here;
//! `BLUEFLAME_WRITE_DOCS=1` writes it.

use std::fmt::Write as _;
use std::path::Path;

use blueflame::attempt::messages::{Command, Report};
use blueflame_core::money::{Budget, Usage};

use crate::stage::{Agent, Run, Stage};

const AGENTS: [Agent; 4] = [Agent::Claude, Agent::Codex, Agent::Opencode, Agent::Embedded];

/// Something that can happen to a run.
struct Situation {
    what: &'static str,
    script: &'static str,
    ended_by: EndedBy,
    /// Whether the provider gave figures for every answer.
    counted: Counted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    Itself,
    Budget,
    /// The session, as soon as a tool call was allowed.
    Stop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    ByProvider,
    Estimated,
}

const SITUATIONS: [Situation; 5] = [
    Situation {
        what: "two whole answers, with cached input",
        script: "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100, cache_read: 50}
  - say: Done.
    usage: {input: 30, output: 7, cache_read: 1000}
",
        ended_by: EndedBy::Itself,
        counted: Counted::ByProvider,
    },
    Situation {
        what: "a budget of 2,500 ends it",
        script: FOR_EVER,
        ended_by: EndedBy::Budget,
        counted: Counted::ByProvider,
    },
    Situation {
        what: "the session stops it in a tool call",
        script: "
replies:
  - call: [{tool: Bash, input: {command: sleep 600}}]
    usage: {input: 900, output: 100}
",
        ended_by: EndedBy::Stop,
        counted: Counted::ByProvider,
    },
    Situation {
        what: "the provider refuses the second request",
        script: "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
  - fail: {status: 400, message: no more}
",
        ended_by: EndedBy::Itself,
        counted: Counted::ByProvider,
    },
    Situation {
        what: "the second answer breaks off",
        script: "
replies:
  - when: {turn: 0}
    call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
  - say: Short.
    cut_after: 3
",
        ended_by: EndedBy::Itself,
        counted: Counted::Estimated,
    },
];

const FOR_EVER: &str = "
replies:
  - call: [{tool: Bash, input: {command: echo again}}]
    usage: {input: 900, output: 100}
";

/// A budget and what each answer costs.
const BUDGETS: [(u64, u64); 3] = [(2_500, 1_000), (2_500, 40_000), (100_000, 40_000)];

fn run(agent: Agent, situation: &Situation) -> Option<Run> {
    let stage = Stage::new(agent)?.script(situation.script);
    Some(match situation.ended_by {
        EndedBy::Itself => stage.run(),
        EndedBy::Budget => stage.with(|spec| spec.limits.cap = Budget::Tokens(2_500)).run(),
        EndedBy::Stop => stage
            .run_with(|report| matches!(report, Report::Judged { .. }).then_some(Command::Stop)),
    })
}

/// Both figures, in words that are the same each time.
fn figures(agent: Agent, situation: &Situation) -> Option<String> {
    let run = run(agent, situation)?;
    let (gateway, own) = (run.sealed.spend.usage, run.sealed.own_usage);
    let covers = |own: Usage| {
        gateway.input >= own.input
            && gateway.output >= own.output
            && gateway.cache_read >= own.cache_read
            && gateway.cache_write >= own.cache_write
    };
    assert!(
        own.is_none_or(covers),
        "{agent:?} counts more than the gateway in `{}`: {gateway:?} {own:?} {}",
        situation.what,
        run.story()
    );
    // Where the sums are the same, so are their parts.
    if let Some(own) = own.filter(|own| own.total() == gateway.total()) {
        assert_eq!(own, gateway, "{agent:?}");
    }
    let shown = |usage: Usage| match situation.counted {
        // How much more depends on the length of paths and prompts.
        Counted::Estimated if usage.total() > 1_000 => "more than 1,000".to_owned(),
        Counted::Estimated | Counted::ByProvider => grouped(usage.total()),
    };
    let own = own.map_or_else(|| "nothing".to_owned(), shown);
    Some(format!("{}, says {own}", shown(gateway)))
}

/// The requests made, what was spent, and by how much the budget was passed.
fn overshoot(agent: Agent, budget: u64, answer: u64) -> Option<String> {
    let script = FOR_EVER.replace("900", &(answer - 100).to_string());
    let stage = Stage::new(agent)?.script(&script);
    let run = stage.with(|spec| spec.limits.cap = Budget::Tokens(budget)).run();
    assert_eq!(run.end(), "budget", "{}", run.story());
    let spent = run.sealed.spend.usage.total();
    let past = spent.saturating_sub(budget);
    assert!(past < answer, "more than one request too many: {}", run.story());
    let requests = run.requests().len();
    Some(format!("{} in {requests}, {} too many", grouped(spent), grouped(past)))
}

/// `12,345` for 12345.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One column of each table.
fn column(agent: Agent) -> Option<(Vec<String>, Vec<String>)> {
    let figures: Option<Vec<String>> = SITUATIONS.iter().map(|it| figures(agent, it)).collect();
    let past = BUDGETS.iter().map(|(budget, answer)| overshoot(agent, *budget, *answer));
    Some((figures?, past.collect::<Option<_>>()?))
}

#[test]
fn the_gateway_never_counts_less_than_a_program_and_the_page_says_how_they_differ() {
    let columns = std::thread::scope(|scope| {
        let each = AGENTS.map(|agent| scope.spawn(move || column(agent)));
        each.map(|column| column.join().unwrap())
    });
    let Some(columns) = columns.into_iter().collect::<Option<Vec<_>>>() else { return };
    let heading = "claude | codex | opencode | embedded |\n|---|---|---|---|---|\n";
    let mut page = format!("{HEAD}{FIGURES}| tokens | {heading}");
    for (row, situation) in SITUATIONS.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|(it, _)| it[row].as_str()).collect();
        let _ = writeln!(page, "| {} | {} |", situation.what, cells.join(" | "));
    }
    let _ = write!(page, "{WHY}{PAST}| budget | {heading}");
    for (row, (budget, answer)) in BUDGETS.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|(_, it)| it[row].as_str()).collect();
        let what = format!("{}, answers of {}", grouped(*budget), grouped(*answer));
        let _ = writeln!(page, "| {what} | {} |", cells.join(" | "));
    }
    page.push_str(SIDE_BY_SIDE);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures.md");
    if std::env::var_os("BLUEFLAME_WRITE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "docs/figures.md is not what is true, but this is:\n{page}");
}

const HEAD: &str = "\
# Whose tokens count

The gateway counts what each answer of the model has cost, in the figures that the
provider sends. Budgets, `blueflame cost` and the summary go by that alone. What an
agent program says of itself is kept beside it (`own_usage` in an attempt's
`result.json`) and decides nothing.

This page is written by a test with the real programs, which fails when it is not
true any more:

```console
$ BLUEFLAME_WRITE_DOCS=1 cargo test -p blueflame --test agents figures
```

";

const FIGURES: &str = "\
## The gateway's figures and theirs

First what the gateway counted, then what the program says: input, output and cached
input together.

";

const WHY: &str = "
Why they differ:

- The gateway hears every answer, whatever becomes of the run. **codex** adds its tokens
  up at the end of its turn, and says nothing of one that was refused, stopped or broke
  off. **opencode** says what each answer has cost once the answer and its tool calls are
  over, so one that is stopped in a call is missing. **claude** and the embedded agent
  still say what they have used when they are asked to stop.
- An answer that breaks off has no last figure of its provider, and one of a server that
  sends no figures has none at all. The gateway estimates it from what went by, rather
  too much than too little, each time it is asked for again: a budget is not stretched
  by a bad line. claude and opencode leave such answers out;
  the embedded agent counts what it had been told at their beginning.
- What the gateway calls output has in it what codex and opencode list as reasoning, as
  the provider charges it. Input that was cached is never counted twice: codex and chat
  completions count it within the input, Anthropic beside it.
- Requests for titles, summaries and sub-agents, which some programs leave out of their
  figures, are switched off. If one is made all the same, the gateway counts it.

The test holds them to this: no program may ever say that it used more than the gateway
has counted.
";

const PAST: &str = "
## How far a budget is passed

The gateway refuses the request that comes after the limit was reached. What an answer
will cost is known when it is over, so the one that crosses the limit is paid for: a
budget is passed by less than one answer. What was spent, in how many requests:

";

const SIDE_BY_SIDE: &str = "
Requests that an agent makes side by side are let go only while all of them together, at
their dearest, fit into the budget; so it is one answer at most, however many run. With
several agents the session lends each of them a part of what is left, and each can pass
its part by one answer ([ADR 007](adr/007-budgets-in-slices.md)).
";

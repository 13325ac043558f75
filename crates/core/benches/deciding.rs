//! What deciding costs, and how it grows with the plan and the history.
//!
//! `cargo bench -p blueflame-core --bench deciding`. The history that is
//! replayed has 100,000 events, or as many as `BLUEFLAME_BENCH_EVENTS` says.

use std::collections::BTreeMap;
use std::hint::black_box;

use blueflame_core::decide::{Action, decide};
use blueflame_core::event::{Event, Work};
use blueflame_core::forecast::Estimates;
use blueflame_core::gate::{Answer, Gate, PlanAnswer};
use blueflame_core::ids::{AgentId, ExecutorName, GroupName, Oid, SessionId, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::money::{Budget, Spend};
use blueflame_core::outcome::{Outcome, Product};
use blueflame_core::plan::{Plan, TaskSpec};
use blueflame_core::rules::{PerRole, Rules, WaveMode};
use blueflame_core::state::State;
use blueflame_core::state::task::Step;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;

const SIZES: [usize; 3] = [10, 1_000, 100_000];
const WORKERS: u32 = 8;

fn at(second: usize) -> Timestamp {
    let second = i64::try_from(second).unwrap_or(0);
    Timestamp::from_second(1_770_000_000 + second).expect("a moment of this century")
}

fn rules() -> Rules {
    let claude = || vec![ExecutorName::new("claude").expect("a plain word")];
    Rules {
        workers: WORKERS,
        validators: WORKERS,
        memory_per_agent_mb: None,
        max_retries: u32::MAX,
        max_wave_cycles: 100,
        session_budget: Budget::Tokens(1 << 60),
        agent_budgets: PerRole::default(),
        warn_percent: 80,
        waves: WaveMode::Strict,
        executors: PerRole {
            planner: claude(),
            worker: claude(),
            validator: claude(),
            merger: claude(),
        },
        accounts: BTreeMap::new(),
        executor_caps: BTreeMap::new(),
        publish: true,
        hooks: Vec::new(),
        estimates: Estimates::default(),
    }
}

/// Blocks of ten tasks: one that four others fan out from, a chain behind the
/// last of these, and one that joins the chain. Blocks form groups, groups
/// build on earlier ones, and every fifth task wants its whole directory.
fn plan(size: usize) -> Plan {
    let id = |number: usize| TaskId::new(format!("task-{number:06}")).expect("a plain word");
    let tasks = (0..size).map(|number| {
        let (block, place) = (number / 10, number % 10);
        let first = block * 10;
        let needs: Vec<usize> = match place {
            0 if block % 4 == 3 => vec![first - 10],
            0 => vec![],
            1..=4 => vec![first],
            9 => (first + 5..first + 9).collect(),
            _ => vec![number - 1],
        };
        let file = if number.is_multiple_of(5) {
            format!("src/part-{block}")
        } else {
            format!("src/part-{block}/file-{place}.rs")
        };
        TaskSpec {
            id: id(number),
            title: "one of many".into(),
            description: "as agreed".into(),
            priority: u32::try_from(number % 3).unwrap_or(0),
            group: GroupName::new(format!("group-{}", block / 3)).expect("a plain word"),
            dependencies: needs.into_iter().map(id).collect(),
            file_locks: vec![LockPath::new(&file).expect("a plain path")],
            acceptance: Vec::new(),
            risk: None,
            estimate_minutes: None,
            model: None,
            executor: None,
        }
    });
    Plan { tasks: tasks.collect() }
}

/// A plan whose last task needs all the others, as a final check would.
fn join(size: usize) -> Plan {
    let mut plan = plan(size);
    for task in &mut plan.tasks {
        task.dependencies.clear();
    }
    let needs = plan.tasks[..size - 1].iter().map(|task| task.id.clone()).collect();
    plan.tasks[size - 1].dependencies = needs;
    plan.tasks[size - 1].group = plan.tasks[0].group.clone();
    plan
}

/// A session without accidents, and its journal.
struct Session {
    state: State,
    journal: Vec<(Timestamp, Event)>,
    agents: u32,
}

impl Session {
    fn begin(plan: Plan) -> Session {
        let first = Event::SessionStarted {
            session: SessionId::new("ses-20260202-024000").expect("a well-formed id"),
            goal: "a great many things".into(),
            rules: Box::new(rules()),
            config: "original".into(),
            plan: Some(plan),
            weaker: Vec::new(),
        };
        let state = State::begin(at(0), &first).expect("a plan without contradictions");
        let mut session = Session { state, journal: vec![(at(0), first)], agents: 0 };
        session.settle();
        session.record(Event::GateAnswered {
            gate: Gate::Plan,
            answer: Answer::Plan(PlanAnswer::Approve),
        });
        session.settle();
        session
    }

    fn record(&mut self, event: Event) {
        let now = at(self.journal.len());
        self.state.apply(now, &event).expect("an event that makes sense");
        self.journal.push((now, event));
    }

    /// Does what there is to do, and lists it.
    fn settle(&mut self) {
        loop {
            let actions = decide(&self.state);
            let intents: Vec<Event> = actions
                .iter()
                .filter_map(|action| {
                    self.agents += u32::from(matches!(action, Action::Spawn { .. }));
                    action.intent(self.agents, "original")
                })
                .collect();
            if intents.is_empty() {
                return;
            }
            for intent in intents {
                self.record(intent);
            }
        }
    }

    /// The agent that has been at work for longest ends well.
    fn finish_one(&mut self) -> bool {
        let live = self.state.crew.live();
        let Some((agent, Work::Develop { task, .. })) =
            live.iter().next().map(|(id, agent)| (id.clone(), agent.work.clone()))
        else {
            return false;
        };
        let commit = Oid::new(format!("{:040x}", self.agents)).expect("forty digits");
        let outcome = Outcome::Finished { product: Product::Commit(commit) };
        self.record(Event::AgentExited { agent, outcome, spend: Spend::default() });
        self.settle();
        self.record(Event::InspectionFinished { task, violations: Vec::new() });
        self.settle();
        true
    }

    /// A plan, half of it done.
    fn half_done(plan: Plan) -> Session {
        let size = plan.tasks.len();
        let mut session = Session::begin(plan);
        while session.state.board.count(Step::Done) < size / 2 {
            assert!(session.finish_one(), "somebody is at work");
        }
        session
    }

    /// A worker ends for nothing, and another one takes its place.
    fn turn_over(&mut self) {
        let agent: Option<AgentId> = self.state.crew.live().keys().next().cloned();
        let agent = agent.expect("somebody is at work");
        let outcome = Outcome::NoOp;
        let now = at(1);
        let exit = Event::AgentExited { agent, outcome, spend: Spend::default() };
        self.state.apply(now, &exit).expect("it is at work");
        for action in decide(&self.state) {
            self.agents += 1;
            let claim = action.intent(self.agents, "original").expect("a worker is started");
            self.state.apply(now, &claim).expect("its place is free");
        }
    }
}

/// A decision with work to give out, halfway through development.
fn decision(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide");
    for size in SIZES {
        let mut session = Session::half_done(plan(size));
        let agent = session.state.crew.live().keys().next().cloned();
        let exit = Event::AgentExited {
            agent: agent.expect("somebody is at work"),
            outcome: Outcome::NoOp,
            spend: Spend::default(),
        };
        session.record(exit);
        assert_eq!(decide(&session.state).len(), 1, "one place is free");
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| decide(black_box(&session.state)));
        });
    }
    group.finish();
}

/// Two events and the decision between them: one agent for another.
fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("exit, decide, claim");
    for size in SIZES {
        let mut session = Session::half_done(plan(size));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| session.turn_over());
        });
    }
    group.finish();
}

/// The same where one task needs all the others: what concerns any of them
/// concerns it.
fn step_with_a_join(c: &mut Criterion) {
    let mut group = c.benchmark_group("exit, decide, claim beside a join");
    for size in SIZES {
        let mut session = Session::half_done(join(size));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| session.turn_over());
        });
    }
    group.finish();
}

/// A decision that finds every file taken and looks in vain through all tasks.
fn crowded(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide with every file taken");
    for size in SIZES {
        let mut plan = plan(size);
        for task in &mut plan.tasks {
            task.dependencies.clear();
            task.file_locks = vec![LockPath::new("src/lib.rs").expect("a plain path")];
        }
        let session = Session::begin(plan);
        assert_eq!(session.state.crew.live().len(), 1);
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| decide(black_box(&session.state)));
        });
    }
    group.finish();
}

/// Putting a plan on the board.
fn planning(c: &mut Criterion) {
    let mut group = c.benchmark_group("approve a plan");
    group.sample_size(10);
    for size in SIZES {
        group.throughput(Throughput::Elements(size as u64));
        let session = Session::begin(plan(size));
        let until_approved = session.journal.iter().take(3).cloned().collect::<Vec<_>>();
        assert!(matches!(until_approved[2].1, Event::GateAnswered { .. }));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| {
                let history = until_approved.iter().map(|(at, event)| (*at, event));
                State::replay(history).expect("it was accepted before")
            });
        });
    }
    group.finish();
}

/// Folding a whole history, as a restarted orchestrator does.
fn replay(c: &mut Criterion) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark has no other input")]
    let wanted = std::env::var("BLUEFLAME_BENCH_EVENTS");
    let wanted: usize = wanted.ok().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    // A task without accidents makes four events.
    let mut session = Session::begin(plan((wanted / 4 + 10).next_multiple_of(10)));
    while session.journal.len() < wanted {
        assert!(session.finish_one(), "somebody is at work");
    }
    let mut group = c.benchmark_group("replay");
    group.sample_size(10);
    group.throughput(Throughput::Elements(session.journal.len() as u64));
    group.bench_function(BenchmarkId::from_parameter(session.journal.len()), |b| {
        b.iter(|| {
            let history = session.journal.iter().map(|(at, event)| (*at, event));
            State::replay(history).expect("it was accepted before")
        });
    });
    group.finish();
}

criterion_group!(benches, decision, crowded, step, step_with_a_join, planning, replay);
criterion_main!(benches);

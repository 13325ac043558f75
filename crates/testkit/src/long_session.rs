//! A session without accidents, as long as anybody likes: for what is measured at
//! some point of one.

use std::collections::BTreeMap;

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
use jiff::Timestamp;

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
pub fn plan(size: usize) -> Plan {
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
pub fn join(size: usize) -> Plan {
    let mut plan = plan(size);
    for task in &mut plan.tasks {
        task.dependencies.clear();
    }
    let needs = plan.tasks[..size - 1].iter().map(|task| task.id.clone()).collect();
    plan.tasks[size - 1].dependencies = needs;
    plan.tasks[size - 1].group = plan.tasks[0].group.clone();
    plan
}

/// A session, and its journal.
#[derive(Debug)]
pub struct LongSession {
    pub state: State,
    pub journal: Vec<(Timestamp, Event)>,
    agents: u32,
}

impl LongSession {
    pub fn begin(plan: Plan) -> LongSession {
        let first = Event::SessionStarted {
            session: SessionId::new("ses-20260202-024000").expect("a well-formed id"),
            goal: "a great many things".into(),
            rules: Box::new(rules()),
            config: "original".into(),
            plan: Some(plan),
            weaker: Vec::new(),
        };
        let state = State::begin(at(0), &first).expect("a plan without contradictions");
        let mut session = LongSession { state, journal: vec![(at(0), first)], agents: 0 };
        session.settle();
        session.record(Event::GateAnswered {
            gate: Gate::Plan,
            answer: Answer::Plan(PlanAnswer::Approve),
        });
        session.settle();
        session
    }

    pub fn record(&mut self, event: Event) {
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
    pub fn finish_one(&mut self) -> bool {
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
    pub fn half_done(plan: Plan) -> LongSession {
        let size = plan.tasks.len();
        let mut session = LongSession::begin(plan);
        while session.state.board.count(Step::Done) < size / 2 {
            assert!(session.finish_one(), "somebody is at work");
        }
        session
    }

    /// As many events as are wanted, or a few more.
    pub fn of_events(wanted: usize) -> LongSession {
        // A task makes four of them.
        let mut session = LongSession::begin(plan((wanted / 4 + 10).next_multiple_of(10)));
        while session.journal.len() < wanted {
            assert!(session.finish_one(), "somebody is at work");
        }
        session
    }

    /// A worker ends for nothing, and its place is free.
    pub fn free_a_place(&mut self) {
        let agent = self.state.crew.live().keys().next().cloned();
        self.record(Event::AgentExited {
            agent: agent.expect("somebody is at work"),
            outcome: Outcome::NoOp,
            spend: Spend::default(),
        });
    }

    /// A worker ends for nothing, and another one takes its place.
    pub fn turn_over(&mut self) {
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

//! A session as a story: a test says what happens, the core says what it does.
//!
//! Every fact is one call. After each of them the harness does what the shell
//! does: it asks the core what to do and records the intents, until there is
//! nothing more to do. What was done comes back as short sentences, so a test
//! can state all of it. At every rest the journal is replayed and must give
//! the same state.

use blueflame_core::decide::{Action, decide, was_decided};
use blueflame_core::event::{
    Event, FoldResult, LandResult, Process, PublishResult, VerifyResult, Work,
};
use blueflame_core::gate::{Answer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer};
use blueflame_core::ids::{AgentId, ChangesetId, SessionId, TaskId};
use blueflame_core::money::Spend;
use blueflame_core::outcome::{Outcome, Product, Verdict};
use blueflame_core::plan::{Plan, TaskSpec};
use blueflame_core::rules::Rules;
use blueflame_core::state::State;
use blueflame_core::state::merging::Publishing;
use blueflame_core::state::task::Task;
use jiff::Timestamp;

use crate::words::{self, cost, fold, oid, second, task_id};

/// What a story says when nothing was done.
pub const NOTHING: [&str; 0] = [];

/// More intents than any of these stories needs between two facts.
const RESTLESS: usize = 1_000;

#[derive(Clone, Debug)]
pub struct Story {
    pub state: State,
    /// Seconds that passed without an event.
    pub idle: i64,
    /// Fingerprint of the configuration file as it is now.
    pub config: String,
    pub journal: Vec<(Timestamp, Event)>,
    agents: u32,
    folds: u32,
}

impl Story {
    /// A session with a plan of the person's own, up to the first question.
    pub fn begin(rules: Rules, tasks: impl Into<Vec<TaskSpec>>) -> Story {
        Story::start(rules, Some(Plan { tasks: tasks.into() }))
    }

    /// A session whose plan is a planner's to make.
    pub fn to_be_planned(rules: Rules) -> Story {
        Story::start(rules, None)
    }

    /// A session in its first development wave.
    pub fn developing(rules: Rules, tasks: impl Into<Vec<TaskSpec>>) -> Story {
        let mut story = Story::begin(rules, tasks);
        story.approves_the_plan();
        story
    }

    fn start(rules: Rules, plan: Option<Plan>) -> Story {
        let first = Event::SessionStarted {
            session: SessionId::new("ses-20260202-024000").expect("a well-formed id"),
            goal: "tell a story".into(),
            rules: Box::new(rules),
            config: "original".into(),
            plan,
            weaker: Vec::new(),
        };
        let state = State::begin(second(0), &first).expect("a plan without contradictions");
        let mut story = Story {
            state,
            idle: 0,
            config: "original".into(),
            journal: vec![(second(0), first)],
            agents: 0,
            folds: 0,
        };
        story.settle();
        story
    }

    // What happens.

    /// Any fact at all, and what is done about it.
    pub fn fact(&mut self, event: Event) -> Vec<String> {
        self.record(event);
        self.settle()
    }

    /// An event that cannot be: says why, and that it left no trace.
    pub fn refuses(&mut self, event: &Event) -> String {
        let before = self.state.clone();
        let refusal = self.state.apply(self.now(), event);
        let why = refusal.expect_err("an event that makes no sense here was accepted");
        assert_eq!(self.state, before, "a refused event left a trace: {event:?}");
        why.why
    }

    /// A worker ends with a commit.
    pub fn builds(&mut self, task: &str) -> Vec<String> {
        let number = self.agents;
        self.exits(task, Outcome::Finished { product: Product::Commit(oid(number)) })
    }

    pub fn passes_inspection(&mut self, task: &str) -> Vec<String> {
        self.fact(Event::InspectionFinished { task: task_id(task), violations: Vec::new() })
    }

    /// A worker ends well and its work is in order.
    pub fn finishes(&mut self, task: &str) -> Vec<String> {
        [self.builds(task), self.passes_inspection(task)].concat()
    }

    pub fn is_accepted(&mut self, task: &str) -> Vec<String> {
        self.fact(Event::AcceptanceFinished { task: task_id(task), failures: Vec::new() })
    }

    pub fn fails_acceptance(&mut self, task: &str, why: &str) -> Vec<String> {
        self.fact(Event::AcceptanceFinished { task: task_id(task), failures: vec![why.into()] })
    }

    pub fn is_judged(&mut self, task: &str, pass: bool, notes: &str) -> Vec<String> {
        let verdict = Verdict { pass, notes: notes.into(), issues: Vec::new() };
        self.exits(task, Outcome::Finished { product: Product::Verdict(verdict) })
    }

    /// Acceptance commands and validator both find it good.
    pub fn passes(&mut self, task: &str) -> Vec<String> {
        [self.is_accepted(task), self.is_judged(task, true, "good")].concat()
    }

    /// The validator finds fault with it.
    pub fn is_disputed(&mut self, task: &str) -> Vec<String> {
        [self.is_accepted(task), self.is_judged(task, false, "bad")].concat()
    }

    /// An agent ends without having done its work. `who` is a task, `planner`
    /// or `merger`.
    pub fn fails(&mut self, who: &str, outcome: Outcome) -> Vec<String> {
        self.exits(who, outcome)
    }

    pub fn exits(&mut self, who: &str, outcome: Outcome) -> Vec<String> {
        let agent = self.agent(who);
        self.fact(Event::AgentExited { agent, outcome, spend: Spend::default() })
    }

    pub fn proposes(&mut self, tasks: impl Into<Vec<TaskSpec>>) -> Vec<String> {
        let plan = Plan { tasks: tasks.into() };
        self.exits("planner", Outcome::Finished { product: Product::Plan(plan) })
    }

    pub fn starts(&mut self, who: &str) -> Vec<String> {
        let process = Process { pid: 1, start_time: 1, boot_id: "here".into() };
        self.fact(Event::AgentStarted { agent: self.agent(who), process, skills: Vec::new() })
    }

    /// Its running total, in micro-dollars and tokens alike.
    pub fn has_spent(&mut self, who: &str, amount: u64) -> Vec<String> {
        self.fact(Event::UsageReported { agent: self.agent(who), spend: cost(amount) })
    }

    pub fn wants_more(&mut self, who: &str) -> Vec<String> {
        self.fact(Event::GrantWanted { agent: self.agent(who) })
    }

    /// The changeset whose turn it is folds without a conflict.
    pub fn folds(&mut self) -> Vec<String> {
        let tasks = self.current().tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join("+");
        self.folds_to(&tasks)
    }

    /// It folds to this change.
    pub fn folds_to(&mut self, patch: &str) -> Vec<String> {
        self.folds += 1;
        let result = FoldResult::Folded(fold(0xf000 + self.folds, patch));
        self.fact(Event::FoldFinished { changeset: self.changeset(), result })
    }

    pub fn conflicts(&mut self) -> Vec<String> {
        let result = FoldResult::Conflict { files: vec!["src/lib.rs".into()] };
        self.fact(Event::FoldFinished { changeset: self.changeset(), result })
    }

    pub fn verifies(&mut self) -> Vec<String> {
        self.verifies_by(&[])
    }

    /// These commands pass.
    pub fn verifies_by(&mut self, commands: &[&str]) -> Vec<String> {
        let commands = commands.iter().map(|&it| it.to_owned()).collect();
        let (changeset, result) = (self.changeset(), VerifyResult::Passed);
        self.fact(Event::VerifyFinished { changeset, result, commands })
    }

    pub fn fails_to_verify(&mut self, culprit: Option<&str>) -> Vec<String> {
        let culprit = culprit.map(task_id);
        let result = VerifyResult::Failed { culprit, evidence: "a test failed".into() };
        let (changeset, commands) = (self.changeset(), Vec::new());
        self.fact(Event::VerifyFinished { changeset, result, commands })
    }

    pub fn lands(&mut self) -> Vec<String> {
        let changeset = self.changeset();
        self.fact(Event::LandFinished { changeset, result: LandResult::Landed })
    }

    pub fn base_moved(&mut self) -> Vec<String> {
        let changeset = self.changeset();
        self.fact(Event::LandFinished { changeset, result: LandResult::BaseMoved })
    }

    pub fn publishes(&mut self, result: PublishResult) -> Vec<String> {
        let Publishing::Running { commit } = self.state.publishing.clone() else {
            panic!("nothing is being published: {:?}", self.state.publishing)
        };
        self.fact(Event::PublishFinished { commit, result })
    }

    /// Folds, verifies, is approved, lands and is published.
    pub fn merges(&mut self) -> Vec<String> {
        let mut done = [self.folds(), self.verifies(), self.approves(), self.lands()].concat();
        if matches!(self.state.publishing, Publishing::Running { .. }) {
            done.extend(self.publishes(PublishResult::Published));
        }
        done
    }

    // The person.

    pub fn answers(&mut self, answer: Answer) -> Vec<String> {
        let gate = self.gate();
        self.fact(Event::GateAnswered { gate, answer })
    }

    pub fn approves_the_plan(&mut self) -> Vec<String> {
        self.answers(Answer::Plan(PlanAnswer::Approve))
    }

    pub fn approves(&mut self) -> Vec<String> {
        self.answers(Answer::Changeset(ChangesetAnswer::Approve))
    }

    pub fn rejects(&mut self, reason: &str) -> Vec<String> {
        self.answers(Answer::Changeset(ChangesetAnswer::Reject { reason: reason.into() }))
    }

    pub fn skips(&mut self) -> Vec<String> {
        self.answers(Answer::Changeset(ChangesetAnswer::Skip))
    }

    /// On to the next cycle, giving these tasks another chance.
    pub fn continues(&mut self, retry: &[&str]) -> Vec<String> {
        let retry = retry.iter().map(|task| task_id(task)).collect();
        self.answers(Answer::Session(SessionAnswer::Continue { retry }))
    }

    pub fn asks_to_stop(&mut self) -> Vec<String> {
        self.fact(Event::StopRequested)
    }

    /// Another orchestrator takes over.
    pub fn resumes(&mut self) -> Vec<String> {
        self.fact(Event::SessionResumed { repaired_bytes: None, verify: None })
    }

    // What can be seen.

    pub fn task(&self, task: &str) -> &Task {
        self.state.board.get(&task_id(task)).unwrap_or_else(|| panic!("there is no task {task}"))
    }

    /// Where a task stands, in a word or two.
    pub fn phase(&self, task: &str) -> String {
        words::phase(&self.task(task).phase)
    }

    /// Where several tasks stand.
    pub fn phases<const N: usize>(&self, tasks: [&str; N]) -> [String; N] {
        tasks.map(|task| self.phase(task))
    }

    /// What a task's history says, newest last.
    pub fn history(&self, task: &str) -> Vec<String> {
        let entries = self.task(task).history.entries().iter();
        entries
            .map(|entry| format!("#{} {:?}: {}", entry.attempt, entry.result, entry.notes))
            .collect()
    }

    pub fn gate(&self) -> Gate {
        self.state.gate.clone().expect("a question is open")
    }

    pub fn changeset(&self) -> ChangesetId {
        self.current().planned.id.clone()
    }

    fn current(&self) -> &blueflame_core::state::merging::Changeset {
        self.state.merging.current().expect("a changeset has its turn")
    }

    /// The agent at work on a task, or the `planner` or `merger`.
    pub fn agent(&self, who: &str) -> AgentId {
        let wanted = |work: &Work| match work {
            Work::Plan => who == "planner",
            Work::Resolve { .. } => who == "merger",
            Work::Develop { task, .. } | Work::Validate { task, .. } => task.as_str() == who,
        };
        let mut found = self.state.crew.live().iter().filter(|(_, agent)| wanted(&agent.work));
        let (id, _) = found.next().unwrap_or_else(|| panic!("nobody is at work on {who}"));
        id.clone()
    }

    pub fn now(&self) -> Timestamp {
        second(i64::try_from(self.journal.len()).expect("a short story") + self.idle)
    }

    // How the story goes on.

    /// A fact that is told in one breath with the next.
    pub fn record(&mut self, event: Event) {
        let at = self.now();
        if let Err(illegal) = self.state.apply(at, &event) {
            panic!("{illegal}\n{event:?}");
        }
        self.journal.push((at, event));
    }

    /// An event after which nothing is done yet.
    pub fn silently(&mut self, event: Event) {
        self.record(event);
    }

    /// Does what there is to do, until there is nothing.
    fn settle(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        loop {
            let actions = decide(&self.state);
            let mut acted = false;
            for action in &actions {
                let number = self.agents + 1;
                let Some(intent) = action.intent(number, &self.config) else { continue };
                self.agents += u32::from(matches!(action, Action::Spawn { .. }));
                done.push(words::action(action, &self.state));
                assert!(was_decided(&self.state, &intent), "taken back meanwhile: {intent:?}");
                self.record(intent);
                acted = true;
            }
            if !acted {
                // Waiting leaves no trace, so it is what is left to say.
                done.extend(actions.iter().map(|action| words::action(action, &self.state)));
                break;
            }
            assert!(done.len() < RESTLESS, "the core never rests: {done:#?}");
        }
        let history = self.journal.iter().map(|(at, event)| (*at, event));
        let again = State::replay(history).expect("what was accepted is accepted again");
        assert_eq!(again.as_ref(), Some(&self.state), "a replay gives another state");
        done
    }
}

//! What to do next: a plain function of the state.
//!
//! The caller asks after every event, records the intent of each action, and
//! then performs it. Asked again before anything new has happened, the answer
//! is empty: everything that was asked for shows in the state as begun.

mod choice;
mod errand;
mod merge;
mod proof;
mod schedule;

use jiff::Timestamp;

use crate::event::{Deferral, End, Event, PassedOver, PlannedChangeset, Wave, Work};
use crate::gate::Gate;
use crate::hook::Occasion;
use crate::ids::{AgentId, ChangesetId, ExecutorName, Oid, TaskId};
use crate::money::Budget;
use crate::rules::WaveMode;
use crate::state::task::Step;
use crate::state::{PlanStep, Stage, State};

pub use proof::was_decided;
use schedule::Desk;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    StartCycle {
        cycle: u32,
    },
    StartValidation,
    Spawn {
        work: Work,
        executor: ExecutorName,
        cap: Budget,
        grant: Budget,
        passed_over: Vec<PassedOver>,
    },
    Grant {
        agent: AgentId,
        grant: Budget,
    },
    StopAgent {
        agent: AgentId,
    },
    /// Look the finished work over: paths, scope, secrets, commit format.
    Inspect {
        task: TaskId,
    },
    /// Run the acceptance commands on a clean checkout.
    Accept {
        task: TaskId,
    },
    PlanMerge {
        changesets: Vec<PlannedChangeset>,
    },
    Fold {
        changeset: ChangesetId,
        tasks: Vec<TaskId>,
    },
    Verify {
        changeset: ChangesetId,
    },
    Defer {
        changeset: ChangesetId,
        why: Deferral,
    },
    Land {
        changeset: ChangesetId,
    },
    /// Check the base and the landed work together.
    VerifyJoint {
        commit: Oid,
    },
    Publish {
        commit: Oid,
    },
    /// Run one of the person's own commands.
    RunHook {
        number: u32,
        occasion: Occasion,
    },
    Ask {
        gate: Gate,
    },
    /// Take a question back that answered itself.
    Withdraw {
        gate: Gate,
    },
    /// Nothing can be started before this moment; then report that the pause
    /// is over.
    WaitUntil {
        at: Timestamp,
    },
    /// Leave; the session can be resumed.
    Suspend,
    End {
        end: End,
    },
}

impl Action {
    /// The event to record before the action is performed. The number names
    /// a new agent; the fingerprint is that of the configuration file as it is
    /// now. Waiting leaves no trace.
    pub fn intent(&self, agent_number: u32, config: &str) -> Option<Event> {
        let event = match self.clone() {
            Action::StartCycle { cycle } => {
                Event::CycleStarted { cycle, config: config.to_owned() }
            }
            Action::StartValidation => Event::ValidationStarted,
            Action::Spawn { work, executor, cap, grant, passed_over } => {
                let agent = AgentId::from_number(work.role(), agent_number);
                Event::AgentClaimed { agent, work, executor, cap, grant, passed_over }
            }
            Action::Grant { agent, grant } => Event::Granted { agent, grant },
            Action::StopAgent { agent } => Event::StopSent { agent },
            Action::Inspect { task } => Event::InspectionStarted { task },
            Action::Accept { task } => Event::AcceptanceStarted { task },
            Action::PlanMerge { changesets } => Event::MergePlanned { changesets },
            Action::Fold { changeset, tasks } => Event::FoldStarted { changeset, tasks },
            Action::Verify { changeset } => Event::VerifyStarted { changeset },
            Action::Defer { changeset, why } => Event::ChangesetDeferred { changeset, why },
            Action::Land { changeset } => Event::LandStarted { changeset },
            Action::VerifyJoint { commit } => Event::JointVerifyStarted { commit },
            Action::Publish { commit } => Event::PublishStarted { commit },
            Action::RunHook { number, occasion } => Event::HookStarted { number, occasion },
            Action::Ask { gate } => Event::GateOpened { gate },
            Action::Withdraw { gate } => Event::GateWithdrawn { gate },
            Action::Suspend => Event::SessionSuspended,
            Action::End { end } => Event::SessionEnded { end },
            Action::WaitUntil { .. } => return None,
        };
        Some(event)
    }
}

pub fn decide(state: &State) -> Vec<Action> {
    if let Some(errand) = &state.errand {
        return errand::steps(state, errand);
    }
    if state.suspended || state.ended().is_some() {
        return Vec::new();
    }
    if state.stopping {
        return wind_down(state);
    }
    if state.crew.is_closed() && !state.crew.live().is_empty() {
        return stop_everyone(state);
    }
    let draft = match state.stage {
        Stage::Planning => plan(state),
        Stage::CycleDue => Draft::of(Action::StartCycle { cycle: state.cycle + 1 }),
        Stage::Wave(Wave::Development) => develop(state),
        Stage::Wave(Wave::Validation) => validate(state),
        Stage::Wave(Wave::Merge) => merge::merge(state),
        Stage::Closing(end) | Stage::Ended(end) => Draft::of(Action::End { end }),
    };
    draft.with_hooks(state).with_one_question_at_a_time(state)
}

/// What one part of the session wants: things to do, and things to ask.
#[derive(Debug, Default)]
struct Draft {
    actions: Vec<Action>,
    questions: Vec<Gate>,
}

impl Draft {
    fn of(action: Action) -> Self {
        Draft { actions: vec![action], questions: Vec::new() }
    }

    fn question(gate: Gate) -> Self {
        Draft { actions: Vec::new(), questions: vec![gate] }
    }

    fn or_else(self, next: impl FnOnce() -> Draft) -> Self {
        if self.actions.is_empty() && self.questions.is_empty() { next() } else { self }
    }

    /// Hooks are run beside everything else, one after the other, and the
    /// session does not end before they have.
    fn with_hooks(mut self, state: &State) -> Self {
        if !state.hooks.is_idle() {
            self.actions.retain(|action| !matches!(action, Action::End { .. }));
        }
        if let Some((number, occasion)) = state.hooks.next() {
            self.actions.push(Action::RunHook { number, occasion: occasion.clone() });
        }
        self
    }

    /// A question that nobody has any more is taken back before anything
    /// else, so that no answer can come to it.
    fn with_one_question_at_a_time(mut self, state: &State) -> Vec<Action> {
        match &state.gate {
            Some(open) if !self.questions.contains(open) => {
                vec![Action::Withdraw { gate: open.clone() }]
            }
            Some(_) => self.actions,
            None => {
                let first = self.questions.into_iter().next();
                self.actions.extend(first.map(|gate| Action::Ask { gate }));
                self.actions
            }
        }
    }
}

fn stop_everyone(state: &State) -> Vec<Action> {
    let running = state.crew.live().iter().filter(|(_, agent)| !agent.stop_sent);
    running.map(|(id, _)| Action::StopAgent { agent: id.clone() }).collect()
}

/// Leaves once nothing of ours is under way that a person could be surprised
/// by afterwards.
fn wind_down(state: &State) -> Vec<Action> {
    if !state.crew.live().is_empty() {
        stop_everyone(state)
    } else if state.is_landing() || state.hooks.is_any_running() {
        Vec::new()
    } else {
        vec![Action::Suspend]
    }
}

fn plan(state: &State) -> Draft {
    match &state.planning.step {
        PlanStep::Wanted if state.crew.is_closed() => Draft::of(Action::End { end: End::Budget }),
        PlanStep::Wanted => {
            let mut desk = Desk::open(state);
            desk.spawn_planner();
            desk.close()
        }
        PlanStep::Running => Desk::open(state).close(),
        PlanStep::Proposed(plan) if plan.tasks.is_empty() && state.cycle == 0 => {
            Draft::of(Action::End { end: End::NothingToDo })
        }
        PlanStep::Proposed(_) => Draft::question(Gate::Plan),
        PlanStep::Approved => Draft::default(),
    }
}

fn develop(state: &State) -> Draft {
    let mut desk = Desk::open(state);
    desk.inspect();
    desk.spawn_workers();
    if state.rules.waves == WaveMode::Pipelined {
        desk.validate();
    }
    desk.close().or_else(|| {
        let quiet = is_quiet(state, &[Step::Working, Step::Built, Step::Inspecting])
            && (state.board.is_empty(Step::Ready) || state.crew.is_closed());
        match state.rules.waves {
            _ if !quiet => Draft::default(),
            WaveMode::Strict if !state.board.is_empty(Step::Done) && !state.crew.is_closed() => {
                Draft::of(Action::StartValidation)
            }
            WaveMode::Pipelined if !is_validation_over(state) => Draft::default(),
            WaveMode::Strict | WaveMode::Pipelined => merge::begin(state),
        }
    })
}

fn validate(state: &State) -> Draft {
    let mut desk = Desk::open(state);
    desk.validate();
    desk.close()
        .or_else(|| if is_validation_over(state) { merge::begin(state) } else { Draft::default() })
}

/// Whether no task stands at any of these steps.
fn is_quiet(state: &State, steps: &[Step]) -> bool {
    steps.iter().all(|&step| state.board.is_empty(step))
}

/// With the budget closed, what no validator has seen stays as it is.
fn is_validation_over(state: &State) -> bool {
    is_quiet(state, &[Step::Accepting, Step::Validating, Step::Disputed, Step::Unjudged])
        && (state.crew.is_closed() || is_quiet(state, &[Step::Done, Step::Accepted]))
}

/// The cycle has done what it could: end, or ask the person.
fn cycle_over(state: &State) -> Draft {
    let open =
        [Step::Waiting, Step::Ready, Step::Requeued, Step::Done, Step::Accepted, Step::Validated];
    let lost = [Step::Failed, Step::Blocked, Step::Dropped];
    let end = if is_quiet(state, &open) {
        if is_quiet(state, &lost) { End::Complete } else { End::Incomplete }
    } else if state.crew.is_closed() {
        End::Budget
    } else if state.cycle >= state.rules.max_wave_cycles {
        End::CycleLimit
    } else {
        return Draft::question(Gate::Session);
    };
    Draft::of(Action::End { end })
}

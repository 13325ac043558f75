//! What to do next: a plain function of the state.
//!
//! The caller asks after every event, records the intent of each action, and
//! then performs it. Asked again before anything new has happened, the answer
//! is empty: everything that was asked for shows in the state as begun.

mod merge;
mod schedule;

use jiff::Timestamp;

use crate::event::{Deferral, End, Event, PlannedChangeset, Wave, Work};
use crate::gate::Gate;
use crate::ids::{AgentId, ChangesetId, ExecutorName, Oid, TaskId};
use crate::money::Budget;
use crate::rules::WaveMode;
use crate::state::task::Step;
use crate::state::{PlanStep, Stage, State};

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
    Publish {
        commit: Oid,
    },
    Ask {
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
            Action::Spawn { work, executor, cap, grant } => {
                let agent = AgentId::from_number(work.role(), agent_number);
                Event::AgentClaimed { agent, work, executor, cap, grant }
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
            Action::Publish { commit } => Event::PublishStarted { commit },
            Action::Ask { gate } => Event::GateOpened { gate },
            Action::Suspend => Event::SessionSuspended,
            Action::End { end } => Event::SessionEnded { end },
            Action::WaitUntil { .. } => return None,
        };
        Some(event)
    }
}

pub fn decide(state: &State) -> Vec<Action> {
    if state.suspended || state.ended().is_some() {
        return Vec::new();
    }
    if state.stopping {
        return wind_down(state);
    }
    if state.crew.is_closed() && !state.crew.live().is_empty() {
        return stop_everyone(state);
    }
    match state.stage {
        Stage::Planning => plan(state),
        Stage::CycleDue => vec![Action::StartCycle { cycle: state.cycle + 1 }],
        Stage::Wave(Wave::Development) => develop(state),
        Stage::Wave(Wave::Validation) => validate(state),
        Stage::Wave(Wave::Merge) => merge::merge(state),
        Stage::Closing(end) => vec![Action::End { end }],
        Stage::Ended(_) => Vec::new(),
    }
}

fn stop_everyone(state: &State) -> Vec<Action> {
    let running = state.crew.live().iter().filter(|(_, agent)| !agent.stop_sent);
    running.map(|(id, _)| Action::StopAgent { agent: id.clone() }).collect()
}

fn wind_down(state: &State) -> Vec<Action> {
    if state.crew.live().is_empty() { vec![Action::Suspend] } else { stop_everyone(state) }
}

fn ask(state: &State, gate: Gate) -> Vec<Action> {
    if state.gate.is_none() { vec![Action::Ask { gate }] } else { Vec::new() }
}

fn plan(state: &State) -> Vec<Action> {
    match &state.planning.step {
        PlanStep::Wanted if state.crew.is_closed() => vec![Action::End { end: End::Budget }],
        PlanStep::Wanted => {
            let mut desk = Desk::open(state);
            desk.spawn_planner();
            desk.close()
        }
        PlanStep::Running => Desk::open(state).close(),
        PlanStep::Proposed(plan) if plan.tasks.is_empty() && state.cycle == 0 => {
            vec![Action::End { end: End::NothingToDo }]
        }
        PlanStep::Proposed(_) => ask(state, Gate::Plan),
        PlanStep::Approved => Vec::new(),
    }
}

fn develop(state: &State) -> Vec<Action> {
    let mut desk = Desk::open(state);
    desk.inspect();
    desk.spawn_workers();
    if state.rules.waves == WaveMode::Pipelined {
        desk.validate();
    }
    let actions = desk.close();
    let quiet = is_quiet(state, &[Step::Working, Step::Built, Step::Inspecting])
        && (state.board.is_empty(Step::Ready) || state.crew.is_closed());
    let next = if quiet && state.rules.waves == WaveMode::Strict {
        let to_validate = !state.board.is_empty(Step::Done) && !state.crew.is_closed();
        if to_validate { vec![Action::StartValidation] } else { merge::begin(state) }
    } else if quiet && is_validation_over(state) {
        merge::begin(state)
    } else {
        Vec::new()
    };
    if actions.is_empty() { next } else { actions }
}

fn validate(state: &State) -> Vec<Action> {
    let mut desk = Desk::open(state);
    desk.validate();
    let actions = desk.close();
    if actions.is_empty() && is_validation_over(state) { merge::begin(state) } else { actions }
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
fn cycle_over(state: &State) -> Vec<Action> {
    let board = &state.board;
    let open =
        [Step::Waiting, Step::Ready, Step::Requeued, Step::Done, Step::Accepted, Step::Validated];
    let lost = [Step::Failed, Step::Blocked, Step::Dropped];
    let end = if is_quiet(state, &open) {
        if lost.iter().all(|&step| board.is_empty(step)) { End::Complete } else { End::Incomplete }
    } else if state.crew.is_closed() {
        End::Budget
    } else if state.cycle >= state.rules.max_wave_cycles {
        End::CycleLimit
    } else {
        return ask(state, Gate::Session);
    };
    vec![Action::End { end }]
}

//! Who is started now, and on what.
//!
//! A [`Desk`] collects the actions of one decision and keeps account of what
//! they take: seats, files, memory and money. Tasks are served by priority;
//! one whose files are taken is passed over, and the next one may go.

use jiff::Timestamp;

use crate::event::Work;
use crate::gate::Gate;
use crate::hook::{Hook, Occasion};
use crate::ids::Role;
use crate::lock_path::LockPath;
use crate::state::State;
use crate::state::crew::Room;
use crate::state::hooks::HookStands;
use crate::state::merging::Changeset;
use crate::state::task::{Phase, Step};

use super::choice::{self, Choice, Engaged};
use super::{Action, Draft};

pub(super) struct Desk<'a> {
    state: &'a State,
    draft: Draft,
    room: Room,
    /// Agents that may still be started before memory runs short.
    seats: u64,
    /// Somebody will come to an end by itself and may leave money over.
    anyone_busy: bool,
    /// Something wanted money and there was none.
    short_of_money: bool,
    engaged: Engaged,
    /// Something wanted an agent while the provider asks for a pause until then.
    opens: Option<Timestamp>,
}

impl<'a> Desk<'a> {
    /// Opens with the requests of running agents, which go before new ones.
    pub(super) fn open(state: &'a State) -> Self {
        let live = state.crew.live().len() as u64;
        let mut desk = Desk {
            state,
            draft: Draft::default(),
            room: state.crew.room(),
            seats: state.seats_in_memory().saturating_sub(live),
            anyone_busy: state.crew.anyone_busy(),
            short_of_money: false,
            engaged: Engaged::now(state),
            opens: None,
        };
        desk.stop_doomed();
        desk.answer_requests();
        desk
    }

    /// Ends the agents of tasks that will have to be done again anyway.
    fn stop_doomed(&mut self) {
        for task in self.state.board.doomed() {
            let (Phase::Working { agent } | Phase::Validating { agent, .. }) = &task.phase else {
                continue;
            };
            let running = self.state.crew.live().get(agent).is_some_and(|agent| !agent.stop_sent);
            if running {
                self.draft.actions.push(Action::StopAgent { agent: agent.clone() });
                self.anyone_busy = true;
            }
        }
    }

    /// Agents that come to the end of their share get more, while there is
    /// some.
    fn answer_requests(&mut self) {
        let asking = self.state.crew.live().iter().filter(|(id, agent)| {
            let stops = Action::StopAgent { agent: (*id).clone() };
            agent.wants_grant && !agent.stop_sent && !self.draft.actions.contains(&stops)
        });
        for (id, agent) in asking.collect::<Vec<_>>() {
            match self.room.next_share(agent) {
                Some(grant) => {
                    self.draft.actions.push(Action::Grant { agent: id.clone(), grant });
                    self.anyone_busy = true;
                }
                None => self.short_of_money |= self.room.is_empty(),
            }
        }
    }

    pub(super) fn spawn_planner(&mut self) {
        self.spawn(Work::Plan);
    }

    pub(super) fn spawn_merger(&mut self, changeset: &Changeset) {
        self.spawn(Work::Resolve { changeset: changeset.planned.id.clone() });
    }

    pub(super) fn inspect(&mut self) {
        for task in self.state.board.queue(Step::Built) {
            self.draft.actions.push(Action::Inspect { task: task.spec.id.clone() });
        }
    }

    pub(super) fn spawn_workers(&mut self) {
        let board = &self.state.board;
        let mut free = (self.state.rules.workers as usize)
            .saturating_sub(self.state.crew.live_in(Role::Worker));
        let mut held: Vec<&LockPath> = board.held_locks();
        for task in board.queue(Step::Ready) {
            if free == 0 {
                return;
            }
            let locks = &task.spec.file_locks;
            if locks.iter().any(|lock| held.iter().any(|taken| lock.overlaps(taken))) {
                continue;
            }
            let work = Work::Develop { task: task.spec.id.clone(), attempt: task.attempts + 1 };
            match self.spawn(work) {
                Spawned::Yes => {
                    free -= 1;
                    held.extend(locks);
                }
                // Another task may be for another executor.
                Spawned::NotByThese => {}
                Spawned::No => return,
            }
        }
    }

    /// Acceptance commands first, then validators; both take a seat in the
    /// validation wave. What only a person can deal with is asked about.
    pub(super) fn validate(&mut self) {
        let board = &self.state.board;
        if !self.state.crew.is_closed() && !self.is_held_by_hook() {
            let busy = board.count(Step::Accepting) + self.state.crew.live_in(Role::Validator);
            let mut free = (self.state.rules.validators as usize).saturating_sub(busy);
            for task in board.queue(Step::Done).take(free) {
                self.draft.actions.push(Action::Accept { task: task.spec.id.clone() });
                free -= 1;
            }
            for task in board.queue(Step::Accepted).take(free) {
                let work = Work::Validate { task: task.spec.id.clone(), attempt: task.attempts };
                if self.spawn(work) == Spawned::No {
                    break;
                }
            }
        }
        let unjudged = board.queue(Step::Unjudged);
        let disputed = board.queue(Step::Disputed);
        self.draft
            .questions
            .extend(unjudged.map(|task| Gate::ValidatorFailed(task.spec.id.clone())));
        self.draft
            .questions
            .extend(disputed.map(|task| Gate::ValidationFailed(task.spec.id.clone())));
    }

    /// Whether validation has to wait for the hook before it, which is run once
    /// in a cycle, when there is something to validate.
    fn is_held_by_hook(&mut self) -> bool {
        let State { rules, hooks, board, cycle, .. } = self.state;
        if !rules.hooks.contains(&Hook::PreValidation) {
            return false;
        }
        match hooks.before_validation(*cycle) {
            Some(HookStands::Ended(_)) => false,
            Some(HookStands::Due | HookStands::Running) => true,
            None if board.is_empty(Step::Done) && board.is_empty(Step::Accepted) => false,
            None => {
                if hooks.is_idle() {
                    let occasion = Occasion::ValidationDue { cycle: *cycle };
                    let number = hooks.next_number();
                    self.draft.actions.push(Action::RunHook { number, occasion });
                }
                true
            }
        }
    }

    /// Starts an agent if nothing stands against it.
    fn spawn(&mut self, work: Work) -> Spawned {
        if self.state.crew.is_closed() || self.seats == 0 {
            return Spawned::No;
        }
        let (executor, passed_over) = match choice::executor(self.state, &self.engaged, &work) {
            Choice::Take { executor, passed_over } => (executor, passed_over),
            Choice::Wait { until } => {
                self.opens = self.opens.into_iter().chain(until).min();
                return Spawned::NotByThese;
            }
        };
        let cap = *self.state.rules.agent_budgets.of(work.role());
        let Some(grant) = self.room.first_share(cap) else {
            self.short_of_money |= self.room.is_empty();
            return Spawned::No;
        };
        self.seats -= 1;
        self.engaged.one_more(&executor);
        self.anyone_busy = true;
        self.draft.actions.push(Action::Spawn { work, executor, cap, grant, passed_over });
        Spawned::Yes
    }

    /// Closes with what holds everything up: money, if nobody at work could
    /// still leave some over, or a pause.
    pub(super) fn close(mut self) -> Draft {
        if self.short_of_money && !self.anyone_busy && !self.state.crew.is_closed() {
            self.draft.questions.push(Gate::Budget);
        }
        if let Some(at) = self.opens {
            self.draft.actions.push(Action::WaitUntil { at });
        }
        self.draft
    }
}

/// Whether an agent is started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spawned {
    Yes,
    /// Not by any of the executors for that work, for now.
    NotByThese,
    /// No agent can be, whoever runs it.
    No,
}

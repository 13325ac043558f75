//! Who is started now, and on what.
//!
//! A [`Desk`] collects the actions of one decision and keeps account of what
//! they take: seats, files, memory and money. Tasks are served by priority;
//! one whose files are taken is passed over, and the next one may go.

use crate::event::Work;
use crate::gate::Gate;
use crate::ids::{ExecutorName, Role};
use crate::lock_path::LockPath;
use crate::money::Budget;
use crate::state::State;
use crate::state::crew::Room;
use crate::state::merging::Changeset;
use crate::state::task::Step;

use super::Action;

pub(super) struct Desk<'a> {
    state: &'a State,
    actions: Vec<Action>,
    room: Room,
    /// Agents that may still be started before memory runs short.
    seats: u64,
    /// Something wanted money and there was none.
    short_of_money: bool,
    /// Something wanted an agent while the provider asks for a pause.
    held_by_pause: bool,
}

impl<'a> Desk<'a> {
    /// Opens with the requests of running agents, which go before new ones.
    pub(super) fn open(state: &'a State) -> Self {
        let live = state.crew.live().len() as u64;
        let mut desk = Desk {
            state,
            actions: Vec::new(),
            room: state.crew.room(),
            seats: state.memory_holds.map_or(u64::MAX, |holds| holds.saturating_sub(live)),
            short_of_money: false,
            held_by_pause: false,
        };
        // Memory is never so short that nothing at all may run.
        if live == 0 {
            desk.seats = desk.seats.max(1);
        }
        for (id, agent) in state.crew.live().iter().filter(|(_, agent)| agent.wants_grant) {
            match desk.room.take(agent.grant, agent.cap) {
                Some(grant) => desk.actions.push(Action::Grant { agent: id.clone(), grant }),
                None => desk.short_of_money = true,
            }
        }
        desk
    }

    pub(super) fn spawn_planner(&mut self) {
        let failed = self.state.planning.executors_failed;
        let executor = self.executor(Role::Planner, None, failed);
        self.spawn(Work::Plan, executor);
    }

    pub(super) fn spawn_merger(&mut self, changeset: &Changeset) {
        let executor = self.executor(Role::Merger, None, changeset.mergers_failed);
        self.spawn(Work::Resolve { changeset: changeset.planned.id.clone() }, executor);
    }

    pub(super) fn inspect(&mut self) {
        for task in self.state.board.queue(Step::Built) {
            self.actions.push(Action::Inspect { task: task.spec.id.clone() });
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
            let executor =
                self.executor(Role::Worker, task.spec.executor.as_ref(), task.executors_failed);
            if !self.spawn(work, executor) {
                return;
            }
            free -= 1;
            held.extend(locks);
        }
    }

    /// Acceptance commands first, then validators; both take a seat in the
    /// validation wave. Verdicts that only a person can deal with are asked
    /// about one at a time.
    pub(super) fn validate(&mut self) {
        let board = &self.state.board;
        if !self.state.crew.is_closed() {
            let busy = board.count(Step::Accepting) + self.state.crew.live_in(Role::Validator);
            let mut free = (self.state.rules.validators as usize).saturating_sub(busy);
            for task in board.queue(Step::Accepted).take(free) {
                let work = Work::Validate { task: task.spec.id.clone(), attempt: task.attempts };
                // A second try goes to the next executor, if there is one.
                let failed = task.validator_tally.retries as usize;
                let executor = self.executor(Role::Validator, None, failed);
                if !self.spawn(work, executor) {
                    break;
                }
                free -= 1;
            }
            for task in board.queue(Step::Done).take(free) {
                self.actions.push(Action::Accept { task: task.spec.id.clone() });
            }
        }
        let unjudged = board
            .queue(Step::Unjudged)
            .map(|task| Gate::ValidatorFailed(task.spec.id.clone()))
            .next();
        let disputed = || {
            board
                .queue(Step::Disputed)
                .map(|task| Gate::ValidationFailed(task.spec.id.clone()))
                .next()
        };
        if let Some(gate) = unjudged.or_else(disputed) {
            self.ask(gate);
        }
    }

    /// The executor to use after some were found wanting; the last one is
    /// kept when there is nobody left to try.
    fn executor(
        &self,
        role: Role,
        chosen: Option<&ExecutorName>,
        failed: usize,
    ) -> Option<ExecutorName> {
        let configured = self.state.rules.executors.of(role);
        let mut chain: Vec<&ExecutorName> = chosen
            .into_iter()
            .chain(configured.iter().filter(|name| Some(*name) != chosen))
            .collect();
        chain.truncate(failed + 1);
        chain.pop().cloned()
    }

    /// Starts an agent if nothing stands against it; says whether it did.
    fn spawn(&mut self, work: Work, executor: Option<ExecutorName>) -> bool {
        let Some(executor) = executor else { return false };
        if self.state.crew.is_closed() || self.seats == 0 {
            return false;
        }
        if self.state.paused_until.is_some() {
            self.held_by_pause = true;
            return false;
        }
        let cap = *self.state.rules.agent_budgets.of(work.role());
        let Some(grant) = self.room.take(Budget::Unlimited, cap) else {
            self.short_of_money = true;
            return false;
        };
        self.seats -= 1;
        self.actions.push(Action::Spawn { work, executor, cap, grant });
        true
    }

    fn ask(&mut self, gate: Gate) {
        let asked = self.actions.iter().any(|action| matches!(action, Action::Ask { .. }));
        if self.state.gate.is_none() && !asked {
            self.actions.push(Action::Ask { gate });
        }
    }

    /// Closes with what holds everything up: money, if nobody at work could
    /// still leave some over, or a pause.
    pub(super) fn close(mut self) -> Vec<Action> {
        let nobody_busy = !self.state.crew.anyone_busy()
            && !self.actions.iter().any(|action| matches!(action, Action::Spawn { .. }));
        if self.short_of_money
            && nobody_busy
            && self.room.is_empty()
            && !self.state.crew.is_closed()
        {
            self.ask(Gate::Budget);
        }
        if let (true, Some(at)) = (self.held_by_pause, self.state.paused_until) {
            self.actions.push(Action::WaitUntil { at });
        }
        self.actions
    }
}

//! The person at the gates: mostly reasonable, sometimes not.

use std::collections::BTreeSet;

use blueflame_core::gate::{
    Answer, BudgetAnswer, ChangesetAnswer, Gate, PlanAnswer, SessionAnswer, ValidationAnswer,
    ValidatorAnswer,
};
use blueflame_core::ids::TaskId;
use blueflame_core::money::{Budget, Usd};
use blueflame_core::state::State;
use blueflame_core::state::task::Step;

use super::rng::Rng;
use super::scenario::{self, DEAREST_REQUEST, Temper};

pub fn answer(
    gate: &Gate,
    state: &State,
    temper: &Temper,
    rng: &mut Rng,
    taken: &mut BTreeSet<TaskId>,
) -> Answer {
    let no = rng.percent(temper.person_says_no);
    match gate {
        Gate::Plan => Answer::Plan(about_plan(no, state, rng, taken)),
        Gate::ValidationFailed(_) => Answer::ValidationFailed(match rng.below(4) {
            0 => ValidationAnswer::Requeue { notes: String::new() },
            1 => ValidationAnswer::Requeue { notes: "look again".into() },
            2 => ValidationAnswer::Edit {
                description: Some("said better".into()),
                file_locks: rng.percent(50).then(|| scenario::locks(rng)),
            },
            _ => ValidationAnswer::Drop,
        }),
        Gate::ValidatorFailed(_) => Answer::ValidatorFailed(match rng.below(3) {
            0 => ValidatorAnswer::ManualPass,
            1 => ValidatorAnswer::Skip,
            _ => ValidatorAnswer::Retry,
        }),
        Gate::Changeset(_) if !no => Answer::Changeset(ChangesetAnswer::Approve),
        Gate::Changeset(_) if rng.percent(30) => Answer::Changeset(ChangesetAnswer::Skip),
        Gate::Changeset(_) => {
            Answer::Changeset(ChangesetAnswer::Reject { reason: "not like this".into() })
        }
        Gate::Budget if rng.percent(60) => {
            let amount = rng.between(1, 20 * DEAREST_REQUEST);
            let by = match state.rules.session_budget {
                Budget::Tokens(_) => Budget::Tokens(amount),
                Budget::Usd(_) | Budget::Unlimited => Budget::Usd(Usd::from_micros(amount)),
            };
            Answer::Budget(BudgetAnswer::Raise { by })
        }
        Gate::Budget => Answer::Budget(BudgetAnswer::Stop),
        Gate::Session => Answer::Session(about_session(no, state, rng)),
    }
}

fn about_plan(no: bool, state: &State, rng: &mut Rng, taken: &mut BTreeSet<TaskId>) -> PlanAnswer {
    match rng.below(6) {
        0 if no => PlanAnswer::Quit,
        1..=3 if no => PlanAnswer::Replan { notes: "smaller steps".into() },
        4 if no => PlanAnswer::Edit { plan: new_plan(state, rng, taken) },
        _ => PlanAnswer::Approve,
    }
}

fn about_session(no: bool, state: &State, rng: &mut Rng) -> SessionAnswer {
    match rng.below(4) {
        0 if no => SessionAnswer::Stop,
        1 if no => SessionAnswer::Replan { notes: "think again".into() },
        _ => {
            let lost = state.board.queue(Step::Failed).chain(state.board.queue(Step::Dropped));
            let retry = lost.filter(|_| rng.percent(50)).map(|task| task.spec.id.clone()).collect();
            SessionAnswer::Continue { retry }
        }
    }
}

/// A plan that fits what has landed and what is still open.
pub fn new_plan(
    state: &State,
    rng: &mut Rng,
    taken: &mut BTreeSet<TaskId>,
) -> blueflame_core::plan::Plan {
    let (landed, open): (Vec<_>, Vec<_>) =
        state.board.tasks().iter().partition(|task| task.step() == Step::Merged);
    let ids = |tasks: Vec<&blueflame_core::state::task::Task>| -> Vec<TaskId> {
        tasks.into_iter().map(|task| task.spec.id.clone()).collect()
    };
    scenario::plan(rng, &ids(landed), &ids(open), taken)
}

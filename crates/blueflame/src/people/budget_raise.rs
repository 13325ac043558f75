//! The budget gate: raise it, or stop?

use blueflame_core::gate::BudgetAnswer;
use blueflame_core::money::Budget;
use blueflame_core::state::State;
use blueflame_core::state::task::Step;

use super::amount;
use super::sheet::{Sheet, count};
use super::talk::{Choice, Talk};
use super::{Occasion, Unanswered};

const CHOICES: [Choice; 2] = [
    Choice::with_text('r', "raise", "let the session use more"),
    Choice::alone('s', "stop", "start nobody any more; finished work can still land"),
];

pub(super) fn ask(
    talk: &mut Talk<'_>,
    occasion: &Occasion<'_>,
) -> Result<BudgetAnswer, Unanswered> {
    let mut sheet = talk.sheet();
    draw(&mut sheet, occasion.state);
    talk.show(&sheet.finish());
    loop {
        match talk.choose(&CHOICES)? {
            ('r', by) => {
                let by = match by.as_str() {
                    "" => talk.ask_line("By how much? > ")?,
                    _ => by,
                };
                if by.is_empty() {
                    continue;
                }
                match amount::parse(&by, occasion.state.crew.session_budget()) {
                    Ok(by) => return Ok(BudgetAnswer::Raise { by }),
                    Err(why) => talk.say(&why),
                }
            }
            _ => return Ok(BudgetAnswer::Stop),
        }
    }
}

pub(super) fn draw(sheet: &mut Sheet, state: &State) {
    sheet.title("The session's budget is spent");
    sheet.field("session", state.session.as_str());
    sheet.field("spent", &line(state));
    let waiting = state.crew.live().values().filter(|agent| agent.wants_grant).count();
    if waiting > 0 {
        sheet.field("waiting", &format!("{} for more", count(waiting, "agent")));
    }
    let open = [Step::Waiting, Step::Ready, Step::Requeued];
    let open: usize = open.iter().map(|step| state.board.count(*step)).sum();
    sheet.field("open", &format!("{} not begun", count(open, "task")));
}

/// What was spent of what there is, with what nobody can account for.
pub(super) fn line(state: &State) -> String {
    let spent = state.crew.spent();
    let line = match state.crew.session_budget() {
        Budget::Usd(limit) => format!("{} of {limit}", spent.cost),
        Budget::Tokens(limit) => format!("{} of {limit} tokens", spent.usage.total()),
        Budget::Unlimited => format!("{}, without a limit", spent.cost),
    };
    match state.crew.written_off() {
        Some(lost) => format!("{line}; {lost} more count as spent, the shares of lost agents"),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::samples::{Sample, page};

    #[test]
    fn the_budget_is_shown_against_what_was_spent() {
        let sample = Sample::budget();
        insta::assert_snapshot!(page(80, |sheet| draw(sheet, &sample.state)));
    }
}

//! The books of a session: what every agent run has cost, added up in several
//! ways. Each way adds up to the same total, to the last token and millionth of
//! a dollar.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use blueflame_core::event::Work;
use blueflame_core::ids::{AgentId, ExecutorName, Role, SessionId};
use blueflame_core::money::{Budget, Spend};
use blueflame_core::state::State;
use jiff::Timestamp;
use serde::Serialize;

use crate::amounts;
use crate::columns::{Side, Table};
use crate::report;

/// What a session has cost, and what may still be spent.
#[derive(Debug, Serialize)]
pub struct Books<'a> {
    session_id: &'a SessionId,
    #[serde(skip)]
    stage: String,
    total: Amount,
    budget: Budget,
    /// What agents at work hold of the budget beyond what they have spent.
    held: Option<Budget>,
    /// Shares of lost agents, which count as spent too.
    written_off: Option<Budget>,
    /// What of the budget is neither spent nor held.
    left: Option<Budget>,
    by_role: Vec<Sum>,
    /// Planning and the resolution of conflicts belong to no task.
    by_task: Vec<Sum>,
    by_executor: Vec<Sum>,
    runs: Vec<Run<'a>>,
}

/// What some runs have cost together.
#[derive(Debug, Serialize)]
struct Sum {
    name: String,
    runs: usize,
    #[serde(flatten)]
    amount: Amount,
}

/// What one agent run has cost.
#[derive(Debug, Serialize)]
struct Run<'a> {
    agent: &'a AgentId,
    role: Role,
    work: &'a Work,
    executor: &'a ExecutorName,
    /// How it ended; `null` while it is at work.
    outcome: Option<&'static str>,
    start_time: Timestamp,
    end_time: Option<Timestamp>,
    #[serde(flatten)]
    amount: Amount,
}

/// Tokens of each kind, and what they came to.
#[derive(Clone, Copy, Debug, Serialize)]
struct Amount {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    total_tokens: u64,
    /// Millionths of a dollar: whole numbers, to be added up.
    cost_micro_usd: u64,
    #[serde(skip)]
    spend: Spend,
}

impl From<Spend> for Amount {
    fn from(spend: Spend) -> Self {
        Amount {
            input_tokens: spend.usage.input,
            output_tokens: spend.usage.output,
            cache_read_tokens: spend.usage.cache_read,
            cache_write_tokens: spend.usage.cache_write,
            total_tokens: spend.usage.total(),
            cost_micro_usd: spend.cost.micros(),
            spend,
        }
    }
}

impl<'a> Books<'a> {
    pub fn of(state: &'a State) -> Self {
        let runs = runs(state);
        let planned: BTreeMap<&str, usize> = state
            .board
            .tasks()
            .iter()
            .enumerate()
            .map(|(place, task)| (task.spec.id.as_str(), place))
            .collect();
        let mut by_task = sums(&runs, |run| subject(run.work));
        // In the order of the plan; planning comes first, changesets last.
        by_task.sort_by_key(|sum| match planned.get(sum.name.as_str()) {
            Some(place) => (1, *place),
            None if sum.name == PLANNING => (0, 0),
            None => (2, 0),
        });
        let mut by_role = sums(&runs, |run| run.role.to_string());
        by_role.sort_by_key(|sum| Role::ALL.iter().position(|role| role.name() == sum.name));
        Books {
            session_id: &state.session,
            stage: report::stage(state),
            total: state.crew.spent().into(),
            budget: state.crew.session_budget(),
            held: state.crew.held(),
            written_off: state.crew.written_off(),
            left: state.crew.left(),
            by_role,
            by_task,
            by_executor: sums(&runs, |run| run.executor.to_string()),
            runs,
        }
    }

    /// The books as a page of text.
    pub fn page(&self) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(page, "session      {}, {}", self.session_id, self.stage);
        let Amount { total_tokens, spend, .. } = self.total;
        let _ =
            writeln!(page, "spent        {}, {total_tokens} tokens", amounts::exact(spend.cost));
        match self.budget {
            Budget::Unlimited => {}
            limit => {
                let left = self.left.map(|left| format!(", {} left", limit_words(left)));
                let limit = limit_words(limit);
                let _ = writeln!(page, "budget       {limit}{}", left.unwrap_or_default());
            }
        }
        if let Some(held) = self.held {
            let held = limit_words(held);
            let _ = writeln!(page, "held         {held} more by agents at work, until they end");
        }
        if let Some(lost) = self.written_off {
            let lost = limit_words(lost);
            let _ = writeln!(page, "written off  {lost}: shares of agents that were lost");
        }
        if self.runs.is_empty() {
            return page;
        }
        for (name, sums) in
            [("role", &self.by_role), ("task", &self.by_task), ("executor", &self.by_executor)]
        {
            let mut table = amounts_table([(name, Side::Left), ("runs", Side::Right)]);
            for Sum { name, runs, amount } in sums {
                table.row(cells([name.clone(), runs.to_string()], amount));
            }
            table.row(cells(["total".to_owned(), self.runs.len().to_string()], &self.total));
            add(&mut page, &table);
        }
        let mut table = amounts_table([
            ("agent", Side::Left),
            ("does", Side::Left),
            ("executor", Side::Left),
            ("ended", Side::Left),
        ]);
        for Run { agent, work, executor, outcome, amount, .. } in &self.runs {
            let first = [
                agent.to_string(),
                report::does(work),
                executor.to_string(),
                outcome.unwrap_or("at work").to_owned(),
            ];
            table.row(cells(first, amount));
        }
        let empty = String::new;
        table.row(cells(["total".to_owned(), empty(), empty(), empty()], &self.total));
        add(&mut page, &table);
        page
    }
}

/// A part of the budget, exactly, so that the parts add up.
fn limit_words(budget: Budget) -> String {
    match budget {
        Budget::Usd(amount) => amounts::exact(amount),
        Budget::Unlimited | Budget::Tokens(_) => budget.to_string(),
    }
}

/// What planners are booked under.
const PLANNING: &str = "(planning)";

fn subject(work: &Work) -> String {
    match work {
        Work::Plan => PLANNING.to_owned(),
        Work::Develop { task, .. } | Work::Validate { task, .. } => task.to_string(),
        Work::Resolve { changeset } => format!("(changeset {changeset})"),
    }
}

fn runs(state: &State) -> Vec<Run<'_>> {
    let past = state.crew.past().iter().map(|past| Run {
        agent: &past.agent,
        role: past.work.role(),
        work: &past.work,
        executor: &past.executor,
        outcome: Some(past.outcome),
        start_time: past.claimed_at,
        end_time: Some(past.ended_at),
        amount: past.spend.into(),
    });
    let live = state.crew.live().iter().map(|(agent, live)| Run {
        agent,
        role: live.work.role(),
        work: &live.work,
        executor: &live.executor,
        outcome: None,
        start_time: live.claimed_at,
        end_time: None,
        amount: live.spend.into(),
    });
    past.chain(live).collect()
}

fn sums(runs: &[Run<'_>], name: impl Fn(&Run<'_>) -> String) -> Vec<Sum> {
    let mut sums: BTreeMap<String, (usize, Spend)> = BTreeMap::new();
    for run in runs {
        let (count, sum) = sums.entry(name(run)).or_default();
        *count += 1;
        *sum = sum.plus(run.amount.spend);
    }
    sums.into_iter().map(|(name, (runs, spend))| Sum { name, runs, amount: spend.into() }).collect()
}

/// A table that ends with amounts.
fn amounts_table<const N: usize>(first: [(&str, Side); N]) -> Table {
    let kinds = ["input", "output", "cache read", "cache write", "tokens", "cost"];
    Table::with(first.into_iter().chain(kinds.map(|kind| (kind, Side::Right))))
}

fn cells<const N: usize>(first: [String; N], amount: &Amount) -> impl Iterator<Item = String> {
    let tokens = [
        amount.input_tokens,
        amount.output_tokens,
        amount.cache_read_tokens,
        amount.cache_write_tokens,
        amount.total_tokens,
    ];
    let cost = amounts::exact(amount.spend.cost);
    first.into_iter().chain(tokens.map(|count| count.to_string())).chain([cost])
}

fn add(page: &mut String, table: &Table) {
    page.push('\n');
    for line in table.lines() {
        let _ = writeln!(page, "{line}");
    }
}

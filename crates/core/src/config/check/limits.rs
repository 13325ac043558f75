//! Numbers of agents, times and budgets.

use std::time::Duration;

use super::super::{Concurrency, Limits, file};
use super::values::Check;
use crate::money::{Budget, Usd};
use crate::rules::PerRole;
use crate::yaml::{Problem, Spanned};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn concurrency(check: Check<'_>, file: &file::Concurrency) -> Concurrency {
    check.range("concurrency.planning", &file.planning, 1..=1);
    check.range("concurrency.merge", &file.merge, 1..=1);
    let memory = check.range(
        "concurrency.adaptive_min_ram_per_agent_mb",
        &file.adaptive_min_ram_per_agent_mb,
        1..=16_777_216,
    );
    Concurrency {
        workers: check.range("concurrency.development", &file.development, 1..=8),
        validators: check.range("concurrency.validation", &file.validation, 1..=8),
        memory_per_agent_mb: file.adaptive.value.then_some(memory),
    }
}

pub(super) fn limits(check: Check<'_>, file: &file::Limits) -> Option<Limits> {
    let agent_timeout = check.duration("limits.agent_timeout", &file.agent_timeout, DAY);
    let idle_timeout = check.duration("limits.idle_timeout", &file.idle_timeout, DAY);
    let heartbeat = check.duration("limits.heartbeat_interval", &file.heartbeat_interval, DAY);
    if let (Some(timeout), Some(heartbeat)) = (agent_timeout, heartbeat)
        && heartbeat >= timeout
    {
        check.problems.push(
            Problem::warning("limits.heartbeat_interval", "is not shorter than the agent timeout")
                .also(file.heartbeat_interval.span, "checked this often")
                .also(file.agent_timeout.span, "stopped after this time")
                .hint("a tenth of the timeout is a good interval"),
        );
    }
    let budget = &file.token_budget;
    let session = one_unit(
        check,
        "limits",
        ("max_session_cost_usd", &file.max_session_cost_usd),
        ("max_session_tokens", &file.max_session_tokens),
    );
    let role = |usd: &str, tokens: &str, a: &Spanned<f64>, b: &Spanned<u64>| {
        one_unit(check, "limits.token_budget", (usd, a), (tokens, b))
    };
    let agent_budgets = PerRole {
        planner: role("planner_usd", "planner_tokens", &budget.planner_usd, &budget.planner_tokens),
        worker: role("worker_usd", "worker_tokens", &budget.worker_usd, &budget.worker_tokens),
        validator: role(
            "validator_usd",
            "validator_tokens",
            &budget.validator_usd,
            &budget.validator_tokens,
        ),
        merger: role("merger_usd", "merger_tokens", &budget.merger_usd, &budget.merger_tokens),
    };
    let warn_percent = share(check, &budget.warn_threshold);
    let max_retries = check.range("limits.max_retries", &file.max_retries, 0..=20);
    let max_wave_cycles = check.range("limits.max_wave_cycles", &file.max_wave_cycles, 1..=1000);
    Some(Limits {
        agent_timeout: agent_timeout?,
        idle_timeout: idle_timeout?,
        heartbeat_interval: heartbeat?,
        max_retries,
        max_wave_cycles,
        session_budget: session,
        agent_budgets,
        warn_percent,
    })
}

/// A budget in dollars or in tokens, or none; never both.
fn one_unit(
    check: Check<'_>,
    section: &str,
    (usd_key, usd): (&str, &Spanned<f64>),
    (tokens_key, tokens): (&str, &Spanned<u64>),
) -> Budget {
    let path = format!("{section}.{usd_key}");
    let Some(dollars) = Usd::from_dollars(usd.value) else {
        let why = if usd.value < 0.0 { "cannot be negative" } else { "is not an amount of money" };
        let hint = "write dollars such as 1.50, or 0 for no limit";
        check.error(&path, usd, format!("{why}, got `{}`", usd.value), hint);
        return Budget::Unlimited;
    };
    if dollars == Usd::ZERO && usd.value > 0.0 {
        let message = format!("is less than a millionth of a dollar, got `{}`", usd.value);
        check.error(&path, usd, message, "write at least 0.000001, or 0 for no limit");
        return Budget::Unlimited;
    }
    match (dollars, tokens.value) {
        (Usd::ZERO, 0) => Budget::Unlimited,
        (Usd::ZERO, tokens) => Budget::Tokens(tokens),
        (dollars, 0) => Budget::Usd(dollars),
        (..) => {
            check.problems.push(
                Problem::error(
                    path,
                    format!("and `{section}.{tokens_key}` are both set; a budget has one unit"),
                )
                .also(usd.span, "a limit in dollars")
                .also(tokens.span, "a limit in tokens")
                .hint("set one of them to 0, or remove it"),
            );
            Budget::Unlimited
        }
    }
}

fn share(check: Check<'_>, threshold: &Spanned<f64>) -> u8 {
    let path = "limits.token_budget.warn_threshold";
    let value = threshold.value;
    if !(0.0..=1.0).contains(&value) {
        let hint = if (1.0..=100.0).contains(&value) {
            format!("for {value}% write {}", value / 100.0)
        } else {
            "0.8 warns when 80% of a budget is spent".to_owned()
        };
        check.error(path, threshold, format!("must be between 0 and 1, got `{value}`"), &hint);
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let percent = (value * 100.0).round() as u8;
    percent
}

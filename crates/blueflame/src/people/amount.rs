//! An amount by which a budget is raised, as people write it.

use blueflame_core::money::{Budget, Unit, Usd};

/// Reads `5`, `$5`, `5.50 usd` or `100k tokens`; a bare number is in the unit
/// of the budget. The error says what is wrong and what to write.
pub(super) fn parse(text: &str, budget: Budget) -> Result<Budget, String> {
    let Some(unit) = budget.unit() else {
        return Err("The session has no budget that could be raised.".to_owned());
    };
    let lower = text.trim().to_lowercase();
    let (number, written) = split_unit(&lower);
    if let Some(written) = written
        && written != unit
    {
        return Err(format!("The budget is {budget}: raise it in {}.", name(unit)));
    }
    let amount = match unit {
        Unit::Usd => dollars(number),
        Unit::Tokens => tokens(number),
    };
    let example = match unit {
        Unit::Usd => "`5` or `$2.50`",
        Unit::Tokens => "`50000` or `100k`",
    };
    amount.ok_or_else(|| format!("`{}` is not an amount: write {example}.", text.trim()))
}

fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Usd => "dollars",
        Unit::Tokens => "tokens",
    }
}

fn split_unit(text: &str) -> (&str, Option<Unit>) {
    let ends = [
        ("dollars", Unit::Usd),
        ("dollar", Unit::Usd),
        ("usd", Unit::Usd),
        ("$", Unit::Usd),
        ("tokens", Unit::Tokens),
        ("token", Unit::Tokens),
    ];
    if let Some(number) = text.strip_prefix('$') {
        return (number.trim(), Some(Unit::Usd));
    }
    let end = ends.iter().find_map(|(end, unit)| Some((text.strip_suffix(end)?.trim(), *unit)));
    end.map_or((text, None), |(number, unit)| (number, Some(unit)))
}

fn dollars(number: &str) -> Option<Budget> {
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let amount = number.parse().ok().filter(|_| is_plain).and_then(Usd::from_dollars)?;
    (amount > Usd::ZERO).then_some(Budget::Usd(amount))
}

/// Whole tokens; `k` is a thousand and `m` a million of them.
fn tokens(number: &str) -> Option<Budget> {
    let (digits, factor) = match (number.strip_suffix('k'), number.strip_suffix('m')) {
        (Some(digits), _) => (digits, 1_000),
        (None, Some(digits)) => (digits, 1_000_000),
        (None, None) => (number, 1),
    };
    let digits: String = digits.trim().chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let is_plain = digits.chars().all(|c| c.is_ascii_digit());
    let amount: u64 = digits.parse().ok().filter(|_| is_plain)?;
    amount.checked_mul(factor).filter(|amount| *amount > 0).map(Budget::Tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let dollars = Budget::Usd(Usd::from_micros(10_000_000));
        let tokens = Budget::Tokens(50_000);
        let usd = |micros| Ok(Budget::Usd(Usd::from_micros(micros)));
        for (text, budget, amount) in [
            ("5", dollars, usd(5_000_000)),
            (" $5 ", dollars, usd(5_000_000)),
            ("2.50", dollars, usd(2_500_000)),
            ("3 USD", dollars, usd(3_000_000)),
            ("1 dollar", dollars, usd(1_000_000)),
            ("100k tokens", tokens, Ok(Budget::Tokens(100_000))),
            ("100k", tokens, Ok(Budget::Tokens(100_000))),
            ("1_500", tokens, Ok(Budget::Tokens(1_500))),
            ("2m", tokens, Ok(Budget::Tokens(2_000_000))),
            ("0", dollars, Err("`0` is not an amount: write `5` or `$2.50`.")),
            ("-5", dollars, Err("`-5` is not an amount: write `5` or `$2.50`.")),
            ("1e9", dollars, Err("`1e9` is not an amount: write `5` or `$2.50`.")),
            ("nan", dollars, Err("`nan` is not an amount: write `5` or `$2.50`.")),
            ("", dollars, Err("`` is not an amount: write `5` or `$2.50`.")),
            ("5k tokens", dollars, Err("The budget is $10.00: raise it in dollars.")),
            ("$5", tokens, Err("The budget is 50000 tokens: raise it in tokens.")),
            ("1.5", tokens, Err("`1.5` is not an amount: write `50000` or `100k`.")),
            (
                "99999999999999999999",
                tokens,
                Err("`99999999999999999999` is not an amount: write `50000` or `100k`."),
            ),
            ("5", Budget::Unlimited, Err("The session has no budget that could be raised.")),
        ] {
            assert_eq!(parse(text, budget), amount.map_err(str::to_owned), "{text:?}");
        }
    }
}

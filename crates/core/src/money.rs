//! Money, tokens and budgets.
//!
//! Money is counted in whole micro-dollars, so sums never drift and compare
//! exactly. Sums saturate: a figure that no account could hold is treated as
//! the largest one, never as a small one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of US dollars, in millionths.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Usd(u64);

impl Usd {
    pub const ZERO: Usd = Usd(0);

    pub const fn from_micros(micros: u64) -> Self {
        Usd(micros)
    }

    /// Reads an amount as people write it. Nothing negative, not-a-number or
    /// beyond what the type can hold comes through.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let micros = (dollars * 1e6).round();
        if (0.0..=9e18).contains(&micros) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Some(Usd(micros as u64))
        } else {
            None
        }
    }

    pub const fn micros(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Usd {
    /// Cents for amounts that have them, more places for what is smaller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let text = if self.0 == 0 || self.0 >= 10_000 {
            let cents = (rest + 5_000) / 10_000;
            format!("${}.{:02}", whole + cents / 100, cents % 100)
        } else {
            format!("$0.{rest:06}")
        };
        f.pad(&text)
    }
}

/// What a model was given and gave back, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    #[serde(default)]
    pub cache_read: u64,
    #[serde(default)]
    pub cache_write: u64,
}

impl Usage {
    /// Every token the model read or wrote, cached ones too: the figure that
    /// token budgets are held against.
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }

    /// The larger of two running totals, part by part.
    #[must_use]
    pub fn at_least(self, other: Usage) -> Usage {
        Usage {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
        }
    }
}

/// What something has cost so far: tokens, and the money they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    pub usage: Usage,
    pub cost: Usd,
}

impl Spend {
    #[must_use]
    pub fn plus(self, other: Spend) -> Spend {
        Spend {
            usage: self.usage.plus(other.usage),
            cost: Usd(self.cost.0.saturating_add(other.cost.0)),
        }
    }

    /// Running totals only grow: a late or repeated report changes nothing.
    #[must_use]
    pub fn at_least(self, other: Spend) -> Spend {
        Spend { usage: self.usage.at_least(other.usage), cost: self.cost.max(other.cost) }
    }
}

/// A limit on spending. `Unlimited` is what a configured 0 means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    #[default]
    Unlimited,
    Usd(Usd),
    Tokens(u64),
}

impl Budget {
    pub fn unit(self) -> Option<Unit> {
        match self {
            Budget::Unlimited => None,
            Budget::Usd(_) => Some(Unit::Usd),
            Budget::Tokens(_) => Some(Unit::Tokens),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::Unlimited => f.pad("unlimited"),
            Budget::Usd(limit) => limit.fmt(f),
            Budget::Tokens(limit) => f.pad(&format!("{limit} tokens")),
        }
    }
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Usd,
    Tokens,
}

impl Unit {
    /// How much of a spend counts against a budget in this unit: micro-dollars
    /// or tokens.
    pub fn measure(self, spend: &Spend) -> u64 {
        match self {
            Unit::Usd => spend.cost.micros(),
            Unit::Tokens => spend.usage.total(),
        }
    }

    pub fn budget(self, amount: u64) -> Budget {
        match self {
            Unit::Usd => Budget::Usd(Usd::from_micros(amount)),
            Unit::Tokens => Budget::Tokens(amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_read_and_print_exactly() {
        for (dollars, shown) in [
            (0.0, "$0.00"),
            (0.4, "$0.40"),
            (10.0, "$10.00"),
            (1.999_999, "$2.00"),
            (0.000_001, "$0.000001"),
            (0.009_999, "$0.009999"),
        ] {
            assert_eq!(Usd::from_dollars(dollars).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn amounts_that_are_no_money_are_refused() {
        for bad in [-0.01, f64::NAN, f64::INFINITY, 1e30] {
            assert_eq!(Usd::from_dollars(bad), None, "{bad}");
        }
    }

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        let most =
            Spend { usage: Usage { input: u64::MAX, ..Usage::default() }, cost: Usd(u64::MAX) };
        let one = Spend { usage: Usage { input: 1, output: 1, ..Usage::default() }, cost: Usd(1) };
        let sum = most.plus(one);
        assert_eq!(sum.cost, Usd(u64::MAX));
        assert_eq!(sum.usage.total(), u64::MAX);
    }

    #[test]
    fn a_late_report_of_a_smaller_total_takes_nothing_back() {
        let newer =
            Spend { usage: Usage { input: 10, output: 5, ..Usage::default() }, cost: Usd(9) };
        let older =
            Spend { usage: Usage { input: 4, output: 2, ..Usage::default() }, cost: Usd(3) };
        assert_eq!(newer.at_least(older), newer);
    }
}

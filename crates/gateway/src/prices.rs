//! What a model costs.
//!
//! Dollars for a million tokens, by model name or alias. A model that is not
//! in the table is charged at the dearest known rates, so that a budget in
//! dollars can stop too early but never too late.

use std::collections::BTreeMap;

use blueflame_core::config;
use blueflame_core::money::{Usage, Usd};

/// Micro-dollars for a thousand tokens: a price of $3 for a million is 3,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Price {
    /// Cached input is read at a tenth and written at five quarters of the
    /// input price.
    const fn per_million(input_usd: u64, output_usd: u64) -> Self {
        Price {
            input: input_usd * 1_000,
            output: output_usd * 1_000,
            cache_read: input_usd * 100,
            cache_write: input_usd * 1_250,
        }
    }

    /// A price in dollars for a million tokens. Cached input costs the usual
    /// share of the input price where nothing else is said.
    pub fn new(input: Usd, output: Usd, cache_read: Option<Usd>, cache_write: Option<Usd>) -> Self {
        let per_thousand = |price: Usd| price.micros().div_ceil(1_000);
        let input = per_thousand(input);
        Price {
            input,
            output: per_thousand(output),
            cache_read: cache_read.map_or(input.div_ceil(10), per_thousand),
            cache_write: cache_write.map_or(input.saturating_mul(5).div_ceil(4), per_thousand),
        }
    }

    /// The cost of a usage, rounded up to the next micro-dollar.
    pub fn cost(&self, usage: &Usage) -> Usd {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let thousandths: u128 =
            parts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        Usd::from_micros(u64::try_from(thousandths.div_ceil(1_000)).unwrap_or(u64::MAX))
    }
}

const TABLE: [(&str, Price); 4] = [
    ("sonnet", Price::per_million(3, 15)),
    ("opus", Price::per_million(5, 25)),
    ("haiku", Price::per_million(1, 5)),
    ("fable", Price::per_million(10, 50)),
];

const DEAREST: Price = Price::per_million(10, 50);

/// The price of a model named by its alias (`sonnet`) or in full
/// (`claude-sonnet-5`), if it is known.
pub fn known(model: &str) -> Option<Price> {
    let family = model.strip_prefix("claude-").unwrap_or(model).split('-').next()?;
    TABLE.iter().find(|(name, _)| *name == family).map(|(_, price)| *price)
}

/// The price to charge for a model, known or not.
pub fn charged(model: &str) -> Price {
    known(model).unwrap_or(DEAREST)
}

/// The known prices and those that a configuration adds or replaces.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    extra: BTreeMap<String, Price>,
}

impl Prices {
    /// Prices by the full name of a model, as it stands in requests.
    pub fn with(extra: BTreeMap<String, Price>) -> Self {
        Prices { extra }
    }

    /// The prices that a configuration names.
    pub fn configured(config: &config::Gateway) -> Self {
        let price = |price: &config::ModelPrice| {
            Price::new(price.input, price.output, price.cache_read, price.cache_write)
        };
        Prices::with(config.prices.iter().map(|(model, it)| (model.clone(), price(it))).collect())
    }

    /// The price to charge for a model, known or not.
    pub fn charged(&self, model: &str) -> Price {
        self.extra.get(model).copied().unwrap_or_else(|| charged(model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_and_full_names_have_one_price() {
        assert_eq!(known("sonnet"), known("claude-sonnet-5"));
        assert_eq!(known("haiku"), known("claude-haiku-4-5-20251001"));
        assert_eq!(known("llama-3"), None);
    }

    #[test]
    fn a_cost_counts_every_kind_of_token() {
        let usage = Usage {
            input: 1_000_000,
            output: 100_000,
            cache_read: 2_000_000,
            cache_write: 400_000,
        };
        // 3.00 + 1.50 + 0.60 + 1.50
        assert_eq!(charged("sonnet").cost(&usage).to_string(), "$6.60");
    }

    #[test]
    fn an_unknown_model_never_costs_less_than_a_known_one() {
        let usage = Usage { input: 10, output: 10, cache_read: 10, cache_write: 10 };
        for (name, price) in TABLE {
            assert!(charged("unheard-of").cost(&usage) >= price.cost(&usage), "{name} is dearer");
        }
    }

    #[test]
    fn a_configured_price_comes_before_a_known_one() {
        let cents = |cents: u64| Usd::from_micros(cents * 10_000);
        let price = Price::new(cents(50), cents(100), Some(cents(1)), None);
        let prices = Prices::with([("claude-sonnet-5".to_owned(), price)].into());
        let usage = Usage {
            input: 1_000_000,
            output: 1_000_000,
            cache_read: 1_000_000,
            cache_write: 1_000_000,
        };
        // 0.50 + 1.00 + 0.01 + 0.625
        assert_eq!(prices.charged("claude-sonnet-5").cost(&usage).micros(), 2_135_000);
        assert_eq!(prices.charged("claude-opus-4-8"), charged("opus"));
    }

    #[test]
    fn no_usage_is_large_enough_to_wrap_into_a_small_cost() {
        let most = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        assert_eq!(charged("opus").cost(&most).micros(), u64::MAX);
    }
}

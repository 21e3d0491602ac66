//! Token counts, and what they cost.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::AddAssign;

/// What model calls cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Of the tokens read, those that came from a cache.
    pub cached: u64,
    /// Of the tokens written, those spent on reasoning.
    pub reasoning: u64,
    /// How many model calls this adds up.
    pub calls: u64,
    /// What the calls cost, as far as their prices are known.
    pub cost: Cost,
    /// How many of the calls have no known price.
    pub unpriced: u64,
}

impl Usage {
    /// The usage of one call.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, calls: 1, ..Self::default() }
    }

    /// What was added since it was `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(earlier.input),
            output: self.output.saturating_sub(earlier.output),
            cached: self.cached.saturating_sub(earlier.cached),
            reasoning: self.reasoning.saturating_sub(earlier.reasoning),
            calls: self.calls.saturating_sub(earlier.calls),
            cost: Cost(self.cost.0.saturating_sub(earlier.cost.0)),
            unpriced: self.unpriced.saturating_sub(earlier.unpriced),
        }
    }

    /// All tokens, read and written.
    pub fn total(&self) -> u64 {
        self.input + self.output
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
        self.reasoning += other.reasoning;
        self.calls += other.calls;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
    }
}

/// An amount of money, in billionths of a US dollar.
///
/// Prices are per million tokens, so that a token has a price in whole billionths as a rule, and
/// sums of calls are exact.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many billionths of a dollar.
    pub const fn from_nano_usd(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The amount in billionths of a dollar.
    pub const fn nano_usd(self) -> u64 {
        self.0
    }

    /// The amount in dollars.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// In dollars: with two places, or as many as it takes for two digits that say something.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.usd();
        let places = if usd == 0.0 || usd >= 0.1 {
            2
        } else {
            // One digit after the first that is not zero.
            (-usd.log10().floor()) as usize + 1
        };
        write!(f, "${usd:.places$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_written_with_the_digits_that_matter() {
        let shown = |nanos| Cost::from_nano_usd(nanos).to_string();
        assert_eq!(shown(0), "$0.00");
        assert_eq!(shown(1_234_567_890), "$1.23");
        assert_eq!(shown(250_000_000), "$0.25");
        assert_eq!(shown(4_210_000), "$0.0042");
        assert_eq!(shown(75), "$0.000000075");
    }

    #[test]
    fn usage_adds_up_money_and_what_has_no_price() {
        let mut sum = Usage { cost: Cost::from_nano_usd(5), ..Usage::new(1, 2) };
        sum += Usage { unpriced: 1, ..Usage::new(3, 4) };
        sum += Usage { cost: Cost::from_nano_usd(7), ..Usage::default() };
        assert_eq!((sum.cost.nano_usd(), sum.unpriced, sum.calls), (12, 1, 2));
    }
}

//! What `budget` takes by `with`.

use super::spent::{Amount, Price, dollars};
use super::{Budget, Ledger, Spent, Unpriced};
use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::hook::{IntoRegistration, Registration};

/// What `budget` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::guard) struct BudgetOptions {
    /// What one run may take: one request to the agent.
    run: AmountOptions,
    /// What one thread may take: all runs of this agent's conversation, or, in a chat, its own turns
    /// there. For all agents of a chat together, limit the `day`.
    thread: AmountOptions,
    /// What all agents together may take in a day (UTC) whose budgets have the same `name`.
    day: AmountOptions,
    /// Which budgets share a day.
    name: String,
    /// A key of the agent's memory to keep the day in too, so that it outlives the process. The
    /// agent has to declare the key as memory's.
    remember: Option<String>,
    /// What a call is expected to take: it is not made if there is no room for that.
    expect: AmountOptions,
    /// Whether a call is expected to write as many tokens as its request allows (`max_tokens`).
    expect_max_tokens: bool,
    /// What is done about calls whose price is not known, where dollars are limited.
    unpriced: UnpricedOptions,
    /// What happens at a limit: the turn ends as denied, or well with a text.
    on_exceed: OnExceed,
    /// What the turn ends with, if `on_exceed` is `end`; without it a text that says which limit was
    /// reached.
    text: Option<String>,
    /// The share of a limit, from 0 to 1, at which `budget.warned` is announced.
    warn_at: f64,
}

/// Dollars, tokens, or both.
#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct AmountOptions {
    /// Dollars.
    usd: Option<f64>,
    /// Tokens, read and written.
    tokens: Option<u64>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum UnpricedOptions {
    /// The next model call is denied.
    #[default]
    Deny,
    /// They count as free.
    Ignore,
    /// They cost this.
    Price(PriceOptions),
}

/// A price per million tokens.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct PriceOptions {
    /// Dollars for a million tokens read.
    input: f64,
    /// Dollars for a million tokens written.
    output: f64,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OnExceed {
    /// The turn ends as denied.
    #[default]
    Deny,
    /// The turn ends well, with a text.
    End,
}

impl Default for BudgetOptions {
    fn default() -> Self {
        Self {
            run: AmountOptions::default(),
            thread: AmountOptions::default(),
            day: AmountOptions::default(),
            name: "default".to_owned(),
            remember: None,
            expect: AmountOptions::default(),
            expect_max_tokens: false,
            unpriced: UnpricedOptions::default(),
            on_exceed: OnExceed::default(),
            text: None,
            warn_at: 0.8,
        }
    }
}

impl Options for BudgetOptions {
    const ABOUT: About = About {
        name: "budget",
        summary: "Bounds what a run, a thread and a day cost, in dollars and in tokens.",
        covers: &[],
        peers: &[],
        example: r#"{ "run": { "tokens": 100000 }, "day": { "usd": 5 }, "unpriced": "ignore" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let mut budget = Budget::new();
        budget.run = amount("run", self.run)?;
        budget.thread = amount("thread", self.thread)?;
        budget.day = amount("day", self.day)?;
        if [budget.run, budget.thread, budget.day].into_iter().all(Amount::is_nothing) {
            return Err(Refusal::new("", "give a limit: `run`, `thread` or `day`"));
        }
        if self.remember.is_some() && budget.day.is_nothing() {
            return Err(Refusal::new("remember", "it is about the day, so it needs `day`"));
        }
        if self.on_exceed == OnExceed::Deny && self.text.is_some() {
            let message = "the turn ends as denied, and not with a text; leave it out, or use \
                           `on_exceed: end`";
            return Err(Refusal::new("text", message));
        }
        if !(0.0..=1.0).contains(&self.warn_at) {
            let message = format!("{} is not a share; give one from 0 to 1", self.warn_at);
            return Err(Refusal::new("warn_at", message));
        }
        let expected = amount("expect", self.expect)?;
        budget.expected = Spent {
            tokens: expected.tokens.unwrap_or_default(),
            cost: expected.cost.unwrap_or_default(),
            unpriced: 0,
        };
        budget.unpriced = match self.unpriced {
            UnpricedOptions::Deny => Unpriced::Deny,
            UnpricedOptions::Ignore => Unpriced::Ignore,
            UnpricedOptions::Price(PriceOptions { input, output }) => {
                if [input, output].iter().any(|price| !price.is_finite() || *price < 0.0) {
                    return Err(Refusal::new("unpriced.price", "a price is not less than zero"));
                }
                Unpriced::Price(Price { input, output })
            }
        };
        budget.ledger = (*makings.shared().part("budget", &self.name, Ledger::new)).clone();
        budget.max_tokens = self.expect_max_tokens;
        budget.ends = self.on_exceed == OnExceed::End;
        budget.text = self.text;
        budget.warn_at = Some(self.warn_at);
        budget.remembered = self.remember;
        Ok(budget.into_registration())
    }
}

fn amount(field: &str, options: AmountOptions) -> Result<Amount, Refusal> {
    let AmountOptions { usd, tokens } = options;
    if let Some(usd) = usd
        && (!usd.is_finite() || usd <= 0.0)
    {
        let message = format!("{usd} dollars are none; give more than zero, or leave it out");
        return Err(Refusal::new(format!("{field}.usd"), message));
    }
    if tokens == Some(0) {
        let message = "0 tokens are none; give more than zero, or leave it out";
        return Err(Refusal::new(format!("{field}.tokens"), message));
    }
    Ok(Amount { cost: usd.map(dollars), tokens })
}

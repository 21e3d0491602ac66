//! What was spent, and what may be.

use crate::words::own_key;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::context::Cx;
use tenure_core::model::{Cost, Usage};

/// Where the spending of a thread is kept.
const KEY: &str = "_budget";

/// The same for this one of several in an agent.
fn key(cx: &Cx<'_>) -> Cow<'static, str> {
    own_key(cx, "budget", KEY)
}

/// What was spent: tokens, money, and calls that nobody knows the price of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Spent {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money.
    pub cost: Cost,
    /// Model calls that have no known price, and were given none.
    pub unpriced: u64,
}

impl Spent {
    pub(super) fn add(&mut self, more: Spent) {
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost += more.cost;
        self.unpriced = self.unpriced.saturating_add(more.unpriced);
    }

    pub(super) fn plus(mut self, more: Spent) -> Spent {
        self.add(more);
        self
    }
}

/// What a scope may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) cost: Option<Cost>,
    pub(super) tokens: Option<u64>,
}

/// Dollars as an amount.
pub(super) fn dollars(usd: f64) -> Cost {
    Cost::from_nano_usd((usd * 1e9).round().max(0.0) as u64)
}

impl Amount {
    pub(super) fn is_nothing(self) -> bool {
        self.cost.is_none() && self.tokens.is_none()
    }

    /// Why something more would be too much. Without knowing what the next call takes, it is allowed
    /// as long as anything is left.
    pub(super) fn denial(self, spent: Spent, next: Spent, scope: &str) -> Option<String> {
        if let Some(most) = self.cost {
            if spent.cost >= most {
                let spent = spent.cost;
                return Some(format!(
                    "the budget of {most} for a {scope} is used up: {spent} spent"
                ));
            }
            if spent.plus(next).cost > most {
                let (spent, next) = (spent.cost, next.cost);
                return Some(format!(
                    "the budget of {most} for a {scope} has no room for a call of {next}: {spent} \
                     spent"
                ));
            }
        }
        let most = self.tokens?;
        if spent.tokens >= most {
            let spent = spent.tokens;
            return Some(format!(
                "the budget of {most} tokens for a {scope} is used up: {spent} spent"
            ));
        }
        if spent.plus(next).tokens > most {
            let (spent, next) = (spent.tokens, next.tokens);
            return Some(format!(
                "the budget of {most} tokens for a {scope} has no room for a call of {next}: {spent} \
                 spent"
            ));
        }
        None
    }

    /// How much of it is used, from 0 to 1 and beyond.
    pub(super) fn share(self, spent: Spent) -> f64 {
        let cost = self.cost.map_or(0.0, |most| spent.cost.usd() / most.usd());
        let tokens = self.tokens.map_or(0.0, |most| spent.tokens as f64 / most as f64);
        cost.max(tokens)
    }
}

/// What calls cost that have no known price, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price {
    pub(super) input: f64,
    pub(super) output: f64,
}

impl Price {
    fn of(self, usage: Usage) -> Cost {
        // A dollar per million tokens is a thousand billionths of a dollar per token.
        let nanos = (usage.input as f64 * self.input + usage.output as f64 * self.output) * 1e3;
        Cost::from_nano_usd(nanos.ceil() as u64)
    }
}

/// What a thread has spent, as the state of its instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// The chat that the thread belongs to.
    chat: Option<String>,
    /// In the runs before this one.
    earlier: Spent,
    /// In this run.
    pub(super) run: Spent,
    /// How much of the turn's usage is counted already.
    seen: Usage,
    /// The scopes that were warned of.
    pub(super) warned: Vec<String>,
}

impl Kept {
    /// What is kept so far. What cannot be read is a failure, and no fresh start.
    pub(super) fn read(cx: &Cx<'_>) -> Result<Self, Error> {
        let kept = cx.state_as::<Self>(&key(cx))?;
        Ok(kept.map(Arc::unwrap_or_clone).unwrap_or_default())
    }

    pub(super) fn write(self, cx: &Cx<'_>) -> Result<(), Error> {
        cx.keep_state(&key(cx), self)
    }

    /// A run begins: what the one before it spent is part of the thread.
    pub(super) fn begin_run(&mut self, chat: Option<&str>) {
        let mut earlier = std::mem::take(self);
        self.chat = chat.map(str::to_owned);
        if earlier.chat.as_deref() == chat {
            self.earlier = earlier.earlier.plus(earlier.run);
            earlier.warned.retain(|scope| scope == "thread");
            self.warned = earlier.warned;
        }
    }

    pub(super) fn thread(&self) -> Spent {
        self.earlier.plus(self.run)
    }

    /// Counts what the turn has used since; says how much that is.
    ///
    /// Of several calls together it is not known which of them had no price, so that all of their
    /// tokens are priced then: rather too much than too little.
    pub(super) fn observe(&mut self, usage: Usage, price: Option<Price>) -> Spent {
        let seen = self.seen;
        let new = Usage {
            input: usage.input.saturating_sub(seen.input),
            output: usage.output.saturating_sub(seen.output),
            unpriced: usage.unpriced.saturating_sub(seen.unpriced),
            cost: Cost::from_nano_usd(usage.cost.nano_usd().saturating_sub(seen.cost.nano_usd())),
            ..Usage::default()
        };
        self.seen = Usage {
            input: usage.input.max(seen.input),
            output: usage.output.max(seen.output),
            unpriced: usage.unpriced.max(seen.unpriced),
            cost: usage.cost.max(seen.cost),
            ..usage
        };
        let mut spent = Spent { tokens: new.total(), cost: new.cost, unpriced: new.unpriced };
        if let Some(price) = price
            && new.unpriced > 0
        {
            spent.cost += price.of(new);
            spent.unpriced = 0;
        }
        self.run.add(spent);
        spent
    }
}

impl From<Kept> for Value {
    fn from(kept: Kept) -> Self {
        serde_json::to_value(kept).expect("numbers and texts become JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_that_was_seen_is_counted_once() {
        let mut kept = Kept::default();
        kept.observe(Usage::new(10, 5), None);
        kept.observe(Usage::new(10, 5), None);
        kept.observe(Usage::new(12, 9), None);
        assert_eq!(kept.run.tokens, 21);
        kept.begin_run(None);
        kept.observe(Usage::new(1, 1), None);
        assert_eq!((kept.run.tokens, kept.thread().tokens), (2, 23));
        kept.begin_run(Some("chat"));
        assert_eq!(kept.thread().tokens, 0);
    }

    #[test]
    fn calls_without_a_price_get_the_given_one() {
        let unpriced = Usage { unpriced: 1, ..Usage::new(1_000_000, 500_000) };
        let price = Some(Price { input: 3.0, output: 15.0 });
        let mut kept = Kept::default();
        assert_eq!(kept.observe(unpriced, price).cost.to_string(), "$10.50");
        assert_eq!(Kept::default().observe(unpriced, None).unpriced, 1);
    }

    #[test]
    fn a_budget_denies_what_it_has_no_room_for() {
        let most = Amount { cost: Some(dollars(0.5)), tokens: None };
        let spent = |usd| Spent { cost: dollars(usd), ..Spent::default() };
        assert_eq!(most.denial(spent(0.49), Spent::default(), "run"), None);
        assert!(most.denial(spent(0.5), Spent::default(), "run").is_some());
        assert_eq!(most.denial(spent(0.25), spent(0.25), "run"), None);
        let why = most.denial(spent(0.25), spent(0.26), "run");
        assert_eq!(
            why.as_deref(),
            Some("the budget of $0.50 for a run has no room for a call of $0.26: $0.25 spent")
        );
    }
}

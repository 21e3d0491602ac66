//! What a model costs.

use super::config::Price;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tenure_core::model::{Cost, Usage};

/// A row of the table that is built in.
#[derive(Deserialize)]
struct Row {
    input: f64,
    output: f64,
    cached: Option<f64>,
}

fn built_in() -> &'static BTreeMap<String, Price> {
    static TABLE: OnceLock<BTreeMap<String, Price>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows: BTreeMap<String, Row> = toml::from_str(include_str!("prices.toml"))
            .expect("the table is part of the program, and a test reads it");
        let price = |row: Row| Price { input: row.input, output: row.output, cached: row.cached };
        rows.into_iter().map(|(name, row)| (name, price(row))).collect()
    })
}

/// The price of a provider's model: the user's first, then the built-in one.
pub(super) fn find(provider: &str, model: &str, users: &BTreeMap<String, Price>) -> Option<Price> {
    // A provider that resells names the model's own provider before a slash.
    let bare = model.rsplit('/').next().unwrap_or(model);
    let full = format!("{provider}.{model}");
    let names = [full.as_str(), model, bare];
    names
        .iter()
        .find_map(|name| look_up(name, users))
        .or_else(|| look_up(&full, built_in()))
        .copied()
}

fn look_up<'a>(name: &str, table: &'a BTreeMap<String, Price>) -> Option<&'a Price> {
    table.get(name).or_else(|| {
        table
            .iter()
            .filter(|(known, _)| name.strip_prefix(known.as_str()).is_some_and(is_dated))
            .max_by_key(|(known, _)| known.len())
            .map(|(_, price)| price)
    })
}

/// Whether the end of a name only says which edition of the same model it is.
fn is_dated(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix('-') else { return false };
    let digits = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    // `-5` is another model; `-001`, `-0613`, `-20250514` and `-2024-08-06` are not.
    matches!(rest, "latest" | "preview" | "exp")
        || (digits && rest.len() >= 3)
        || rest.strip_prefix("preview").is_some_and(is_dated)
}

/// Puts the price of one call into its usage. The surcharge is for what was written to a cache, in
/// tokens that are read.
pub(super) fn charge(usage: &mut Usage, surcharge: f64, price: Option<Price>) {
    let Some(price) = price else {
        usage.unpriced = usage.calls;
        return;
    };
    let cached = usage.cached.min(usage.input);
    let per_million = ((usage.input - cached) as f64 + surcharge) * price.input
        + cached as f64 * price.cached.unwrap_or(price.input)
        + usage.output as f64 * price.output;
    // A dollar for a million tokens is a thousand billionths for one.
    usage.cost = Cost::from_nano_usd((per_million * 1000.0).round().max(0.0) as u64);
}

#[cfg(test)]
mod tests {
    use super::super::alias::ALIASES;
    use super::*;

    #[test]
    fn finds_editions_and_tells_models_apart() {
        let none = BTreeMap::new();
        let input = |provider, model| find(provider, model, &none).map(|price| price.input);
        assert_eq!(input("openai", "gpt-4o"), Some(2.5));
        assert_eq!(input("openai", "gpt-4o-2024-08-06"), Some(2.5));
        assert_eq!(input("openai", "gpt-4o-mini-2024-07-18"), Some(0.15));
        assert_eq!(input("anthropic", "claude-opus-4-20250514"), Some(15.0));
        assert_eq!(input("anthropic", "claude-opus-4-5-20251101"), Some(5.0));
        assert_eq!(input("google", "gemini-2.5-flash-preview-09-2025"), Some(0.3));
        assert_eq!(input("ollama", "llama3.2:1b"), None);
        assert_eq!(input("openai", "gpt-4o-turbo-max"), None);
        assert_eq!(input("generic", "gpt-4o"), None);
    }

    #[test]
    fn every_short_name_leads_to_a_price() {
        // The router of `hf` passes each call on to another seller, and the price of `qwen3-max`
        // depends on the length of the prompt.
        let sold = |spec: &&str| !spec.starts_with("hf.") && *spec != "aliyun.qwen3-max";
        for spec in ALIASES.iter().map(|(_, spec)| *spec).filter(sold) {
            let (provider, model) = spec.split_once('.').expect("a provider and a model");
            assert!(find(provider, model, &BTreeMap::new()).is_some(), "{spec}");
        }
    }

    #[test]
    fn a_token_from_a_cache_costs_less_than_one_that_is_read_and_one_that_is_written_more() {
        for (name, price) in built_in() {
            assert!(price.cached.is_none_or(|cached| cached < price.input), "{name}");
            assert!(0.0 < price.input && price.input <= price.output, "{name}");
        }
    }

    #[test]
    fn the_users_prices_come_first() {
        let mut users = BTreeMap::new();
        users.insert("gpt-4o".to_owned(), Price::new(1.0, 2.0));
        users.insert("mine.gpt-4o".to_owned(), Price::new(3.0, 4.0));
        assert_eq!(find("openai", "gpt-4o", &users), Some(Price::new(1.0, 2.0)));
        assert_eq!(find("mine", "gpt-4o", &users), Some(Price::new(3.0, 4.0)));
        assert_eq!(find("openrouter", "openai/gpt-4o", &users), Some(Price::new(1.0, 2.0)));
    }

    #[test]
    fn a_call_costs_what_its_tokens_cost() {
        let mut usage = Usage { cached: 400, ..Usage::new(1_000, 100) };
        charge(&mut usage, 0.0, Some(Price::new(2.5, 10.0).with_cached(1.25)));
        // 600 at 2.5, 400 at 1.25 and 100 at 10, for a million each.
        assert_eq!(usage.cost.nano_usd(), 3_000_000);
        assert_eq!(usage.unpriced, 0);
        // 200 of the 600 went into a cache, and cost a quarter more.
        charge(&mut usage, 50.0, Some(Price::new(2.5, 10.0).with_cached(1.25)));
        assert_eq!(usage.cost.nano_usd(), 3_125_000);
        let mut unknown = Usage::new(5, 5);
        charge(&mut unknown, 0.0, None);
        assert_eq!((unknown.cost, unknown.unpriced), (Cost::ZERO, 1));
    }
}

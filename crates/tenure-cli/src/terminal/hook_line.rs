//! What ready-made hooks announce, in a sentence each: what was done, never what was said.

use super::text::{clean_line, count, fit, human};
use serde_json::Value;
use std::time::Duration;

/// No name takes more room than this.
const MOST_NAME: usize = 60;
/// Of a list of names, nobody reads more.
const MOST_NAMES: usize = 120;

/// The hook that announced it, and what it did. None if it is not known, or not worth a line.
///
/// Texts of people, models and tools are left out, also where they are announced: what one hook hides
/// another must not show. What a provider says when it fails is told as it is of other calls.
pub(super) fn sentence(name: &str, data: &Value) -> Option<String> {
    let it = Data(data);
    let (hook, said) = match name {
        "retry" => ("retry", format!("{}: {}", it.attempt()?, it.failure()?)),
        "tool_retry" => ("tool_retry", format!("{}: {} failed", it.attempt()?, it.name("tool")?)),
        "fallback" => {
            let (from, to, why) = (it.name("from")?, it.name("to")?, it.failure()?);
            ("fallback", format!("from {from} to {to}: {why}"))
        }
        "fallback.answered" => ("fallback", format!("{} answered", it.name("model")?)),
        "fallback.waits" => ("fallback", format!("waits until {} may be asked", it.name("model")?)),
        "breaker" => {
            let state = match it.name("state")?.as_str() {
                "open" => "is not called for now",
                "half_open" => "is tried again",
                "closed" => "is called again",
                _ => return None,
            };
            ("breaker", format!("{} {state}", it.name("of")?))
        }
        "cache.hit" => ("cache", "answered from the cache".to_owned()),
        "cache.failed" => ("cache", "it failed, and was passed over".to_owned()),
        "pii.found" => {
            let found = it.0["found"].as_object()?.iter();
            let found = found.filter_map(|(kind, many)| Some(format!("{} {kind}", many.as_u64()?)));
            ("pii", format!("found {} in {}", names(found), it.name("in")?))
        }
        "pii.blocked" => ("pii", format!("blocked {}: {}", it.name("in")?, it.name("found")?)),
        "safety.unsafe" => ("safety", format!("found unsafe at {}", it.name("point")?)),
        "safety.injection" => {
            ("safety", format!("an instruction stands in the result of {}", it.name("tool")?))
        }
        "window.shortened" => {
            let how = if it.0["how"] == "summarise" { "summarised" } else { "trimmed" };
            let (messages, tokens) = (it.change("messages")?, it.change("tokens")?);
            ("window", format!("{how}: {messages} messages, {tokens} tokens"))
        }
        "window.no_summary" => ("window", "there is no summary; trimmed instead".to_owned()),
        "tool_results.cleared" => {
            let won = count(it.0["tokens"]["won"].as_u64()?);
            let results = many(it.number("results")?, "old tool result");
            ("clear_tool_results", format!("cleared {results}, {won} tokens less"))
        }
        "messages.deduped" => {
            ("dedupe", format!("removed {}", many(it.number("removed")?, "repeated message")))
        }
        "critic.voted" => {
            let score = it.0["score"].as_f64().map(|score| format!(", score {score}"));
            let (critic, verdict) = (it.name("critic")?, it.name("verdict")?);
            ("critic", format!("{critic}: {verdict}{}{}", score.unwrap_or_default(), it.round()))
        }
        "critic.failed" => {
            ("critic", format!("{} gave no verdict{}", it.name("critic")?, it.round()))
        }
        "budget.warned" => {
            let share = it.0["share"].as_f64().filter(|share| share.is_finite())?;
            let scope = it.name("scope")?;
            ("budget", format!("{:.0}% of the budget of the {scope} is spent", share * 100.0))
        }
        "quota.exceeded" => {
            let again = human(it.time("retry_after_ms")?);
            ("quota", format!("no {} left; again in {again}", it.name("limit")?))
        }
        "route.chosen" => {
            let to = match (it.name("agent"), it.name("model")) {
                (Some(agent), _) => format!(", to the agent {agent}"),
                (None, Some(model)) => format!(", to the model {model}"),
                (None, None) => String::new(),
            };
            ("route", format!("{}{to}", it.name("label")?))
        }
        "model.chosen" => ("cheaper_model", format!("{} answers this call", it.name("model")?)),
        "tools.selected" => {
            let tools = it.0["tools"].as_array()?;
            let chosen = tools.iter().filter_map(Value::as_str).map(str::to_owned);
            let (of, chosen) = (it.number("of")?, names(chosen));
            ("select_tools", format!("{} of {of} tools: {chosen}", tools.len()))
        }
        "tools.not_selected" => ("select_tools", "the model did not choose".to_owned()),
        "adaptation.changed" => {
            let why = it.name("goal").map(|goal| format!(" for {goal}")).unwrap_or_default();
            ("adaptation", format!("changed {}{why}", it.changed()?))
        }
        "tool.emulated" => ("emulate_tools", format!("{} was emulated", it.name("tool")?)),
        "context.loaded" => {
            let documents = it.0["documents"].as_array()?.len() as u64;
            let chars = count(it.number("chars")?);
            let cut = if it.0["cut"] == true { ", cut" } else { "" };
            let documents = many(documents, "document");
            ("load_context", format!("{documents}, {chars} characters{cut}"))
        }
        "input.sanitised" => ("sanitise", "the input was cleaned".to_owned()),
        "todo.changed" => {
            let todos = it.0["todos"].as_array()?;
            let done = todos.iter().filter(|todo| todo["status"] == "completed").count();
            ("todo", format!("{done} of {} done", todos.len()))
        }
        _ => return None,
    };
    Some(format!("{hook}: {said}"))
}

/// What was announced. What is shown of it is names, numbers, times, and why a provider failed.
struct Data<'a>(&'a Value);

impl Data<'_> {
    fn name(&self, field: &str) -> Option<String> {
        let text = self.0[field].as_str().filter(|text| !text.trim().is_empty())?;
        Some(fit(&clean_line(text), MOST_NAME))
    }

    fn number(&self, field: &str) -> Option<u64> {
        self.0[field].as_u64()
    }

    fn time(&self, field: &str) -> Option<Duration> {
        self.number(field).map(Duration::from_millis)
    }

    /// Which attempt it is, and when.
    fn attempt(&self) -> Option<String> {
        let (attempt, of) = (self.number("attempt")?, self.number("of")?);
        Some(format!("attempt {attempt} of {of} in {}", human(self.time("wait_ms")?)))
    }

    /// How a call of a model failed, and why.
    fn failure(&self) -> Option<String> {
        let kind = match self.name("kind")?.as_str() {
            "other" => "failed".to_owned(),
            kind => kind.replace('_', " "),
        };
        // Of these it may hold what the model said, or what it was told.
        let may_quote = matches!(&*kind, "malformed" | "truncated" | "bad request");
        Some(match self.name("error").filter(|_| !may_quote) {
            Some(error) => format!("{kind} ({error})"),
            None => kind,
        })
    }

    /// How many there were, and how many there are.
    fn change(&self, field: &str) -> Option<String> {
        let of = |when: &str| self.0[field][when].as_u64().map(count);
        Some(format!("{} → {}", of("before")?, of("after")?))
    }

    fn round(&self) -> String {
        match self.number("round").filter(|round| *round > 1) {
            Some(round) => format!(" (round {round})"),
            None => String::new(),
        }
    }

    /// What is another in the setting that there is now.
    fn changed(&self) -> Option<String> {
        let (from, to) = (&self.0["from"], self.0["to"].as_object()?);
        let is_other = |(name, value): &(&String, &Value)| {
            *name != "revision" && from[name.as_str()] != **value && !value.is_null()
        };
        let words = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        let changed = to.iter().filter(is_other).map(|(name, value)| {
            format!("{name} {} → {}", words(&from[name.as_str()]), words(value))
        });
        Some(names(changed)).filter(|changed| !changed.is_empty())
    }
}

/// Several names in one line.
fn names(names: impl Iterator<Item = String>) -> String {
    fit(&clean_line(&names.collect::<Vec<_>>().join(", ")), MOST_NAMES)
}

/// So many of something.
fn many(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", count(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use serde_json::{Value, json};

    #[track_caller]
    fn says(name: &str, data: Value, expected: &str) {
        assert_eq!(sentence(name, &data).as_deref(), Some(expected));
    }

    #[test]
    fn what_calls_went_through_is_told() {
        let data = json!({ "attempt": 2, "of": 3, "wait_ms": 500, "kind": "rate_limited", "error": "slow down" });
        says("retry", data, "retry: attempt 2 of 3 in 500ms: rate limited (slow down)");
        let data =
            json!({ "attempt": 2, "of": 3, "wait_ms": 1, "kind": "malformed", "error": "secret" });
        says("retry", data, "retry: attempt 2 of 3 in 1ms: malformed");
        let data =
            json!({ "tool": "fetch", "attempt": 2, "of": 4, "wait_ms": 1500, "error": "secret" });
        says("tool_retry", data, "tool_retry: attempt 2 of 4 in 1.50s: fetch failed");
        let data = json!({ "from": "big", "to": "small", "kind": "other", "error": "no" });
        says("fallback", data, "fallback: from big to small: failed (no)");
        says("fallback.answered", json!({ "model": "small" }), "fallback: small answered");
        let data = json!({ "model": "small", "wait_ms": 900 });
        says("fallback.waits", data, "fallback: waits until small may be asked");
        let data = json!({ "of": "big", "state": "open" });
        says("breaker", data, "breaker: big is not called for now");
        let data = json!({ "cached": true, "key": "6a0c", "saved": {} });
        says("cache.hit", data, "cache: answered from the cache");
        says("tool.emulated", json!({ "tool": "pay" }), "emulate_tools: pay was emulated");
    }

    #[test]
    fn what_guards_found_is_told_without_what_it_was() {
        let data = json!({ "in": "the input", "found": { "email": 2, "ip": 1 } });
        says("pii.found", data, "pii: found 2 email, 1 ip in the input");
        let data = json!({ "in": "the answer", "found": "email" });
        says("pii.blocked", data, "pii: blocked the answer: email");
        let data = json!({ "point": "before_agent", "why": "secret" });
        says("safety.unsafe", data, "safety: found unsafe at before_agent");
        let data = json!({ "scope": "run", "share": 0.812, "spent": {} });
        says("budget.warned", data, "budget: 81% of the budget of the run is spent");
        let data = json!({ "account": "ada", "limit": "requests", "retry_after_ms": 61_000 });
        says("quota.exceeded", data, "quota: no requests left; again in 1m 01s");
        let data = json!({ "critic": "strict", "verdict": "revise", "critique": "secret", "score": 0.5, "round": 2 });
        says("critic.voted", data, "critic: strict: revise, score 0.5 (round 2)");
        let data = json!({ "critic": "strict", "reason": "secret", "round": 1 });
        says("critic.failed", data, "critic: strict gave no verdict");
    }

    #[test]
    fn what_became_of_the_context_is_told() {
        let data = json!({
            "how": "summarise", "persisted": true,
            "tokens": { "before": 18_233, "after": 900 }, "messages": { "before": 40, "after": 7 },
        });
        says("window.shortened", data, "window: summarised: 40 → 7 messages, 18 233 → 900 tokens");
        let data = json!({ "results": 3, "tokens": { "before": 5000, "won": 1200 } });
        let expected = "clear_tool_results: cleared 3 old tool results, 1 200 tokens less";
        says("tool_results.cleared", data, expected);
        says("messages.deduped", json!({ "removed": 1 }), "dedupe: removed 1 repeated message");
        let data = json!({ "label": "billing", "agent": "clerk", "model": null, "by": "rule" });
        says("route.chosen", data, "route: billing, to the agent clerk");
        let data = json!({ "model": "small", "rule": 0, "step": 1 });
        says("model.chosen", data, "cheaper_model: small answers this call");
        let data = json!({ "of": 12, "tools": ["fetch", "add"] });
        says("tools.selected", data, "select_tools: 2 of 12 tools: fetch, add");
        let data = json!({
            "from": { "retries": 1, "model": "big", "revision": 1 },
            "to": { "retries": 2, "model": "big", "revision": 2 },
            "goal": "error_rate", "measured": 0.5, "reason": "secret",
        });
        says("adaptation.changed", data, "adaptation: changed retries 1 → 2 for error_rate");
        let data = json!({ "todos": [{ "text": "secret", "status": "completed" }, { "status": "pending" }] });
        says("todo.changed", data, "todo: 1 of 2 done");
    }

    #[test]
    fn what_is_not_known_or_says_nothing_has_no_line() {
        assert_eq!(sentence("my.own", &json!({ "x": 1 })), None);
        assert_eq!(sentence("usage.reported", &json!({ "cost_usd": 1 })), None);
        assert_eq!(sentence("retry", &Value::Null), None, "not as the hook announces it");
        assert_eq!(sentence("tools.selected", &json!({ "of": 2 })), None);
    }

    #[test]
    fn names_cannot_pass_for_the_program() {
        let data = json!({ "model": format!("a\x1b[2J\n{}", "b".repeat(500)) });
        let said = sentence("fallback.answered", &data).expect("a line");
        assert!(!said.contains(['\x1b', '\n']), "{said:?}");
        assert!(said.chars().count() < 100, "{said}");
    }
}

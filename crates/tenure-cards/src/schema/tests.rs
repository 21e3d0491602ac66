//! The schema has the right shape, and says the right things of real cards.

use std::sync::Arc;

use serde_json::{Value, json};

use super::card_schema;
use crate::card::{CardType, FIELDS};
use crate::diagnostic::Report;
use crate::source::{Source, parse};

/// As much of JSON Schema as the card's schema uses; an unknown keyword fails the test.
struct Checker {
    root: Value,
}

/// Whether the value fits, and the properties that were looked at.
type Verdict = (bool, Vec<String>);

impl Checker {
    fn check(&self, schema: &Value, value: &Value) -> Verdict {
        let keywords = match schema {
            Value::Bool(fits) => return (*fits, Vec::new()),
            schema => schema.as_object().expect("a schema is an object or a truth value"),
        };
        let mut seen: Vec<String> = Vec::new();
        let mut fits = true;
        for (keyword, said) in keywords {
            fits &= match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "default" | "then" => true,
                // They say what a value names, and how large a number may be.
                "format" => true,
                "additionalProperties" | "unevaluatedProperties" => true,
                "$ref" => {
                    let path = said.as_str().expect("a reference").trim_start_matches('#');
                    let target = self.root.pointer(path).expect("the reference leads somewhere");
                    self.keep(self.check(target, value), &mut seen)
                }
                "type" => kinds(said).iter().any(|kind| is_kind(kind, value)),
                "enum" => said.as_array().expect("a list").contains(value),
                "const" => said == value,
                "pattern" => value.as_str().is_none_or(|text| matches_pattern(said, text)),
                "minimum" => {
                    number(value).is_none_or(|found| found >= number(said).expect("a number"))
                }
                "maximum" => {
                    number(value).is_none_or(|found| found <= number(said).expect("a number"))
                }
                "exclusiveMinimum" => {
                    number(value).is_none_or(|found| found > number(said).expect("a number"))
                }
                "minItems" => value
                    .as_array()
                    .is_none_or(|items| items.len() as u64 >= said.as_u64().expect("a number")),
                "items" => value
                    .as_array()
                    .is_none_or(|items| items.iter().all(|item| self.check(said, item).0)),
                "required" => value.as_object().is_none_or(|map| {
                    said.as_array()
                        .expect("a list")
                        .iter()
                        .all(|name| map.contains_key(name.as_str().expect("a name")))
                }),
                "properties" => value.as_object().is_none_or(|map| {
                    let said = said.as_object().expect("an object");
                    map.iter().all(|(key, found)| match said.get(key) {
                        Some(schema) => {
                            seen.push(key.clone());
                            self.check(schema, found).0
                        }
                        None => true,
                    })
                }),
                "anyOf" | "oneOf" | "allOf" => {
                    let schemas = said.as_array().expect("a list");
                    let verdicts: Vec<_> =
                        schemas.iter().map(|one| self.check(one, value)).collect();
                    let count = verdicts.iter().filter(|verdict| verdict.0).count();
                    for verdict in verdicts {
                        self.keep(verdict, &mut seen);
                    }
                    match keyword.as_str() {
                        "anyOf" => count > 0,
                        "oneOf" => count == 1,
                        _ => count == schemas.len(),
                    }
                }
                "if" => match self.check(said, value).0 {
                    true => self.keep(self.check(&schema["then"], value), &mut seen),
                    false => true,
                },
                other => panic!("unknown keyword {other}"),
            };
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            if let (Some(said), Some(map)) = (keywords.get(keyword), value.as_object()) {
                let others = map.iter().filter(|(key, _)| !seen.contains(key));
                fits &= others.into_iter().all(|(_, found)| self.check(said, found).0);
            }
        }
        (fits, seen)
    }

    fn keep(&self, verdict: Verdict, seen: &mut Vec<String>) -> bool {
        if verdict.0 {
            seen.extend(verdict.1);
        }
        verdict.0
    }
}

fn kinds(said: &Value) -> Vec<&str> {
    match said {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => vec![kind.as_str().expect("a kind")],
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown kind {other}"),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

/// The few patterns of the schema, understood by hand.
fn matches_pattern(said: &Value, text: &str) -> bool {
    let said = said.as_str().expect("a pattern");
    if said == "\\S" {
        return !text.trim().is_empty();
    }
    if said == ":" {
        return text.contains(':');
    }
    if said.contains("(ms|s|m|h)") {
        let text = text.trim();
        let unit = text.trim_start_matches(|found: char| found.is_ascii_digit() || found == '.');
        return text.starts_with("${")
            || (unit.len() < text.len() && ["ms", "s", "m", "h"].contains(&unit.trim()));
    }
    if said.contains("->") {
        let Some((from, to)) = text.split_once("->") else { return false };
        let phases =
            said.split_once('(').and_then(|(_, rest)| rest.split_once(')')).expect("phases").0;
        return [from, to].iter().all(|one| {
            phases.split('|').any(|phase| phase.trim_start_matches('\\') == one.trim())
        });
    }
    let words = said.strip_prefix("^\\s*(").and_then(|rest| rest.strip_suffix(")\\s*$"));
    let words = words.unwrap_or_else(|| panic!("unknown pattern {said}"));
    words.split('|').any(|word| {
        let mut plain = String::new();
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            if letter == '[' {
                plain.extend(letters.next());
                letters.nth(1);
            } else {
                plain.push(letter);
            }
        }
        plain == text.trim().to_lowercase()
    })
}

fn accepts(yaml: &str) -> bool {
    let mut report = Report::new();
    let document = parse(&Arc::new(Source::new("a.yaml", yaml)), &mut report);
    assert!(report.is_empty(), "{yaml}: {report:?}");
    let root = card_schema();
    let checker = Checker { root: root.clone() };
    checker.check(&root, &document.expect("read").tree.to_json()).0
}

#[test]
fn every_field_of_every_type_is_there_with_a_description() {
    let schema = card_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["unevaluatedProperties"], json!(false));
    for card_type in CardType::ALL {
        let of_type = &schema["$defs"][card_type.as_str()];
        let properties = of_type["properties"].as_object().expect("properties");
        for field in FIELDS.iter().filter(|field| field.name != "type") {
            let there = properties.get(field.name);
            assert_eq!(
                there.is_some(),
                field.types.contains(&card_type),
                "{card_type}: {}",
                field.name
            );
            if let Some(shape) = there {
                assert!(shape["description"].is_string(), "{} has no description", field.name);
            }
            let required = of_type["required"].as_array().expect("a list");
            let needed = field.required.contains(&card_type);
            assert_eq!(
                required.contains(&json!(field.name)),
                needed,
                "{card_type}: {}",
                field.name
            );
        }
    }
}

#[test]
fn enums_hold_the_values_of_the_format() {
    let schema = card_schema();
    let at =
        |path: &str| schema.pointer(path).unwrap_or_else(|| panic!("{path} is missing")).clone();
    assert_eq!(
        at("/$defs/agent/properties/history_source/enum"),
        json!(["none", "messages", "child", "orchestrator", null])
    );
    assert_eq!(
        at("/$defs/agent/properties/history_merge_target/enum"),
        json!(["none", "child", "orchestrator", null])
    );
    assert_eq!(
        at("/$defs/orchestrator/properties/plan_type/enum"),
        json!(["full", "iterative", null])
    );
    assert_eq!(at("/$defs/evaluator_optimizer/properties/min_rating/default"), "GOOD");
    assert_eq!(at("/$defs/a2a/properties/transport/enum"), json!(["JSONRPC", "HTTP+JSON", null]));
    assert_eq!(
        at("/$defs/hook/properties/policy/enum"),
        json!(["abort", "deny", "continue", null])
    );
    assert_eq!(at("/$defs/hook/properties/on/anyOf/0/enum").as_array().map(Vec::len), Some(11));
    assert!(at("/properties/type/anyOf/0/enum").as_array().is_some_and(|types| types.len() == 10));
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, root: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(path) = map.get("$ref").and_then(Value::as_str) {
                    assert!(root.pointer(path.trim_start_matches('#')).is_some(), "{path}");
                }
                map.values().for_each(|value| walk(value, root));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, root)),
            _ => {}
        }
    }
    let schema = card_schema();
    walk(&schema, &schema);
}

#[test]
fn good_cards_fit() {
    for yaml in [
        "name: a\n",
        "type: agent\nmodel: x\nshell: yes\nskills: []\nmessages: a.md\n",
        "type: Chain\nsequence: [a, b]\ncumulative: true\n",
        "type: maker\nworker: w\nk: 3\n",
        "type: smart\nsubagents: true\n",
        "type: ''\nmodel: x\n",
        "type: iterative_planner\nagents: [a]\nplan_iterations: -1\n",
        "type: parallel\nfan_out: [a]\nlifecycle_hooks: {on_start: 'h.py:f'}\n",
        "type: a2a\nurl: https://x\nheaders: {a: b}\n",
        "function_tools:\n- t.py:f\n- {entrypoint: 't.py:g', variant: code}\n",
        "mcp_connect: [{target: x}]\nrequest_params: {max_iterations: 3, other: [1]}\n",
        "lifecycle_hooks:\n  on_start: hooks.py:start_agent\n  on_shutdown: { run: hooks.py:stop_agent, timeout: 5s }\n\
         hooks:\n  - { on: wrap_tool_call, run: guard.py:check, policy: deny, when: \"tool.name == 'shell'\", name: guard }\n  \
         - { on: before_agent, run: [\"./audit.sh\", \"--strict\"], after: [guard] }\n  \
         - { on: \"bootstrapping -> idle\", run: setup.py:once }\n  - { use: retry, with: { attempts: 3 } }\n",
        "hooks: [{ use: result_schema, with: { output: { file: a.json } } }]\n",
        "hooks: [{ use: shell, with: { limit: 5s, pass_env: [LANG], otherwise: deny } }]\n",
        "hooks: [{ use: timeout, with: }]\n",
        "tool_hooks: {before_tool_call: 'h.py:f'}\n",
    ] {
        assert!(accepts(yaml), "{yaml}");
    }
}

#[test]
fn bad_cards_do_not_fit() {
    for yaml in [
        "name: 5\n",
        "colour: red\n",
        "type: flow\n",
        "type: chain\n",
        "type: chain\nsequence: []\n",
        "type: chain\nsequence: [a]\nmodel: x\n",
        "sequence: [a]\n",
        "type: router\nagents: [a]\ntool_hooks: {}\n",
        "type: a2a\nurl: x\nhooks: []\n",
        "schema_version: 2\n",
        "subagents:\n",
        "model: 5\n",
        "max_parallel: 0\n",
        "child_timeout_sec: 0\n",
        "history_merge_target: messages\n",
        "lifecycle_hooks: {on_begin: 'h.py:f'}\n",
        "lifecycle_hooks: {on_start: 5}\n",
        "lifecycle_hooks: {on_start: nofunction}\n",
        "lifecycle_hooks: {on_start: {run: 'h.py:f', timeout: 5}}\n",
        "hooks: [{run: 'h.py:f'}]\n",
        "hooks: [{on: before_agent}]\n",
        "hooks: [{on: sometime, run: 'h.py:f'}]\n",
        "hooks: [{on: 'idle -> nowhere', run: 'h.py:f'}]\n",
        "hooks: [{on: before_agent, run: 'h.py:f', retries: 11}]\n",
        "hooks: [{on: before_agent, run: 'h.py:f', colour: red}]\n",
        "hooks: [{on: before_agent, run: 'h.py:f', use: retry}]\n",
        "hooks: [{ use: retry, with: { attempt: 3 } }]\n",
        "hooks: [{ use: result_schema, with: { output: { path: a.json } } }]\n",
        "hooks: [{ use: shell, with: { otherwise: sometimes } }]\n",
        "mcp_connect: [{name: x}]\n",
        "mcp_connect: [{target: x, connector_id: y}]\n",
    ] {
        assert!(!accepts(yaml), "{yaml}");
    }
}

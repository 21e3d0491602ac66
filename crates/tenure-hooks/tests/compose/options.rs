//! What is wrong with options is told at once, each at its field, and in plain words.

use serde_json::{Value, json};
use tenure_hooks::ready::{self, Bench};

fn refused(hook: &str, with: &Value) -> Vec<(String, String)> {
    let hook = ready::find(hook).expect("it works here");
    let refused = hook.make_or_all(with, &Bench::new()).expect_err("it is refused");
    let first = hook.make(with, &Bench::new()).expect_err("it is refused");
    assert_eq!(refused.first(), Some(&first), "the first of all is the one that `make` tells");
    refused.iter().map(|it| (it.field().to_owned(), it.message().to_owned())).collect()
}

fn fields(hook: &str, with: &Value) -> Vec<String> {
    refused(hook, with).into_iter().map(|(field, _)| field).collect()
}

#[test]
fn everything_that_is_wrong_is_told() {
    for (hook, with, expected) in [
        (
            "retry",
            json!({ "factor": 0.5, "jitter": "ful", "atempts": 3, "initial_delay": 5 }),
            vec!["jitter", "atempts", "initial_delay", "factor"],
        ),
        ("retry", json!({ "attempts": 0, "factor": 0.5 }), vec!["attempts", "factor"]),
        (
            "retry",
            json!({ "budget": { "ratio": "a", "rato": 1 } }),
            vec!["budget.ratio", "budget.rato"],
        ),
        // Places in lists are those of the file, whatever was wrong before them.
        (
            "pii",
            json!({ "detect": ["mail", "email", 3], "strategy": "hide" }),
            vec!["detect[0]", "detect[2]", "strategy"],
        ),
        (
            "approval",
            json!({ "tools": { "a": { "wen": "x", "when": 3 }, "b": 4 } }),
            vec!["tools.a.wen", "tools.a.when", "tools.b"],
        ),
        ("retry", json!([]), vec![""]),
    ] {
        let mut found = fields(hook, &with);
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{hook} {with}");
    }
}

#[test]
fn what_only_follows_from_something_else_is_not_told() {
    for (hook, with, expected) in [
        // Without `models`, there is none to fall back to.
        ("fallback", json!({ "model": ["passthrough"] }), "model"),
        ("fallback", json!({ "models": 3 }), "models"),
        // Without a limit, there is none at all.
        ("timeout", json!({ "model": 20 }), "model"),
        // An answer is said only with `on_failure: answer`, which it was meant to be.
        ("retry", json!({ "on_failure": "anser", "answer": "sorry" }), "on_failure"),
        // A pattern has a name, and here it has a wrong one.
        ("pii", json!({ "patterns": [{ "name": 3, "pattern": "a" }] }), "patterns[0].name"),
    ] {
        assert_eq!(fields(hook, &with), [expected], "{hook} {with}");
    }
}

#[test]
fn no_more_is_told_than_anybody_reads() {
    let with: Value = (0..500).map(|at| (format!("unknown_{at}"), json!(1))).collect();
    assert_eq!(refused("retry", &with).len(), 20);
}

#[test]
fn it_is_told_in_plain_words() {
    for (hook, with, field, message) in [
        (
            "retry",
            json!({ "attempts": "four" }),
            "attempts",
            "it is the text \"four\"; expected a whole number",
        ),
        (
            "retry",
            json!({ "attempts": 1.5 }),
            "attempts",
            "it is the number 1.5; expected a whole number",
        ),
        (
            "retry",
            json!({ "attempts": -1 }),
            "attempts",
            "it is the number -1; expected a whole number from 0 to 4294967295",
        ),
        ("retry", json!({ "attempts": null }), "attempts", "it is empty; expected a whole number"),
        ("retry", json!({ "factor": true }), "factor", "it is true; expected a number"),
        ("retry", json!({ "on": "timeout" }), "on", "it is the text \"timeout\"; expected a list"),
        ("retry", json!({ "budget": [] }), "budget", "it is a list; expected a table"),
        (
            "retry",
            json!({ "initial_delay": 5 }),
            "initial_delay",
            "the limit `5` has no unit; write for example `5s` or `5ms`",
        ),
        (
            "retry",
            json!({ "initial_delay": 2.5 }),
            "initial_delay",
            "the limit `2.5` has no unit; write for example `2.5s` or `2.5ms`",
        ),
        (
            "retry",
            json!({ "initial_delay": {} }),
            "initial_delay",
            "it is a table; expected a time with its unit, such as `30s` or `500ms`",
        ),
        (
            "retry",
            json!({ "atempts": 5 }),
            "atempts",
            "unknown field `atempts`; did you mean `attempts`?",
        ),
        (
            "format",
            json!({ "to": "plan" }),
            "to",
            "unknown value `plan`; did you mean `plain`? it is one of `json`, `json_answer`, \
             `markdown`, `plain`",
        ),
        (
            "format",
            json!({ "to": 3 }),
            "to",
            "it is the number 3; expected one of `json`, `json_answer`, `markdown`, `plain`",
        ),
        (
            "format",
            json!({ "pretty": "yes" }),
            "pretty",
            "it is the text \"yes\"; expected true or false",
        ),
        (
            "format",
            json!({ "colour": 1 }),
            "colour",
            "unknown field `colour`; there are `to`, `pretty`",
        ),
        ("pii", json!({ "patterns": [{}] }), "patterns[0]", "`name` is missing"),
    ] {
        let found = refused(hook, &with);
        assert_eq!(found, [(field.to_owned(), message.to_owned())], "{hook} {with}");
    }
}

/// Whether a field is a choice or a list of choices, and whether it may be left out as `null`.
fn choice(root: &Value, schema: &Value) -> (bool, bool) {
    let target = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
    let schema = target.unwrap_or(schema);
    if let Some(values) = schema["enum"].as_array() {
        return (true, values.iter().any(Value::is_null));
    }
    if schema.get("const").is_some() {
        return (true, false);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(variants) = schema[word].as_array() {
            let all: Vec<_> = variants.iter().map(|it| choice(root, it)).collect();
            let null = variants.iter().any(|it| it["type"] == "null") || all.iter().any(|it| it.1);
            return (all.iter().any(|it| it.0), null);
        }
    }
    match schema.get("items") {
        Some(items) => {
            let mut types = schema["type"].as_array().into_iter().flatten();
            (choice(root, items).0, types.any(|it| it == "null"))
        }
        None => (false, false),
    }
}

#[test]
fn every_choice_has_a_default_that_is_told() {
    let mut choices = 0;
    for (_, hook) in ready::all() {
        let root = hook.schema();
        let inner = root["$defs"].as_object().into_iter().flatten().map(|(_, it)| it);
        for table in inner.chain([&root]) {
            let required = table["required"].as_array().cloned().unwrap_or_default();
            for (name, field) in table["properties"].as_object().into_iter().flatten() {
                let (is_choice, is_optional) = choice(&root, field);
                if !is_choice || is_optional || required.iter().any(|it| it == name) {
                    continue;
                }
                choices += 1;
                let has_default = field.get("default").is_some_and(|it| !it.is_null());
                assert!(has_default, "{}: nobody is told the default of `{name}`", hook.name());
            }
        }
    }
    assert!(choices > 30, "only {choices} were looked at");
    let told = |hook: &str, option: &str| {
        let rows = ready::find(hook).expect("it works here").options();
        rows.into_iter().find(|row| row.name == option).and_then(|row| row.default)
    };
    assert_eq!(told("format", "to").as_deref(), Some("\"plain\""));
    assert_eq!(told("approval", "remember").as_deref(), Some("false"));
}

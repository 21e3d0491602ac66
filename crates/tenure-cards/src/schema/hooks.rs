//! The shapes of declared hooks.

use serde_json::{Map, Value, json};
use tenure_core::hook::{Point, Policy};
use tenure_core::phase::Phase;
use tenure_hooks::ready;

use crate::hook::ToolHookSet;

/// What each ready-made hook takes by `with`.
fn options() -> Vec<Value> {
    let taken =
        |name: &str| json!({ "properties": { "use": { "const": name } }, "required": ["use"] });
    let options = ready::all().map(|(_, hook)| {
        let with = json!({ "$ref": format!("#/$defs/with_{}", hook.name()) });
        json!({ "if": taken(hook.name()), "then": { "properties": { "with": with } } })
    });
    options.collect()
}

/// The options of each ready-made hook. What they define for themselves stands beside them, under
/// names that begin with the hook's: `with_retry`, `with_retry.Backoff`.
fn ready_definitions() -> impl Iterator<Item = (String, Value)> {
    ready::all().flat_map(|(_, hook)| {
        let own = format!("with_{}", hook.name());
        let mut schema = hook.schema();
        let mut defined = Map::new();
        if let Value::Object(schema) = &mut schema {
            schema.remove("$schema");
            if let Some(Value::Object(own)) = schema.remove("$defs") {
                defined = own;
            }
        }
        refer_to(&own, &mut schema);
        let options = json!({ "anyOf": [schema, { "type": "null" }] });
        let mut all = vec![(own.clone(), options)];
        for (name, mut schema) in defined {
            refer_to(&own, &mut schema);
            all.push((format!("{own}.{name}"), schema));
        }
        all
    })
}

/// Leads references to a hook's own definitions to where those stand.
fn refer_to(own: &str, schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (field, value) in fields {
                let target = match (&**field, &*value) {
                    ("$ref", Value::String(path)) => path.strip_prefix("#/$defs/"),
                    _ => None,
                };
                match target.map(|name| format!("#/$defs/{own}.{name}")) {
                    Some(target) => *value = target.into(),
                    // Their names are those of options, whatever they are called.
                    None if field == "properties" => {
                        let options = value.as_object_mut().into_iter().flatten();
                        options.for_each(|(_, option)| refer_to(own, option));
                    }
                    // What an option may be is no schema.
                    None if matches!(&**field, "default" | "const" | "enum" | "examples") => {}
                    None => refer_to(own, value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer_to(own, item)),
        _ => {}
    }
}

/// The definitions that fields refer to.
pub(super) fn definitions() -> Map<String, Value> {
    let points: Vec<&str> = Point::ALL.iter().map(|point| point.as_str()).collect();
    let phases: Vec<&str> = Phase::ALL.iter().map(|phase| phase.as_str()).collect();
    let phase = format!("({}|\\*)", phases.join("|"));
    let point = json!({
        "enum": points,
        "description": "A point of an agent's life.",
    });
    let transition = json!({
        "type": "string",
        "pattern": format!("^\\s*{phase}\\s*->\\s*{phase}\\s*$"),
        "description": "A change of phase, such as `bootstrapping -> idle`; `*` is any phase.",
    });
    let names = json!({
        "anyOf": [
            { "type": ["string", "null"] },
            { "type": "array", "items": { "type": "string" } },
        ],
    });
    let ready: Vec<&str> = ready::all().map(|(_, hook)| hook.name()).collect();
    let table = |properties: Value, either: Value| {
        json!({
            "type": "object",
            "properties": properties,
            "oneOf": either,
            "allOf": options(),
            "additionalProperties": false,
        })
    };
    let mut properties = json!({
        "run": {
            "$ref": "#/$defs/hook_run",
            "description": "What is called: a Python function or a command.",
        },
        "use": {
            "description": "The name of a ready-made hook, or of one that is registered, in place of `run`.",
            "anyOf": [{ "enum": ready }, { "type": "string" }],
        },
        "with": { "type": ["object", "null"], "description": "What the hook of `use` is configured with." },
        "name": {
            "type": ["string", "null"],
            "description": "The name in reports and in `before` and `after`; unique in the card.",
        },
        "policy": {
            "enum": [Policy::Abort.as_str(), Policy::Deny.as_str(), Policy::Continue.as_str(), null],
            "description": "What a failure of the hook means; `deny` makes it a guard.",
        },
        "timeout": { "$ref": "#/$defs/duration", "description": "The most time a call may take." },
        "retries": {
            "type": ["integer", "null"], "minimum": 0, "maximum": 10, "default": 0,
            "description": "How often a failed call is made again.",
        },
        "backoff": {
            "$ref": "#/$defs/duration",
            "description": "The wait before the first repetition; doubled for each further one.",
        },
        "when": {
            "type": ["string", "null"],
            "description": "Called only if this expression holds, such as `tool.name == 'shell'`.",
        },
        "order": { "type": ["integer", "null"], "default": 0, "description": "Smaller comes first." },
        "again_on_resume": {
            "type": ["boolean", "null"], "default": false,
            "description": "Called again when a run goes on in another process: for a hook that makes live objects.",
        },
    });
    for (name, description) in [
        (
            "writes",
            "The files that its command writes, relative to the card: they may change between its calls.",
        ),
        ("before", "The hooks that it stands before."),
        ("after", "The hooks that it stands after."),
    ] {
        properties[name] = names.clone();
        properties[name]["description"] = description.into();
    }
    properties["sandbox"] = super::sandbox();
    let lifecycle =
        table(properties.clone(), json!([{ "required": ["run"] }, { "required": ["use"] }]));
    properties["on"] = json!({
        "description": "Where the hook is called: a point, several, or a change of phase.",
        "anyOf": [
            point,
            transition,
            { "type": "array", "items": point, "minItems": 1 },
        ],
    });
    let listed = table(properties, json!([{ "required": ["run", "on"] }, { "required": ["use"] }]));
    let spec = json!({
        "type": "string",
        "pattern": ":",
        "description": "A Python function: `file.py:function`, relative to the card.",
    });
    let command = json!({
        "type": "array",
        "items": { "type": "string" },
        "minItems": 1,
        "description": "A command and its arguments; JSON goes in and comes out.",
    });
    let duration = json!({
        "type": ["string", "null"],
        "pattern": "^\\s*(\\$\\{|[0-9.]+\\s*(ms|s|m|h)\\s*$)",
        "description": "A time with its unit: `500ms`, `30s`, `2m`, `1h`.",
    });
    let by_name = json!({
        "description": "What is called at this point of the agent's life.",
        "anyOf": [
            { "$ref": "#/$defs/hook_spec" },
            { "$ref": "#/$defs/hook_command" },
            lifecycle,
        ],
    });
    let five: Map<String, Value> = ToolHookSet::NAMES
        .iter()
        .map(|name| {
            let spec = json!({ "$ref": "#/$defs/hook_spec" });
            let table = json!({
                "type": "object",
                "properties": { "run": spec },
                "required": ["run"],
                "additionalProperties": false,
            });
            ((*name).to_owned(), json!({ "anyOf": [spec, table, { "type": "null" }] }))
        })
        .collect();
    [
        ("hook_spec", spec),
        ("hook_command", command),
        (
            "hook_run",
            json!({ "anyOf": [{ "$ref": "#/$defs/hook_spec" }, { "$ref": "#/$defs/hook_command" }] }),
        ),
        ("duration", duration),
        ("hook", listed),
        (
            "lifecycle_hooks",
            json!({
                "type": ["object", "null"],
                "properties": { "on_start": by_name, "on_shutdown": by_name },
                "additionalProperties": false,
            }),
        ),
        (
            "tool_hooks",
            json!({ "type": ["object", "null"], "properties": five, "additionalProperties": false }),
        ),
    ]
    .into_iter()
    .map(|(name, schema)| (name.to_owned(), schema))
    .chain(ready_definitions())
    .collect()
}

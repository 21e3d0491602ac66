//! The shape and the description of each field.

use serde_json::{Value, json};
use tenure_core::tool::Effect;

use crate::card::CardType;

/// The schema of a field on a card of this type.
pub(super) fn shape(name: &str, card_type: CardType) -> Value {
    let (mut shape, description) = table(name, card_type);
    if !description.is_empty() {
        shape["description"] = description.into();
    }
    shape
}

fn words() -> Value {
    json!({ "type": ["string", "null"] })
}

fn text() -> Value {
    json!({ "type": "string", "pattern": "\\S" })
}

fn truth(default: bool) -> Value {
    json!({ "type": ["boolean", "null"], "default": default })
}

fn count(default: Option<u64>) -> Value {
    let mut shape = json!({ "type": ["integer", "null"], "minimum": 1 });
    if let Some(default) = default {
        shape["default"] = default.into();
    }
    shape
}

fn seconds(default: Option<f64>) -> Value {
    let mut shape = json!({ "type": ["number", "null"], "exclusiveMinimum": 0 });
    if let Some(default) = default {
        shape["default"] = default.into();
    }
    shape
}

fn texts() -> Value {
    json!({ "type": ["array", "null"], "items": text() })
}

fn some_agents() -> Value {
    json!({ "type": "array", "items": text(), "minItems": 1 })
}

fn one_of(names: &[&str]) -> Value {
    let names: Vec<Value> =
        names.iter().map(|name| (*name).into()).chain(std::iter::once(Value::Null)).collect();
    json!({ "enum": names, "default": names[0] })
}

fn filter() -> Value {
    json!({ "type": ["object", "null"], "additionalProperties": { "type": "array", "items": text() } })
}

fn strings() -> Value {
    json!({ "type": ["object", "null"], "additionalProperties": { "type": ["string", "number", "boolean"] } })
}

fn one_or_more(one: Value) -> Value {
    json!({ "anyOf": [one, { "type": "array", "items": one }, { "type": "null" }] })
}

fn table(name: &str, card_type: CardType) -> (Value, &'static str) {
    match name {
        "name" => (text(), "The agent's name; the file's stem if it is left out."),
        "instruction" => (
            json!({ "type": ["string", "null"], "pattern": "\\S" }),
            "What the model is told; in Markdown the body, and then not here.",
        ),
        "description" => (
            json!({ "type": ["string", "null"], "pattern": "\\S" }),
            "What the agent is for; other agents see it as the description of a tool.",
        ),
        "default" => (truth(false), "Whether this is the agent that people talk to."),
        "tool_only" => (truth(false), "Whether the agent is only for other agents."),
        "schema_version" => {
            (json!({ "enum": [1, null], "default": 1 }), "The version of the card format.")
        }
        "lifecycle_hooks" => (
            json!({ "$ref": "#/$defs/lifecycle_hooks" }),
            "What is called when the agent starts and when it shuts down.",
        ),
        "hooks" => (
            json!({ "type": ["array", "null"], "items": { "$ref": "#/$defs/hook" } }),
            "Hooks at any point of the agent's life.",
        ),
        "tool_hooks" => {
            (json!({ "$ref": "#/$defs/tool_hooks" }), "The five hooks around model and tool calls.")
        }
        "agents" if card_type == CardType::Agent => {
            (texts(), "Agents that this one may call as tools.")
        }
        "agents" => (some_agents(), "The agents that it chooses from or sends to work."),
        "history_source" => (
            one_of(&["none", "messages", "child", "orchestrator"]),
            "What a child knows when it starts.",
        ),
        "history_merge_target" => (
            one_of(&["none", "child", "orchestrator"]),
            "Where a child's conversation goes when it is over.",
        ),
        "max_parallel" => {
            (count(None), "How many children may run at the same time; no limit if left out.")
        }
        "child_timeout_sec" => {
            (seconds(None), "The most time a child's turn may take, in seconds.")
        }
        "max_display_instances" => {
            (count(Some(20)), "How many children are shown before the rest is summed up.")
        }
        "servers" => (texts(), "The tool servers of tenure.toml that the agent uses."),
        "tools" => (filter(), "By server, the tools that are taken."),
        "resources" => (filter(), "By server, the resources that are taken; a tool reads them."),
        "prompts" => (filter(), "By server, the prompts that are taken."),
        "mcp_connect" => (
            mcp_connect(),
            "Tool servers that the card itself describes: a list, or a mapping by name.",
        ),
        "skills" => (one_or_more(text()), "Folders or names of skills; `[]` for none."),
        "model" => (
            words(),
            "The model: `provider.model`, an alias, or one without a network such as `passthrough`; \
             `default_model` of the configuration if it is left out.",
        ),
        "use_history" => {
            (truth(card_type == CardType::Agent), "Whether a turn sees the turns before it.")
        }
        "save_trajectory" => (
            truth(false),
            "Whether what the agent did is written to a file; needs `use_history: false`.",
        ),
        "request_params" => {
            (request_params(), "What steers the model; unknown entries go to its provider.")
        }
        "human_input" => (truth(false), "Whether the model may ask the person."),
        "shell" => (truth(false), "Whether the model may run shell commands."),
        "trim_tool_history" => {
            (truth(false), "Whether old tool calls are dropped from the history after each turn.")
        }
        "harness_tools" => (truth(false), "Whether the model may steer the program itself."),
        "subagents" => (
            json!({ "type": "boolean" }),
            "Whether the model may start copies of the agent for parts of its work.",
        ),
        "subagent_model" => (words(), "The model of those copies."),
        "api_key" => (
            words(),
            "The key for the model's provider; write `${NAME}` to take it from the environment.",
        ),
        "function_tools" => (function_tools(), "Python functions that the model may call."),
        "commands" => (commands(), "Commands for a person who talks to the agent, by name."),
        "tool_input_schema" => (
            tool_input_schema(),
            "What the agent takes when it is called as a tool, as JSON Schema.",
        ),
        "messages" => {
            (one_or_more(text()), "Files with the conversation that the agent starts with.")
        }
        "cwd" => (words(), "The folder in which the shell starts, from the project's folder."),
        "variables" => (json!({}), "Accepted and without meaning."),
        "sequence" => (some_agents(), "The agents, one after another."),
        "cumulative" => (truth(false), "Whether each agent sees everything said before it."),
        "fan_out" => (some_agents(), "The agents that answer at the same time."),
        "fan_in" => (words(), "The agent that puts the answers together."),
        "include_request" => (truth(true), "Whether `fan_in` also sees the request."),
        "generator" => (text(), "The agent that writes."),
        "evaluator" => (text(), "The agent that judges."),
        "min_rating" => {
            let mut shape = one_of(&["EXCELLENT", "GOOD", "FAIR", "POOR"]);
            shape["default"] = "GOOD".into();
            (shape, "The rating that is good enough.")
        }
        "max_refinements" => {
            (count(Some(3)), "The most times that the generator is asked to do better.")
        }
        "refinement_instruction" => (words(), "What the generator is told beside the feedback."),
        "plan_type" => (
            one_of(&["full", "iterative"]),
            "Whether the whole plan is made first, or one step at a time.",
        ),
        "plan_iterations" => {
            let default = if card_type == CardType::Orchestrator { 5 } else { -1 };
            let shape = json!({
                "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": -1 }, { "type": "null" }],
                "default": default,
            });
            (shape, "The most times that it plans; -1 for no limit.")
        }
        "worker" => (text(), "The agent that is sampled."),
        "k" => (count(Some(3)), "How far ahead an answer must be."),
        "max_samples" => (count(Some(50)), "The most samples."),
        "match_strategy" => {
            (one_of(&["exact", "normalized", "structured"]), "When two answers count as the same.")
        }
        "red_flag_max_length" => {
            (count(None), "Answers longer than this many characters are thrown away.")
        }
        "url" => (text(), "Where the agent is."),
        "transport" => (one_of(&["JSONRPC", "HTTP+JSON"]), "How it is reached."),
        "streaming" => (truth(true), "Whether answers are streamed."),
        "polling" => (truth(false), "Whether it is asked again and again for its answer."),
        "accepted_output_modes" => (texts(), "The media types that are taken."),
        "headers" => (strings(), "Headers of every request."),
        "auth" => (strings(), "How to prove who is asking."),
        "relative_card_path" => (words(), "Where its card is, relative to the address."),
        "request_timeout_seconds" => {
            (seconds(Some(120.0)), "The most time a request may take, in seconds.")
        }
        // A field without a description here is caught by a test; any value is better than none.
        _ => (json!({}), ""),
    }
}

fn mcp_connect() -> Value {
    let server = json!({
        "type": "object",
        "properties": {
            "target": { "type": "string", "description": "An address or a command." },
            "connector_id": { "type": "string", "description": "A provider's connector, in place of a target." },
            "name": words(),
            "description": words(),
            "management": one_of(&["client", "provider"]),
            "headers": strings(),
            "access_token": words(),
            "defer_loading": truth(false),
            "sandbox": super::sandbox(),
            "auth": strings(),
            "protocol_mode": one_of(&["auto", "modern", "legacy"]),
        },
        "oneOf": [{ "required": ["target"] }, { "required": ["connector_id"] }],
        "additionalProperties": false,
    });
    json!({ "anyOf": [
        { "type": "array", "items": server },
        { "type": "object", "additionalProperties": server },
        { "type": "null" },
    ] })
}

fn request_params() -> Value {
    json!({
        "type": ["object", "null"],
        "properties": {
            "max_iterations": count(None),
            "temperature": { "type": ["number", "null"], "minimum": 0 },
            "maxTokens": count(None),
            "max_tokens": count(None),
            "model": words(),
            "use_history": { "type": ["boolean", "null"] },
            "parallel_tool_calls": { "type": ["boolean", "null"] },
            "tool_result_mode": one_of(&["postprocess", "passthrough", "selectable"]),
        },
        "additionalProperties": true,
    })
}

fn function_tools() -> Value {
    let spec = json!({ "$ref": "#/$defs/hook_spec" });
    let table = json!({
        "type": "object",
        "properties": {
            "entrypoint": spec,
            "effect": {
                "enum": [Effect::Idempotent, Effect::Keyed, Effect::AtMostOnce, null],
                "description": "What a crash means for a call under way: it is made again, it is made again with the same key, or a person says what came of it.",
            },
            "variant": { "const": "code" },
            "code_arg": words(),
            "language": words(),
            "sandbox": super::sandbox(),
        },
        "required": ["entrypoint"],
        "additionalProperties": false,
    });
    json!({ "anyOf": [
        spec,
        { "type": "array", "items": { "anyOf": [spec, table] } },
        { "type": "null" },
    ] })
}

fn commands() -> Value {
    json!({
        "type": ["object", "null"],
        "additionalProperties": {
            "type": "object",
            "properties": {
                "description": text(),
                "input_hint": words(),
                "handler": { "$ref": "#/$defs/hook_spec" },
                "key": words(),
            },
            "required": ["description", "handler"],
            "additionalProperties": false,
        },
    })
}

fn tool_input_schema() -> Value {
    json!({
        "type": ["object", "null"],
        "properties": {
            "type": { "const": "object" },
            "properties": { "type": "object", "additionalProperties": { "type": ["object", "boolean"] } },
            "required": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["type"],
    })
}

//! The JSON Schema of a card, for editors: completion, descriptions, and a first check while typing.
//!
//! Which field belongs to which type, and where it is needed, is taken from the one table that the
//! reader of cards uses, [`FIELDS`]; only shapes and descriptions are said
//! here. [`load`](crate::check::load) checks much more than a schema can.

mod fields;
mod hooks;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::card::{CardType, FIELDS};

/// The JSON Schema (draft 2020-12) of the fields of a card, of every type.
///
/// A property that does not belong to the card's type is refused by `unevaluatedProperties`; the
/// types are told apart by `if` and `then`. Of a Markdown card it describes the front matter.
pub fn card_schema() -> Value {
    let mut defs = hooks::definitions();
    let mut branches = Vec::new();
    for card_type in CardType::ALL {
        let name = card_type.as_str();
        defs.insert(name.to_owned(), of_type(card_type));
        let then = json!({ "$ref": format!("#/$defs/{name}") });
        branches.push(json!({ "if": is_type(card_type), "then": then }));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:tenure:schema:card",
        "title": "Agent card",
        "description": "What an agent is: the front matter of a Markdown card, or a YAML card.",
        "type": "object",
        "properties": { "type": type_field() },
        "allOf": branches,
        "unevaluatedProperties": false,
        "$defs": defs,
    })
}

/// The fields of one type.
fn of_type(card_type: CardType) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in FIELDS.iter().filter(|field| field.types.contains(&card_type)) {
        if field.name != "type" {
            properties.insert(field.name.to_owned(), fields::shape(field.name, card_type));
        }
        if field.required.contains(&card_type) {
            required.push(field.name);
        }
    }
    json!({ "properties": properties, "required": required })
}

/// The condition that a card is of this type. A card that says none is an agent.
fn is_type(card_type: CardType) -> Value {
    let mut names = vec![card_type.as_str()];
    if card_type == CardType::Agent {
        names.extend(["smart", ""]);
    }
    let is = json!({ "properties": { "type": { "pattern": any_case(&names) } } });
    match card_type {
        // A missing property satisfies `properties`.
        CardType::Agent => {
            json!({ "anyOf": [is, { "properties": { "type": { "type": "null" } } }] })
        }
        _ => json!({ "properties": is["properties"], "required": ["type"] }),
    }
}

fn type_field() -> Value {
    let mut names: Vec<&str> = CardType::ALL.iter().map(|card_type| card_type.as_str()).collect();
    names.push("smart");
    let pattern = any_case(&[&names[..], &[""]].concat());
    json!({
        "description": "What kind of agent this is; `agent` if it is left out. Any case.",
        "default": "agent",
        "anyOf": [{ "enum": names }, { "type": "string", "pattern": pattern }, { "type": "null" }],
    })
}

/// A pattern for exactly these words in any case, with white space around them.
fn any_case(words: &[&str]) -> String {
    let folded = |word: &str| -> String {
        let class = |letter: char| match letter.is_ascii_alphabetic() {
            true => format!("[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase()),
            false => letter.to_string(),
        };
        word.chars().map(class).collect()
    };
    let words: Vec<String> = words.iter().map(|word| folded(word)).collect();
    format!("^\\s*({})\\s*$", words.join("|"))
}

/// `sandbox` of a hook or a server: a preset, or a table.
fn sandbox() -> Value {
    let presets = ["read-only", "workspace-write", "full"];
    json!({
        "description": "What its process may do, if that is not what the project says.",
        "anyOf": [
            { "enum": presets },
            {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "preset": { "enum": presets },
                    "network": { "type": "boolean" },
                    "write": { "type": "array", "items": { "type": "string" } },
                },
            },
        ],
    })
}

//! The JSON in what a model says.

use serde_json::{Deserializer, Value};

/// How many braces are tried before an answer counts as one without JSON.
const TRIES: usize = 64;

/// The first JSON object in `text`: alone, in a fence, or among words.
pub(super) fn object_in(text: &str) -> Option<Value> {
    let starts = text.match_indices('{').map(|(at, _)| at).take(TRIES);
    starts.into_iter().find_map(|at| {
        let mut values = Deserializer::from_str(&text[at..]).into_iter::<Value>();
        values.next()?.ok().filter(Value::is_object)
    })
}

/// The text of the field `key`; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_alone_in_fences_and_among_words() {
        for text in [
            r#"{"a": 1}"#,
            "```json\n{\"a\": 1}\n```",
            r#"Sure {this}: {"a": 1} and {"a": 2}."#,
            r#"a set {1, 2} then {"a":1}"#,
        ] {
            assert_eq!(object_in(text), Some(json!({ "a": 1 })), "{text}");
        }
        for text in ["", "no", "{", "[1]", r#"{"a": "#] {
            assert_eq!(object_in(text), None, "{text}");
        }
    }

    #[test]
    fn a_wall_of_braces_ends_quickly() {
        assert_eq!(object_in(&"{".repeat(1_000_000)), None);
    }
}

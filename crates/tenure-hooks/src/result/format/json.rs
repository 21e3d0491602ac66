//! JSON in answers.

use serde_json::{Deserializer, Value};

/// How many places are tried at most.
const PLACES: usize = 100;

/// The JSON that an answer is, or has in it: in a block of code, or between words. A text that is
/// only a number or a word is none.
pub(super) fn find(answer: &str) -> Option<Value> {
    let whole = answer.trim();
    if let Some(value) = parse(whole) {
        return Some(value);
    }
    let in_fence = fences(answer).find_map(|block| parse(block.trim()));
    in_fence.or_else(|| {
        let begins = answer.match_indices(['{', '[']).take(PLACES);
        begins.map(|(at, _)| at).find_map(|at| {
            let mut values = Deserializer::from_str(&answer[at..]).into_iter::<Value>();
            values.next()?.ok().filter(is_one)
        })
    })
}

fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(is_one)
}

fn is_one(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// What is in the blocks of code.
fn fences(answer: &str) -> impl Iterator<Item = &str> {
    let parts = answer.split("```").skip(1).step_by(2);
    parts.map(|block| block.split_once('\n').map_or(block, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::find;
    use serde_json::json;

    #[test]
    fn json_is_found_wherever_it_is() {
        let expected = Some(json!({ "a": [1] }));
        for answer in [
            r#"{"a": [1]}"#,
            "Here it is:\n```json\n{\"a\": [1]}\n```\nEnjoy {that}.",
            r#"The answer is {"a": [1]}, I think."#,
            "{not json} but {\"a\": [1]}",
        ] {
            assert_eq!(find(answer), expected, "{answer}");
        }
        for answer in ["", "12", "\"text\"", "a {b} c", "null", "{"] {
            assert_eq!(find(answer), None, "{answer}");
        }
    }

    #[test]
    fn many_braces_do_not_take_long() {
        let since = std::time::Instant::now();
        assert_eq!(find(&"{".repeat(200_000)), None);
        assert!(since.elapsed() < std::time::Duration::from_secs(5));
    }
}

//! What is wrong with an option, in words for whoever wrote it.

use super::Refusal;
use serde::de::{self, Expected, Unexpected};
use serde_json::Value;
use std::fmt;

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Wrong {
    /// The field, as in `edits[0].keep`; empty if it is about the whole.
    pub(super) path: String,
    /// What is written there; none, if it is about the whole.
    pub(super) at: Option<*const Value>,
    message: String,
}

impl Wrong {
    fn new(message: String) -> Self {
        Self { path: String::new(), at: None, message }
    }

    /// The same, in this part of what holds it: a key, or `[0]`.
    pub(super) fn inside(mut self, part: &str, value: &Value) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{part}{dot}{}", self.path);
        self.at.get_or_insert(value);
        self
    }

    pub(super) fn into_refusal(self) -> Refusal {
        Refusal::new(self.path, self.message)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("it is {}; expected {}", words(found), kind(&expected.to_string())))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let kind = match range(&expected) {
            Some(range) => format!("a whole number {range}"),
            None => kind(&expected),
        };
        Self::new(format!("it is {}; expected {kind}", words(found)))
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        let near = nearest(found, expected);
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Self::new(format!("unknown value `{found}`; {near}it is one of {}", one_of(expected)))
    }

    fn unknown_field(found: &str, expected: &'static [&'static str]) -> Self {
        let help = match (nearest(found, expected), expected) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, []) => "there are none".to_owned(),
            (None, several) => format!("there are {}", one_of(several)),
        };
        Self::new(format!("unknown field `{found}`; {help}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing"))
    }
}

/// Names as a list: `` `a`, `b` ``.
pub(super) fn one_of(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A text that is longer than this is shown by its beginning.
const MOST: usize = 60;

fn words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(flag) => flag.to_string(),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number}"),
        Unexpected::Char(text) => format!("the text {:?}", text.to_string()),
        Unexpected::Str(text) => match text.char_indices().nth(MOST) {
            Some((end, _)) => format!("the text {:?}", format!("{}…", &text[..end])),
            None => format!("the text {text:?}"),
        },
        Unexpected::Unit | Unexpected::Option => "empty".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// What a type that reads itself says that it expects, as people say it.
fn kind(expected: &str) -> String {
    let plain = match expected {
        "a string" | "a borrowed string" | "string" => "a text",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => {
            "a whole number"
        }
        other if other.starts_with("a nonzero ") => "a whole number, and not 0",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    plain.to_owned()
}

/// The whole numbers that fit.
fn range(expected: &str) -> Option<String> {
    let (least, most) = match expected {
        "u8" => (0, Some(i64::from(u8::MAX))),
        "u16" => (0, Some(i64::from(u16::MAX))),
        "u32" => (0, Some(i64::from(u32::MAX))),
        "u64" | "usize" => (0, None),
        "a nonzero u8" => (1, Some(i64::from(u8::MAX))),
        "a nonzero u16" => (1, Some(i64::from(u16::MAX))),
        "a nonzero u32" => (1, Some(i64::from(u32::MAX))),
        "a nonzero u64" | "a nonzero usize" => (1, None),
        "i8" => (i64::from(i8::MIN), Some(i64::from(i8::MAX))),
        "i16" => (i64::from(i16::MIN), Some(i64::from(i16::MAX))),
        "i32" => (i64::from(i32::MIN), Some(i64::from(i32::MAX))),
        _ => return None,
    };
    Some(match most {
        Some(most) => format!("from {least} to {most}"),
        None => format!("from {least} on"),
    })
}

/// The name that `word` is most likely a slip for: one letter in three may be wrong, or one of them
/// begins as the other.
fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let slips = word.chars().count().div_ceil(3);
    let begins = |name: &str| {
        word.len().min(name.len()) >= 3 && (name.starts_with(word) || word.starts_with(name))
    };
    names
        .iter()
        .map(|name| (distance(word, name), *name))
        .filter(|(distance, name)| *distance <= slips || begins(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters to add, drop, change or swap with their neighbour to get from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let names = ["attempts", "jitter", "initial_delay", "max_delay", "on"];
        for (word, expected) in [
            ("atempts", Some("attempts")),
            ("attempt", Some("attempts")),
            ("jiter", Some("jitter")),
            ("intial_dealy", Some("initial_delay")),
            ("initial", Some("initial_delay")),
            ("no", Some("on")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, &names), expected, "{word}");
        }
    }
}

//! The types that a variable can be declared with.

use serde_json::Value;
use std::fmt;

/// The type of a context variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whatever it is.
    #[default]
    Any,
    /// A text.
    Str,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// True or false.
    Bool,
    /// A list.
    List,
    /// An object.
    Dict,
    /// Whatever it is; a text of the environment or of a file is read as JSON.
    Json,
}

/// What each name in a file means.
const NAMES: &[(&str, Kind)] = &[
    ("any", Kind::Any),
    ("str", Kind::Str),
    ("string", Kind::Str),
    ("text", Kind::Str),
    ("int", Kind::Int),
    ("integer", Kind::Int),
    ("float", Kind::Float),
    ("number", Kind::Float),
    ("bool", Kind::Bool),
    ("boolean", Kind::Bool),
    ("list", Kind::List),
    ("array", Kind::List),
    ("dict", Kind::Dict),
    ("object", Kind::Dict),
    ("map", Kind::Dict),
    ("json", Kind::Json),
];

impl Kind {
    /// The type that a file names so: `str`, `int`, `float`, `bool`, `list`, `dict`, `any`, `json`, and the
    /// names that JSON has for them. Case does not count.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }

    /// Every name that [`Kind::parse`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The type's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Str => "str",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::List => "list",
            Self::Dict => "dict",
            Self::Json => "json",
        }
    }

    /// Whether a value is of this type. Null is of every type: the variable has no value yet.
    pub fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Json, _) | (_, Value::Null) => true,
            (Self::Str, Value::String(_)) | (Self::Bool, Value::Bool(_)) => true,
            (Self::Float, Value::Number(_)) => true,
            (Self::Int, Value::Number(number)) => {
                // A number is whole however it is written.
                !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            (Self::List, Value::Array(_)) | (Self::Dict, Value::Object(_)) => true,
            _ => false,
        }
    }

    /// Checks that a value is of this type; the error says what was found.
    pub fn check(self, value: &Value) -> Result<(), String> {
        match self.fits(value) {
            true => Ok(()),
            false => Err(format!("{} is not {}", shown(value), self.described())),
        }
    }

    /// Reads a text, as an environment or a file has it, as a value of this type.
    pub fn read(self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        let wrong = || format!("{} is not {}", shown(&Value::from(text)), self.described());
        match self {
            Self::Any | Self::Str => Ok(Value::from(text)),
            Self::Json => serde_json::from_str(trimmed).map_err(|_| wrong()),
            Self::Bool => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Ok(Value::Bool(true)),
                "false" | "no" | "off" | "0" | "" => Ok(Value::Bool(false)),
                _ => Err(wrong()),
            },
            Self::Int => trimmed.parse::<i64>().map(Value::from).map_err(|_| wrong()),
            Self::Float => match trimmed.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Value::from(number)),
                _ => Err(wrong()),
            },
            Self::List | Self::Dict => match serde_json::from_str::<Value>(trimmed) {
                Ok(value) if self.fits(&value) && !value.is_null() => Ok(value),
                // A list of words is what people write into an environment.
                _ if self == Self::List && !trimmed.starts_with(['[', '{']) => {
                    let words = trimmed.split(',').map(str::trim).filter(|word| !word.is_empty());
                    Ok(words.map(Value::from).collect())
                }
                _ => Err(wrong()),
            },
        }
    }

    /// Makes a value be of this type: a text is read, a whole number is a number; everything else
    /// has to be of the type already.
    pub fn coerce(self, value: Value) -> Result<Value, String> {
        match value {
            Value::String(text) if !matches!(self, Self::Any | Self::Str | Self::Json) => {
                self.read(&text)
            }
            value => self.check(&value).map(|()| value),
        }
    }

    /// The type in words, with its article.
    pub const fn described(self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Str => "a text (str)",
            Self::Int => "a whole number (int)",
            Self::Float => "a number (float)",
            Self::Bool => "true or false (bool)",
            Self::List => "a list",
            Self::Dict => "an object (dict)",
            Self::Json => "JSON",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A value as a message has it, short.
pub(crate) fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_read_as_the_declared_type() {
        for (kind, text, value) in [
            (Kind::Str, " a ", json!(" a ")),
            (Kind::Any, "1", json!("1")),
            (Kind::Bool, "Yes", json!(true)),
            (Kind::Bool, "0", json!(false)),
            (Kind::Int, " 42", json!(42)),
            (Kind::Float, "1e3", json!(1000.0)),
            (Kind::List, "[1, 2]", json!([1, 2])),
            (Kind::List, "a, b,", json!(["a", "b"])),
            (Kind::Dict, "{\"a\": 1}", json!({ "a": 1 })),
            (Kind::Json, " [1, {}]\n", json!([1, {}])),
        ] {
            assert_eq!(kind.read(text), Ok(value), "{kind} {text:?}");
        }
        for (kind, text) in [
            (Kind::Bool, "maybe"),
            (Kind::Int, "1.5"),
            (Kind::Float, "NaN"),
            (Kind::List, "{}"),
            (Kind::Dict, "[]"),
            (Kind::Dict, "null"),
            (Kind::Json, "{a: 1}"),
        ] {
            let error = kind.read(text).expect_err(text);
            assert!(error.ends_with(&format!("is not {}", kind.described())), "{error}");
        }
    }

    #[test]
    fn null_is_of_every_type_and_every_name_is_known() {
        for name in Kind::names() {
            let kind = Kind::parse(&name.to_uppercase()).expect(name);
            assert!(kind.fits(&Value::Null));
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(Kind::parse("strin"), None);
        assert!(Kind::Int.fits(&json!(2.0)) && !Kind::Int.fits(&json!(2.5)));
    }
}

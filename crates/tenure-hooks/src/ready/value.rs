//! Values in options that are more than texts and numbers. The format in the schema of each says to
//! whoever reads files what it names.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use tenure_core::hook::Limit;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident, $format:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) String);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": $format })
            }
        }
    )+};
}

texts! {
    /// The name of a model, as cards write it.
    ModelName, "model";
    /// A path beneath the project, relative to the file that names it.
    ProjectPath, "path";
    /// An `http` or `https` address.
    Address, "url";
    /// The name of a variable of the environment. Whoever trusts a project is told of it.
    Variable, "env";
}

/// A time with its unit: `500ms`, `30s`, `2m`, `1h`. More than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time with its unit, such as `30s` or `500ms`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
        let limit: Limit = text.parse().map_err(E::custom)?;
        Ok(Time(limit.duration()))
    }

    // A number has no unit. What a text without one is told is right for it, too.
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Time, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Time, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Time, E> {
        self.visit_str(&number.to_string())
    }
}

/// As files write it, for the defaults in schemas.
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.subsec_nanos() {
            0 => serializer.collect_str(&format_args!("{}s", self.0.as_secs())),
            _ => serializer.collect_str(&format_args!("{}ms", self.0.as_millis())),
        }
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "time",
            "pattern": "^\\s*[0-9.]+\\s*(ms|s|m|h)\\s*$",
        })
    }
}

/// A command and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(D::Error::custom("a command is a list that begins with a program"));
        }
        Ok(Self(words))
    }
}

impl JsonSchema for CommandLine {
    fn schema_name() -> Cow<'static, str> {
        "CommandLine".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": { "type": "string" },
            "minItems": 1,
            "format": "command",
        })
    }
}

/// A regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) regex: regex_automata::meta::Regex,
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let regex = regex_automata::meta::Regex::new(&text).map_err(|error| {
            let why = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
            D::Error::custom(format!("`{text}` is no regular expression: {why}"))
        })?;
        Ok(Self { text, regex })
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "regex" })
    }
}

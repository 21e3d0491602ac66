//! The texts in JSON, looked at without anything being made of it.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// Says of a text that nothing can be in it.
pub(in crate::guard) trait Quiet {
    fn is_quiet(&self, text: &str) -> bool;

    /// The same of the name of a field.
    fn is_quiet_name(&self, name: &str) -> bool {
        self.is_quiet(name)
    }
}

/// Whether every text in some JSON is quiet: names, values, and whatever else is written. What is no
/// JSON is not.
pub(in crate::guard) fn all_quiet(json: &str, quiet: &impl Quiet) -> bool {
    let mut json = serde_json::Deserializer::from_str(json);
    let is_quiet = Look(quiet).deserialize(&mut json);
    is_quiet.unwrap_or(false) && json.end().is_ok()
}

/// The same for a value.
pub(in crate::guard) fn value_is_quiet(value: &Value, quiet: &impl Quiet) -> bool {
    match value {
        Value::String(text) => quiet.is_quiet(text),
        Value::Array(items) => items.iter().all(|item| value_is_quiet(item, quiet)),
        Value::Object(fields) => fields
            .iter()
            .all(|(name, field)| quiet.is_quiet_name(name) && value_is_quiet(field, quiet)),
        Value::Null => quiet.is_quiet("null"),
        Value::Bool(value) => quiet.is_quiet(if *value { "true" } else { "false" }),
        Value::Number(number) => quiet.is_quiet(&number.to_string()),
    }
}

struct Look<'q, Q>(&'q Q);

impl<'de, Q: Quiet> DeserializeSeed<'de> for Look<'_, Q> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, Q: Quiet> Visitor<'de> for Look<'_, Q> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        Ok(self.0.is_quiet(text))
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(self.0.is_quiet("null"))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        Ok(self.0.is_quiet(if value { "true" } else { "false" }))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<bool, E> {
        Ok(self.0.is_quiet(&number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<bool, E> {
        Ok(self.0.is_quiet(&number.to_string()))
    }

    // A fraction is written in more than one way, so somebody has to look.
    fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        while let Some(is_quiet) = items.next_element_seed(Look(self.0))? {
            if !is_quiet {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        while let Some(is_quiet) = fields.next_key_seed(Name(self.0))? {
            if !(is_quiet & fields.next_value_seed(Look(self.0))?) {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(false);
            }
        }
        Ok(true)
    }
}

struct Name<'q, Q>(&'q Q);

impl<'de, Q: Quiet> DeserializeSeed<'de> for Name<'_, Q> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_str(self)
    }
}

impl<Q: Quiet> Visitor<'_> for Name<'_, Q> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(self.0.is_quiet_name(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is quiet that has an `x` in it.
    struct NoX;

    impl Quiet for NoX {
        fn is_quiet(&self, text: &str) -> bool {
            !text.contains(['x', '7', 'l'])
        }

        fn is_quiet_name(&self, name: &str) -> bool {
            self.is_quiet(name) && name != "secret"
        }
    }

    #[test]
    fn every_text_is_looked_at_wherever_it_is() {
        for (json, quiet) in [
            (r#"{"a":["b",{"c":"d"}],"e":true,"f":12}"#, true),
            (r#"{"a":["b",{"c":"dx"}],"e":1}"#, false),
            (r#"{"a":["b",{"cx":"d"}],"e":1}"#, false),
            (r#"{"a":"\u0078"}"#, false),
            (r#"{"\u0078":"a"}"#, false),
            (r#"{"secret":"a"}"#, false),
            (r#"{"a":17}"#, false),
            (r#"[-7]"#, false),
            (r#"[null]"#, false),
            (r#"[false]"#, false),
            (r#""x""#, false),
            (r#"["x", "a"]"#, false),
        ] {
            assert_eq!(all_quiet(json, &NoX), quiet, "{json}");
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(value_is_quiet(&value, &NoX), quiet, "{json}");
        }
        for not_json in ["", "{", "{}x", "[1.5]", "a"] {
            assert!(!all_quiet(not_json, &NoX), "{not_json}");
        }
    }
}

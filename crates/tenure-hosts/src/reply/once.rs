//! JSON in which every key of an object is given once.
//!
//! Of `{"deny": "no", "deny": null}` one reader takes the first and another the last. A decision must not depend on
//! that, so there is none in such a text.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Makes a value, and fails on a key that is given twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeysOnce;

impl<'de> DeserializeSeed<'de> for KeysOnce {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeysOnce {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                let key = super::parts::shown_key(&key);
                return Err(A::Error::custom(format!("the key `{key}` is given twice")));
            }
            object.insert(key, entries.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}

/// Reads the first value of a text, and returns it with what follows it.
pub(crate) fn first(text: &str) -> serde_json::Result<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Once>();
    let value = match values.next() {
        Some(value) => value?.0,
        None => Value::Null,
    };
    Ok((value, text.get(values.byte_offset()..).unwrap_or_default()))
}

/// Reads a text that is one value and nothing else.
pub(crate) fn whole(text: &str) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = KeysOnce.deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// A value all of whose keys are given once.
struct Once(Value);

impl<'de> serde::Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        KeysOnce.deserialize(deserializer).map(Self)
    }
}

/// Reads a value that is there, for a field.
pub(crate) fn field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let value = KeysOnce.deserialize(deserializer)?;
    Ok(Some(value).filter(|value| !value.is_null()))
}

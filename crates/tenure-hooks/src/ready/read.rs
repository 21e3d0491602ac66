//! Options read from what a file says. An error knows where it is, so that all of them can be told.

use super::wrong::{Wrong, one_of};
use serde::Deserializer;
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;
use std::iter::Enumerate;
use std::ptr;
use std::slice;

/// The options that this says, as though what is in `left_out` were not written.
pub(super) fn read<O: DeserializeOwned>(
    with: &Value,
    left_out: &[*const Value],
) -> Result<O, Wrong> {
    O::deserialize(Node { value: with, left_out })
}

#[derive(Clone, Copy)]
struct Node<'v> {
    value: &'v Value,
    left_out: &'v [*const Value],
}

impl<'v> Node<'v> {
    fn at(self, value: &'v Value) -> Option<Self> {
        let is_there = !self.left_out.contains(&ptr::from_ref(value));
        is_there.then_some(Self { value, ..self })
    }
}

impl<'v> Deserializer<'v> for Node<'v> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(list) => {
                visitor.visit_seq(Elements { node: self, rest: list.iter().enumerate() })
            }
            Value::Object(table) => {
                visitor.visit_map(Entries { node: self, rest: table.iter(), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'v>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.value {
            Value::String(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Value::Object(table) if table.len() == 1 => {
                let entries = Entries { node: self, rest: table.iter(), value: None };
                visitor.visit_enum(MapAccessDeserializer::new(entries))
            }
            Value::Object(_) => {
                Err(Wrong::custom(format!("give exactly one of {}", one_of(variants))))
            }
            other => {
                let expected = match variants {
                    [only] => format!("`{only}`"),
                    several => format!("one of {}", one_of(several)),
                };
                Err(Wrong::invalid_type(unexpected(other), &expected.as_str()))
            }
        }
    }

    /// A list of its fields in their order would do for serde, and for nobody who writes a file.
    fn deserialize_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.value {
            Value::Array(_) => Err(Wrong::invalid_type(Unexpected::Seq, &"a table")),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        <V: Visitor<'v>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(flag) => Unexpected::Bool(*flag),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Unexpected::Unsigned(number),
            (None, Some(number)) => Unexpected::Signed(number),
            (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

struct Elements<'v> {
    node: Node<'v>,
    rest: Enumerate<slice::Iter<'v, Value>>,
}

impl<'v> SeqAccess<'v> for Elements<'v> {
    type Error = Wrong;

    fn next_element_seed<S: DeserializeSeed<'v>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Wrong> {
        let node = self.node;
        let Some((at, inner)) =
            self.rest.find_map(|(at, value)| node.at(value).map(|inner| (at, inner)))
        else {
            return Ok(None);
        };
        let read = seed.deserialize(inner);
        read.map(Some).map_err(|wrong| wrong.inside(&format!("[{at}]"), inner.value))
    }
}

struct Entries<'v> {
    node: Node<'v>,
    rest: serde_json::map::Iter<'v>,
    value: Option<(&'v str, Node<'v>)>,
}

impl<'v> MapAccess<'v> for Entries<'v> {
    type Error = Wrong;

    fn next_key_seed<S: DeserializeSeed<'v>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Wrong> {
        let node = self.node;
        let Some((key, inner)) =
            self.rest.find_map(|(key, value)| node.at(value).map(|inner| (key.as_str(), inner)))
        else {
            return Ok(None);
        };
        self.value = Some((key, inner));
        let read = seed.deserialize(BorrowedStrDeserializer::<Wrong>::new(key));
        read.map(Some).map_err(|wrong| wrong.inside(key, inner.value))
    }

    fn next_value_seed<S: DeserializeSeed<'v>>(&mut self, seed: S) -> Result<S::Value, Wrong> {
        let Some((key, inner)) = self.value.take() else {
            return Err(Wrong::custom("there is no value without its key"));
        };
        seed.deserialize(inner).map_err(|wrong| wrong.inside(key, inner.value))
    }
}

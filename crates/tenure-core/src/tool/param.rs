//! Types that a tool may take as a parameter.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// A type that a `#[tool]` function may take: it can be read from JSON and says how it looks there.
///
/// Implement it for your own types beside `serde::Deserialize`.
pub trait ToolParam: DeserializeOwned {
    /// The JSON Schema of the type.
    fn schema() -> Value;

    /// The value to take when the model left the parameter out; `None` makes it required.
    fn missing() -> Option<Self> {
        None
    }
}

macro_rules! params {
    ($($kind:literal: $($ty:ty),+;)+) => {
        $($(impl ToolParam for $ty {
            fn schema() -> Value {
                json!({ "type": $kind })
            }
        })+)+
    };
}

params! {
    "string": String, char;
    "boolean": bool;
    "integer": i8, i16, i32, i64, isize, u8, u16, u32, u64, usize;
    "number": f32, f64;
}

impl ToolParam for Value {
    fn schema() -> Value {
        json!({})
    }
}

impl<T: ToolParam> ToolParam for Option<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn missing() -> Option<Self> {
        Some(None)
    }
}

impl<T: ToolParam> ToolParam for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: ToolParam> ToolParam for HashMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

impl<T: ToolParam> ToolParam for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

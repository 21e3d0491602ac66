//! How several writes to one shared key are put together.

use serde_json::{Number, Value};
use std::fmt;
use std::sync::Arc;

/// Puts several writes to one shared key together. Writes are handed to it in call order.
#[derive(Clone)]
#[non_exhaustive]
pub enum Reducer {
    /// The last write counts.
    LastWins,
    /// Values are collected in an array; a written array is appended item by item.
    Append,
    /// Numbers are added up.
    Sum,
    /// Objects are merged, key by key.
    Merge,
    /// Anything else: the value so far, and the one written.
    Custom(Arc<dyn Fn(Option<Value>, Value) -> Value + Send + Sync>),
}

impl Reducer {
    pub(crate) fn apply(&self, old: Option<Value>, new: Value) -> Value {
        match (self, old) {
            (Self::Custom(reduce), old) => reduce(old, new),
            (Self::Append, old) => {
                let mut items = match old {
                    Some(Value::Array(items)) => items,
                    Some(other) => vec![other],
                    None => Vec::new(),
                };
                match new {
                    Value::Array(more) => items.extend(more),
                    one => items.push(one),
                }
                Value::Array(items)
            }
            (Self::Sum, Some(Value::Number(old))) => match new {
                Value::Number(new) => sum(&old, &new),
                other => other,
            },
            (Self::Merge, Some(Value::Object(mut old))) => match new {
                Value::Object(new) => {
                    old.extend(new);
                    Value::Object(old)
                }
                other => other,
            },
            (Self::LastWins | Self::Sum | Self::Merge, _) => new,
        }
    }
}

fn sum(old: &Number, new: &Number) -> Value {
    match (old.as_i64(), new.as_i64()) {
        (Some(a), Some(b)) => Value::from(a.saturating_add(b)),
        _ => Value::from(old.as_f64().unwrap_or_default() + new.as_f64().unwrap_or_default()),
    }
}

impl fmt::Debug for Reducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LastWins => "LastWins",
            Self::Append => "Append",
            Self::Sum => "Sum",
            Self::Merge => "Merge",
            Self::Custom(_) => "Custom",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reducers_put_writes_together_in_order() {
        let fold = |reducer: Reducer, writes: Value| {
            let Value::Array(writes) = writes else { panic!("writes are an array") };
            writes.into_iter().fold(None, |old, new| Some(reducer.apply(old, new)))
        };
        assert_eq!(fold(Reducer::LastWins, json!([1, 2, 3])), Some(json!(3)));
        assert_eq!(fold(Reducer::Append, json!([1, [2, 3]])), Some(json!([1, 2, 3])));
        assert_eq!(fold(Reducer::Sum, json!([1, 2, 3])), Some(json!(6)));
        assert_eq!(fold(Reducer::Sum, json!([1, 0.5])), Some(json!(1.5)));
        let merged = fold(Reducer::Merge, json!([{"a": 1}, {"b": 2}, {"a": 3}]));
        assert_eq!(merged, Some(json!({"a": 3, "b": 2})));
        let longest = Reducer::Custom(Arc::new(|old, new| match old {
            Some(old) if old.to_string().len() >= new.to_string().len() => old,
            _ => new,
        }));
        assert_eq!(fold(longest, json!(["a", "ccc", "bb"])), Some(json!("ccc")));
    }
}

//! A value that becomes JSON when somebody reads it as such.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of state or of memory. A hook that counts something at every call would make more JSON
/// than anybody reads, so it may leave the number as it is.
#[derive(Clone)]
pub(crate) enum Slot {
    Json(Value),
    Typed(Arc<dyn Typed>),
}

/// What a slot can hold beside JSON.
pub(crate) trait Typed: Any + Send + Sync {
    fn to_json(&self) -> Value;
}

impl<T: Clone + Into<Value> + Any + Send + Sync> Typed for T {
    fn to_json(&self) -> Value {
        self.clone().into()
    }
}

impl From<Value> for Slot {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl Slot {
    pub(crate) fn typed<T: Clone + Into<Value> + Any + Send + Sync>(value: T) -> Self {
        Self::Typed(Arc::new(value))
    }

    /// Making it is somebody's code: no lock on the values is held meanwhile.
    pub(crate) fn into_json(self) -> Value {
        match self {
            Self::Json(value) => value,
            Self::Typed(value) => value.to_json(),
        }
    }

    /// The value as it was kept, or as it is read from its JSON. `null` is none.
    pub(crate) fn read<T: DeserializeOwned + Any + Send + Sync>(
        self,
    ) -> Result<Option<Arc<T>>, serde_json::Error> {
        let value = match self {
            Self::Json(value) => value,
            Self::Typed(value) => {
                match Arc::downcast(value.clone() as Arc<dyn Any + Send + Sync>) {
                    Ok(value) => return Ok(Some(value)),
                    Err(_) => value.to_json(),
                }
            }
        };
        match value {
            Value::Null => Ok(None),
            value => serde_json::from_value(value).map(|value| Some(Arc::new(value))),
        }
    }
}

/// All of them as JSON.
pub(crate) fn into_json(slots: BTreeMap<String, Slot>) -> BTreeMap<String, Value> {
    slots.into_iter().map(|(key, slot)| (key, slot.into_json())).collect()
}

/// Puts a value in its place, with a new key only if there is none.
pub(crate) fn put(slots: &mut BTreeMap<String, Slot>, key: &str, slot: Slot) -> Option<Slot> {
    match slots.get_mut(key) {
        Some(known) => Some(std::mem::replace(known, slot)),
        None => slots.insert(key.to_owned(), slot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Clone, Debug, PartialEq, Deserialize)]
    struct Count {
        calls: u64,
    }

    impl From<Count> for Value {
        fn from(count: Count) -> Self {
            json!({ "calls": count.calls })
        }
    }

    #[test]
    fn a_typed_value_is_read_as_it_is_and_as_json() {
        let slot = Slot::typed(Count { calls: 3 });
        assert_eq!(slot.clone().read::<Count>().unwrap().as_deref(), Some(&Count { calls: 3 }));
        assert_eq!(slot.clone().into_json(), json!({ "calls": 3 }));
        assert_eq!(*slot.read::<Value>().unwrap().unwrap(), json!({ "calls": 3 }));
    }

    #[test]
    fn json_is_read_as_a_type_if_it_fits() {
        let read = |value: Value| Slot::from(value).read::<Count>();
        assert_eq!(read(json!({ "calls": 3 })).unwrap().as_deref(), Some(&Count { calls: 3 }));
        assert_eq!(read(Value::Null).unwrap(), None);
        assert!(read(json!({ "calls": "three" })).is_err());
    }
}

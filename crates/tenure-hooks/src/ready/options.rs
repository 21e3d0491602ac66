//! Options of a hook: read, checked, and described.

use super::{About, Makings};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;
use tenure_core::hook::Registration;

/// What a hook takes by `with`. Unknown fields are refused (`#[serde(deny_unknown_fields)]`), what is
/// left out has a default, and the comments of the fields are its documentation.
pub(crate) trait Options: DeserializeOwned + JsonSchema {
    /// What is said of the hook.
    const ABOUT: About;

    /// The hook itself. Whatever cannot work is refused here, and not when it is called.
    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal>;
}

/// Why a hook cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    field: String,
    message: String,
}

impl Refusal {
    /// Something is wrong with this field, as in `edits[0].keep`; with all of them, if it is empty.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The field, as in `edits[0].keep`; empty if it is about the whole.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with it, and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "`{field}`: {}", self.message),
        }
    }
}

impl std::error::Error for Refusal {}

pub(super) fn make<O: Options>(
    with: &Value,
    makings: &dyn Makings,
) -> Result<Registration, Refusal> {
    let nothing = Value::Object(Map::new());
    let with = if with.is_null() { &nothing } else { with };
    if !with.is_object() {
        return Err(Refusal::new("", "`with` is a table of options"));
    }
    let options: O = serde_path_to_error::deserialize(with).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        Refusal::new(path, error.inner().to_string())
    })?;
    options.make(makings).map(|registration| registration.kind(O::ABOUT.name))
}

pub(super) fn schema<O: Options>(generator: SchemaGenerator) -> Value {
    generator.into_root_schema_for::<O>().to_value()
}

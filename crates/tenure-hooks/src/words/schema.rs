//! JSON Schemas.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use std::sync::Arc;

/// A schema, ready to be used. Nothing is fetched for it, and patterns in it take time in proportion
/// to what they are held against.
pub(crate) fn compiled(schema: &Value) -> Result<Arc<Validator>, String> {
    let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
    match options.build(schema) {
        Ok(validator) => Ok(Arc::new(validator)),
        Err(error) => {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!(" at `{at}`") };
            Err(format!("the schema cannot be used{at}: {error}"))
        }
    }
}

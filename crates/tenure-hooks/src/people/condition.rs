//! Expressions and templates over what a hook sees.

use crate::words::{bounded, evaluator, expression};
use minijinja::value::Serde;
use minijinja::{Environment, Expression};
use serde_json::Value;
use std::fmt;
use std::sync::LazyLock;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(evaluator);

/// A strict expression, compiled once.
pub(super) struct Condition {
    text: String,
    compiled: Expression<'static, 'static>,
}

impl Condition {
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        let compiled = expression(&ENVIRONMENT, text);
        let compiled = compiled.map_err(|error| format!("`{text}` is no condition: {error}"))?;
        Ok(Self { text: text.to_owned(), compiled })
    }

    /// Whether it holds; the error says why that cannot be decided.
    pub(super) fn holds(&self, seen: &Value) -> Result<bool, String> {
        let seen = minijinja::Value::from(Serde(seen));
        let value = self.compiled.eval(seen).map_err(|error| error.to_string())?;
        match value.is_undefined() {
            true => Err("what it names is not there".to_owned()),
            false => Ok(value.is_true()),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

/// Why a template cannot be read, if it cannot.
pub(super) fn check_template(text: &str) -> Result<(), String> {
    let read = bounded(text).and_then(|text| ENVIRONMENT.template_from_str(text));
    read.map(drop).map_err(|error| format!("`{text}` is no template: {error}"))
}

/// The template with its places filled in.
pub(super) fn render(text: &str, seen: &Value) -> Result<String, String> {
    let seen = minijinja::Value::from(Serde(seen));
    ENVIRONMENT.render_str(text, seen).map_err(|error| error.to_string())
}

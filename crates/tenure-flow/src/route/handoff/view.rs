//! What the conditions of handoffs see.

use crate::route::RouteCx;
use crate::route::selector::cut;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use tenure_core::chat::Chat;

/// The variables that conditions see: the declared ones and the system's. What was put into the
/// chat without being declared is scratch, and not theirs to see.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// The declared ones; `None` if nothing is declared, and then everything is seen that is there.
    declared: Option<BTreeSet<Box<str>>>,
}

impl View {
    pub(super) fn of(declared: impl IntoIterator<Item = impl Into<Box<str>>>) -> Self {
        Self { declared: Some(declared.into_iter().map(Into::into).collect()) }
    }

    /// The value of a variable. One that is declared and has none is null.
    pub(super) fn value(&self, cx: &RouteCx<'_>, name: &str) -> Option<Value> {
        match &self.declared {
            None => cx.chat.variable(name),
            Some(declared) => {
                let is_seen = declared.contains(name) || Chat::system_keys().contains(&name);
                is_seen.then(|| cx.chat.variable(name).unwrap_or(Value::Null))
            }
        }
    }

    /// The values of these variables.
    pub(super) fn values<'a>(
        &self,
        cx: &RouteCx<'_>,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Map<String, Value> {
        let value = |name: &str| Some((name.to_owned(), self.value(cx, name)?));
        names.into_iter().filter_map(value).collect()
    }
}

/// The values as a person reads them: ` (approved is true, round is 2)`.
pub(super) fn in_words(values: &Map<String, Value>) -> String {
    let mut words = String::new();
    for (name, value) in values {
        let begin = if words.is_empty() { " (" } else { ", " };
        let _ = write!(words, "{begin}{name} is {}", cut(&value.to_string(), 80));
    }
    if !words.is_empty() {
        words.push(')');
    }
    words
}

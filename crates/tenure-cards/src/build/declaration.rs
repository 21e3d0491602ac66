//! A card as hooks read it.

use crate::card::Card;
use serde_json::{Map, Value};
use std::sync::Arc;
use tenure_core::secret::Redactor;

/// Returns the fields of a card as they are written, which resolves no `${VAR}`; only `type` and `model` are those
/// that count. A field that is null is left out, as its default is meant.
pub(super) fn declaration(
    card: &Card,
    model: Option<&str>,
    redactor: &Redactor,
) -> Arc<Map<String, Value>> {
    let written = card.tree().map().unwrap_or_default().iter();
    let mut fields: Map<String, Value> = written
        .map(|(key, node)| (key.text.clone(), node.to_json()))
        .filter(|(_, value)| !value.is_null())
        .collect();
    fields.insert("type".to_owned(), card.card_type().as_str().into());
    if let Some(model) = model.filter(|_| card.kind.model_fields().is_some()) {
        // Nothing keeps a variable that holds a secret from being named in `model`.
        fields.insert("model".to_owned(), redactor.redact(model).into());
    }
    let file = card.source.path().file_name().map(|name| card.dir().join(name));
    if let Some(path) = file.as_deref().and_then(|path| path.to_str()) {
        fields.insert("source_path".to_owned(), path.into());
    }
    Arc::new(fields)
}

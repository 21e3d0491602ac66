//! The kinds of parts.

use super::media::Media;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// One part of a [`Content`](super::Content).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// A text.
    Text(String),
    /// An image, a document, a sound or a film.
    Media(Media),
    /// What a model thought before it answered.
    Thinking(Arc<Thinking>),
    /// A structured value.
    Json(Arc<Value>),
}

/// A thought of a model, as its provider gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Thinking {
    /// The text, empty if the provider keeps it to itself.
    pub text: String,
    /// The provider's own mark of it, sent back unchanged with the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Value>,
}

impl Thinking {
    /// Creates a thought with the provider's `signature`.
    pub fn new(text: impl Into<String>, signature: Option<Value>) -> Self {
        Self { text: text.into(), signature }
    }
}

impl Part {
    /// Returns the text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the media of a media part.
    pub fn as_media(&self) -> Option<&Media> {
        match self {
            Self::Media(media) => Some(media),
            _ => None,
        }
    }

    /// Returns the words of the part as a reader of text has them.
    pub(super) fn written(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Json(value) => Some(Cow::Owned(value.to_string())),
            Self::Media(_) | Self::Thinking(_) => None,
        }
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Media> for Part {
    fn from(media: Media) -> Self {
        Self::Media(media)
    }
}

impl From<Thinking> for Part {
    fn from(thinking: Thinking) -> Self {
        Self::Thinking(Arc::new(thinking))
    }
}

/// Writes a text as it is, and in brackets what the others are.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Media(media) => write!(f, "[{media}]"),
            Self::Thinking(_) => f.write_str("[thinking]"),
            Self::Json(value) => write!(f, "{value}"),
        }
    }
}

//! The serialised form: a text is a string, as ever; several parts are a list of tagged objects.

use super::{Content, Media, Part, Thinking};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_text() {
            true => serializer.serialize_str(self.text()),
            false => serializer.collect_seq(self.parts()),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(text.into())
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Content, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
        let mut content = Vec::new();
        while let Some(part) = parts.next_element::<Part>()? {
            content.push(part);
        }
        Ok(content.into())
    }
}

/// A part with its tag.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged<T, M, H, J> {
    Text { text: T },
    Media(M),
    Thinking(H),
    Json { value: J },
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Part::Text(text) => Tagged::Text { text },
            Part::Media(media) => Tagged::Media(media),
            Part::Thinking(thinking) => Tagged::Thinking(&**thinking),
            Part::Json(value) => Tagged::Json { value: &**value },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Tagged::<String, Media, Thinking, Value>::deserialize(deserializer)? {
            Tagged::Text { text } => Part::Text(text),
            Tagged::Media(media) => Part::Media(media),
            Tagged::Thinking(thinking) => thinking.into(),
            Tagged::Json { value } => Part::Json(Arc::new(value)),
        })
    }
}

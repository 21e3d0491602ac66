//! Content: what a message, an input, a response or a tool result says, in parts.
//!
//! [`Content`] is a list of [`Part`]s of which most are one text; [`Media`] holds bytes, an address
//! or the hash of bytes that are kept elsewhere. Bytes are never part of what is serialised.

mod media;
mod part;
mod wire;

pub use media::{BlobId, Media};
pub use part::{Part, Thinking};

use std::fmt;
use std::sync::Arc;

/// What is said: a text, or several parts of which some are no text.
///
/// A content that is one text takes the room of a `String` and allocates nothing beside it. Cloning
/// one of several parts shares them.
///
/// ```
/// use tenure_core::content::{Content, Media, Part};
///
/// let plain = Content::from("what is this?");
/// assert_eq!(plain.text(), "what is this?");
///
/// let picture = Media::new("image/png", *b"\x89PNG...").named("cat.png");
/// let asked = Content::from(vec![Part::from("what is this?"), Part::from(picture)]);
/// assert_eq!(asked.text(), "what is this?");
/// assert_eq!(asked.to_string(), "what is this?\n[cat.png, image/png, 7 bytes]");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Repr);

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    /// Always a [`Part::Text`].
    Text(Part),
    Mixed(Arc<Mixed>),
}

#[derive(PartialEq, Eq)]
struct Mixed {
    parts: Vec<Part>,
    /// The texts of the parts, joined.
    text: String,
}

impl Content {
    /// Creates a content that says nothing.
    pub const fn new() -> Self {
        Self(Repr::Text(Part::Text(String::new())))
    }

    /// Returns the text of all parts, one behind the other; JSON counts as text, thoughts do not.
    pub fn text(&self) -> &str {
        match &self.0 {
            Repr::Text(part) => part.as_text().unwrap_or_default(),
            Repr::Mixed(mixed) => &mixed.text,
        }
    }

    /// Turns it into its [`text`](Self::text).
    pub fn into_text(self) -> String {
        match self.0 {
            Repr::Text(Part::Text(text)) => text,
            Repr::Text(_) => String::new(),
            Repr::Mixed(mixed) => mixed.text.clone(),
        }
    }

    /// Returns the parts in their order; one for a plain text, also for an empty one.
    pub fn parts(&self) -> &[Part] {
        match &self.0 {
            Repr::Text(part) => std::slice::from_ref(part),
            Repr::Mixed(mixed) => &mixed.parts,
        }
    }

    /// Returns the images, documents and sounds among the parts.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        self.parts().iter().filter_map(Part::as_media)
    }

    /// Whether it is a text and nothing else.
    pub fn is_text(&self) -> bool {
        matches!(self.0, Repr::Text(_))
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Repr::Text(_) => self.text().is_empty(),
            Repr::Mixed(_) => false,
        }
    }

    /// Adds a part behind the others.
    pub fn push(&mut self, part: impl Into<Part>) {
        let part = part.into();
        if self.is_empty() {
            *self = part.into();
            return;
        }
        if let (Repr::Text(Part::Text(text)), Part::Text(more)) = (&mut self.0, &part) {
            text.push_str(more);
            return;
        }
        let mut parts = std::mem::take(self).into_parts();
        parts.push(part);
        *self = parts.into();
    }

    /// Replaces the text and keeps everything else: the new text stands where the first one was, or
    /// behind the other parts if there was none.
    pub fn set_text(&mut self, text: impl Into<String>) {
        let mut text = Some(text.into());
        if !self.is_text() {
            let parts = std::mem::take(self).into_parts();
            let replaced = parts.into_iter().filter_map(|part| match part {
                Part::Text(_) | Part::Json(_) => text.take().map(Part::Text),
                other => Some(other),
            });
            let mut parts: Vec<Part> = replaced.collect();
            parts.extend(text.take().filter(|text| !text.is_empty()).map(Part::Text));
            *self = parts.into();
        } else if let Some(text) = text {
            *self = text.into();
        }
    }

    /// Replaces the text by what `map` makes of it, and keeps everything else; see
    /// [`set_text`](Self::set_text).
    pub fn map_text(&mut self, map: impl FnOnce(&str) -> String) {
        let text = map(self.text());
        self.set_text(text);
    }

    /// Replaces each text for which `edit` returns another one, and returns how many there were.
    pub fn edit_texts(&mut self, mut edit: impl FnMut(&str) -> Option<String>) -> usize {
        let edited: Vec<_> =
            self.parts().iter().map(|part| part.as_text().and_then(&mut edit)).collect();
        let count = edited.iter().flatten().count();
        if count > 0 {
            let parts = std::mem::take(self).into_parts();
            let parts = parts.into_iter().zip(edited);
            *self = parts.map(|(part, text)| text.map_or(part, Part::Text)).collect();
        }
        count
    }

    /// Turns it into its parts; those that are shared are copied.
    pub fn into_parts(self) -> Vec<Part> {
        match self.0 {
            Repr::Text(part) => vec![part],
            Repr::Mixed(mixed) => match Arc::try_unwrap(mixed) {
                Ok(mixed) => mixed.parts,
                Err(mixed) => mixed.parts.clone(),
            },
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::new()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self(Repr::Text(Part::Text(text)))
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Content {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<Part> for Content {
    fn from(part: Part) -> Self {
        match part {
            Part::Text(_) => Self(Repr::Text(part)),
            other => vec![other].into(),
        }
    }
}

impl From<Media> for Content {
    fn from(media: Media) -> Self {
        Part::from(media).into()
    }
}

impl From<Vec<Part>> for Content {
    fn from(mut parts: Vec<Part>) -> Self {
        match &mut parts[..] {
            [] => Self::new(),
            [Part::Text(text)] => std::mem::take(text).into(),
            _ => {
                let text = parts.iter().filter_map(Part::written).collect();
                Self(Repr::Mixed(Arc::new(Mixed { parts, text })))
            }
        }
    }
}

impl FromIterator<Part> for Content {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        parts.into_iter().collect::<Vec<_>>().into()
    }
}

impl PartialEq<str> for Content {
    fn eq(&self, text: &str) -> bool {
        self.is_text() && self.text() == text
    }
}

impl PartialEq<&str> for Content {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

impl PartialEq<String> for Content {
    fn eq(&self, text: &String) -> bool {
        *self == **text
    }
}

/// Writes the text, and of each part that is no text a line with its name, type and size.
impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts().iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{part}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Text(_) => fmt::Debug::fmt(self.text(), f),
            Repr::Mixed(mixed) => f.debug_list().entries(&mixed.parts).finish(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Media, and the hash by which its bytes are known.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

/// An image, a document, a sound or a film: a type, and bytes, an address, or a [`BlobId`].
///
/// Cloning it shares the bytes. Serialised it has the hash of its bytes, never the bytes themselves, so
/// a recorded run refuses media of bytes.
#[derive(Clone)]
pub struct Media(Arc<Inner>);

struct Inner {
    mime: Box<str>,
    name: Option<Box<str>>,
    source: Source,
}

enum Source {
    Bytes { bytes: Arc<[u8]>, id: Arc<OnceLock<BlobId>> },
    Url(Box<str>),
    Blob { id: BlobId, size: u64 },
}

impl Media {
    /// Creates media of these bytes.
    pub fn new(mime: impl Into<Box<str>>, bytes: impl Into<Arc<[u8]>>) -> Self {
        let (bytes, id) = (bytes.into(), Arc::default());
        Self::of(mime.into(), Source::Bytes { bytes, id })
    }

    /// Creates media at an address, from which its reader fetches it.
    pub fn at_url(mime: impl Into<Box<str>>, url: impl Into<Box<str>>) -> Self {
        Self::of(mime.into(), Source::Url(url.into()))
    }

    /// Creates media whose `size` bytes are kept elsewhere, by their hash.
    pub fn stored(mime: impl Into<Box<str>>, id: BlobId, size: u64) -> Self {
        Self::of(mime.into(), Source::Blob { id, size })
    }

    fn of(mime: Box<str>, source: Source) -> Self {
        Self(Arc::new(Inner { mime, name: None, source }))
    }

    /// Gives it a name, as of a file.
    #[must_use]
    pub fn named(self, name: impl Into<Box<str>>) -> Self {
        let source = match &self.0.source {
            Source::Bytes { bytes, id } => Source::Bytes { bytes: bytes.clone(), id: id.clone() },
            Source::Url(url) => Source::Url(url.clone()),
            Source::Blob { id, size } => Source::Blob { id: *id, size: *size },
        };
        Self(Arc::new(Inner { mime: self.0.mime.clone(), name: Some(name.into()), source }))
    }

    /// Returns its MIME type.
    pub fn mime(&self) -> &str {
        &self.0.mime
    }

    /// Returns its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Returns its bytes, if they are here.
    pub fn bytes(&self) -> Option<&Arc<[u8]>> {
        match &self.0.source {
            Source::Bytes { bytes, .. } => Some(bytes),
            Source::Url(_) | Source::Blob { .. } => None,
        }
    }

    /// Returns the address that it is fetched from.
    pub fn url(&self) -> Option<&str> {
        match &self.0.source {
            Source::Url(url) => Some(url),
            Source::Bytes { .. } | Source::Blob { .. } => None,
        }
    }

    /// Returns the hash of its bytes, which is computed once; none if it is at an address.
    pub fn id(&self) -> Option<BlobId> {
        match &self.0.source {
            Source::Bytes { bytes, id } => Some(*id.get_or_init(|| BlobId::of(bytes))),
            Source::Blob { id, .. } => Some(*id),
            Source::Url(_) => None,
        }
    }

    /// Returns the number of its bytes; none if it is at an address.
    pub fn size(&self) -> Option<u64> {
        match &self.0.source {
            Source::Bytes { bytes, .. } => Some(bytes.len() as u64),
            Source::Blob { size, .. } => Some(*size),
            Source::Url(_) => None,
        }
    }
}

impl PartialEq for Media {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.mime() == other.mime()
                && self.name() == other.name()
                && self.url() == other.url()
                && self.size() == other.size()
                && self.id() == other.id()
    }
}

impl Eq for Media {}

/// Writes name, type and size, or the address.
impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            write!(f, "{name}, ")?;
        }
        f.write_str(self.mime())?;
        match (&self.0.source, self.size()) {
            (Source::Url(url), _) => write!(f, ", {url}"),
            (_, Some(size)) => write!(f, ", {}", Size(size)),
            (_, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Media({self})")
    }
}

/// A number of bytes as people read it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 byte"),
            bytes @ ..1_000 => write!(f, "{bytes} bytes"),
            bytes @ ..1_000_000 => write!(f, "{:.1} kB", bytes as f64 / 1e3),
            bytes => write!(f, "{:.1} MB", bytes as f64 / 1e6),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Wire {
    mime: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blob: Option<BlobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl Serialize for Media {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire {
            mime: self.mime().into(),
            name: self.name().map(Into::into),
            url: self.url().map(Into::into),
            blob: self.id(),
            size: self.size(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Media {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { mime, name, url, blob, size } = Wire::deserialize(deserializer)?;
        let media = match (url, blob, size) {
            (Some(url), None, _) => Self::at_url(mime, url),
            (None, Some(id), Some(size)) => Self::stored(mime, id, size),
            _ => {
                let wants = "media has either a `url`, or a `blob` with its `size`";
                return Err(serde::de::Error::custom(wants));
            }
        };
        Ok(match name {
            Some(name) => media.named(name),
            None => media,
        })
    }
}

/// The SHA-256 of bytes: what they are known by wherever they are kept. Written as 64 digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId([u8; 32]);

impl BlobId {
    /// Computes the id of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}

impl FromStr for BlobId {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            let message =
                format!("`{text}` is not the hash of a blob: it has 64 digits, 0-9 and a-f");
            crate::Error::new(crate::ErrorKind::Invalid, message)
        };
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(wrong()),
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(wrong()) };
        let pairs: &[[u8; 2]; 32] = pairs.try_into().map_err(|_| wrong())?;
        let mut id = [0; 32];
        for (byte, [high, low]) in id.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(id))
    }
}

impl Serialize for BlobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

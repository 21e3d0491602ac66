//! Which state of a key somebody has read, for memories that several instances write at once.

use serde_json::Value;
use std::fmt;

/// A value as a memory keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The value.
    pub value: Value,
    /// How often the key has been written; 0 where the memory does not count.
    pub version: u64,
}

/// A value to be kept, and what its writer knew.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The value.
    pub value: Value,
    /// What the writer had read of this key.
    pub read: Read,
}

impl Write {
    /// A value whose writer has read nothing.
    pub fn new(value: impl Into<Value>) -> Self {
        Self { value: value.into(), read: Read::default() }
    }
}

/// What a writer had read of a key before it wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// The version; 0 if there was nothing.
    pub version: u64,
    /// The value, as far as it is known: a run that goes on after a crash knows the version alone.
    pub value: Option<Value>,
}

impl From<Kept> for Read {
    fn from(kept: Kept) -> Self {
        Self { version: kept.version, value: Some(kept.value) }
    }
}

/// Somebody else has written a key meanwhile, and the memory was told not to choose.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Conflict {
    /// Whose memory.
    pub namespace: String,
    /// The key.
    pub key: String,
    /// What the writer had read.
    pub read: Option<Value>,
    /// What it wanted to write.
    pub wanted: Value,
    /// What is there.
    pub there: Value,
    /// Who wrote that.
    pub writer: String,
}

impl Conflict {
    /// A conflict over `key`, for memories. `there` was written by `writer`.
    pub fn new(
        namespace: impl Into<String>,
        key: impl Into<String>,
        write: Write,
        there: Value,
        writer: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            key: key.into(),
            read: write.read.value,
            wanted: write.value,
            there,
            writer: writer.into(),
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, key, there, wanted, writer, .. } = self;
        write!(f, "`{key}` of {namespace} was changed meanwhile: ")?;
        match &self.read {
            Some(read) => write!(f, "{} was read", Short(read))?,
            None => f.write_str("nothing was read")?,
        }
        write!(
            f,
            ", {} is there now (written by {writer}), so {} was not stored; read it again and \
             decide",
            Short(there),
            Short(wanted)
        )
    }
}

impl std::error::Error for Conflict {}

/// A value as a message shows it.
struct Short<'a>(&'a Value);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 80;
        let text = self.0.to_string();
        match text.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

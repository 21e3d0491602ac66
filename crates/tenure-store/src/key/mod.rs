//! The key of a store: made with it, kept with its owner, and what every row is sealed with.
//!
//! A store that comes with a project has rows that anybody may have written. Here is what tells them
//! from the owner's: where keys are kept (`place.rs`), what their files say (`lines.rs`) and what is
//! made of one (`seal.rs`). What a row
//! is, as bytes, is in `journal/sum.rs`; taking over an unknown store in `db/adopt.rs`.

mod lines;
mod place;
mod seal;

pub(crate) use place::private_folder;
pub use place::{OrphanKey, StoreKeys};
pub(crate) use seal::{Identity, Seal, Seals, Table};

use crate::error::{Explain, StoreError};
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// The secret of a store's owner.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreKey([u8; 32]);

impl StoreKey {
    /// A new key.
    pub(crate) fn random(path: &Path) -> Result<Self, StoreError> {
        random(path).map(Self)
    }

    /// A key as a line of its file.
    fn to_hex(&self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// A key, read back.
    fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut key = [0; 32];
        for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(Self(key))
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKey(..)")
    }
}

/// Bytes that no one can guess.
pub(crate) fn random<const N: usize>(path: &Path) -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| io::Error::other(error.to_string()))
        .explain(path, "make the key of the store")?;
    Ok(bytes)
}

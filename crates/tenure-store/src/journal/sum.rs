//! Checksums of rows, the chain of a run's rows, and the hashes of contents.

use crate::db::StoreFile;
use crate::key::{Seal, Table};
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The first 16 bytes of a SHA-256.
pub(crate) type Hash = [u8; 16];

/// A run's chain: of each row, with all those before it.
pub(crate) type Chain = Hash;

/// The chain before the first row.
pub(crate) const NO_CHAIN: Chain = [0; 16];

const WRONG_SUM: &str = "its checksum is wrong";
const NOT_OURS: &str = "it was not written with the store's key";

/// A row as bytes, the same in every process: what sums and chains are made of. Columns are given in
/// the order of the table, without the sum.
#[derive(Clone, Default)]
pub(crate) struct Sum(Vec<u8>);

impl Sum {
    /// Of no columns yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Starts again, in the same memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A column.
    pub(crate) fn null(&mut self) -> &mut Self {
        self.0.push(0);
        self
    }

    /// A column.
    pub(crate) fn int(&mut self, value: i64) -> &mut Self {
        self.0.push(1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A column.
    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(2, value.as_bytes())
    }

    /// A column that may be null.
    pub(crate) fn opt_text(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    /// A column that may be null.
    pub(crate) fn opt_int(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.int(value),
            None => self.null(),
        }
    }

    /// A column as it was read.
    pub(crate) fn column(&mut self, value: ValueRef<'_>) -> &mut Self {
        match value {
            ValueRef::Null => self.null(),
            ValueRef::Integer(value) => self.int(value),
            ValueRef::Real(value) => self.bytes(4, &value.to_le_bytes()),
            ValueRef::Text(value) => self.bytes(2, value),
            ValueRef::Blob(value) => self.bytes(3, value),
        }
    }

    fn bytes(&mut self, tag: u8, value: &[u8]) -> &mut Self {
        self.0.push(tag);
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// A column.
    pub(crate) fn blob(&mut self, value: &[u8]) -> &mut Self {
        self.bytes(3, value)
    }

    /// The seal of the row, as the column `sum` has it.
    pub(crate) fn seal(&self, file: &StoreFile, table: Table) -> Seal {
        self.seal_with(file, table, self)
    }

    /// Holds the row against the seal that was read with it. The error says what is wrong.
    pub(crate) fn check(
        &self,
        file: &StoreFile,
        table: Table,
        seal: ValueRef<'_>,
    ) -> Result<(), &'static str> {
        self.check_with(file, table, seal, self)
    }

    /// As [`Sum::seal`], for a row that is bound by less than all of it: `bound` says by what.
    pub(super) fn seal_with(&self, file: &StoreFile, table: Table, bound: &Self) -> Seal {
        let code = file.seals().map(|seals| seals.code(table, &bound.0));
        Seal::new(crc32fast::hash(&self.0), code)
    }

    /// As [`Sum::check`], for a row that is bound by less than all of it.
    pub(super) fn check_with(
        &self,
        file: &StoreFile,
        table: Table,
        seal: ValueRef<'_>,
        bound: &Self,
    ) -> Result<(), &'static str> {
        let seal = Seal::read(seal).ok_or(WRONG_SUM)?;
        if seal.checksum() != crc32fast::hash(&self.0) {
            return Err(WRONG_SUM);
        }
        bound.check_code(file, table, seal.code())
    }

    /// Holds the row against the code that was read with it.
    pub(super) fn check_code(
        &self,
        file: &StoreFile,
        table: Table,
        code: Option<&[u8]>,
    ) -> Result<(), &'static str> {
        match (file.seals(), code) {
            (None, _) => Ok(()),
            (Some(seals), Some(code)) if seals.is_code(table, &self.0, code) => Ok(()),
            _ => Err(NOT_OURS),
        }
    }

    /// The code of the row, in a store with a key.
    pub(super) fn code(&self, file: &StoreFile, table: Table) -> Option<Hash> {
        file.seals().map(|seals| seals.code(table, &self.0))
    }

    /// The chain up to this row.
    pub(crate) fn chain(&self, before: &Chain) -> Chain {
        short(Sha256::new().chain_update(before).chain_update(&self.0))
    }
}

/// The hash of a content.
pub(crate) fn hash(content: &[u8]) -> Hash {
    short(Sha256::new().chain_update(content))
}

/// The hash of a list: of the hashes of what is in it.
pub(crate) fn hash_of_list(items: &[Hash]) -> Hash {
    let mut sha = Sha256::new();
    items.iter().for_each(|item| sha.update(item));
    short(sha)
}

fn short(sha: Sha256) -> Hash {
    let mut hash = [0; 16];
    hash.copy_from_slice(&sha.finalize()[..16]);
    hash
}

/// A hash as people and JSON see it.
pub(crate) fn hex(hash: &Hash) -> String {
    let mut text = String::with_capacity(32);
    for byte in hash {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A hash, read back.
pub(crate) fn unhex(text: &str) -> Option<Hash> {
    let mut hash = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in hash.iter_mut().zip((0..32).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(hash)
}

//! Seals of rows: a checksum that anyone can check, and a code that only the key's owner can make.

use super::StoreKey;
use crate::journal::hex;
use hmac::{Hmac, KeyInit, Mac};
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use sha2::Sha256;
use std::fmt;

/// The name of a store, random and public: says which key is its.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) [u8; 16]);

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// The tables whose rows are sealed, each with a key of its own: a row counts in its table only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Identity,
    Runs,
    Events,
    Heads,
    Asks,
    Requests,
    Memory,
    Threads,
    Cache,
}

impl Table {
    pub(crate) const ALL: [Self; 9] = [
        Self::Identity,
        Self::Runs,
        Self::Events,
        Self::Heads,
        Self::Asks,
        Self::Requests,
        Self::Memory,
        Self::Threads,
        Self::Cache,
    ];

    /// The table's name in the file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Runs => "runs",
            Self::Events => "events",
            Self::Heads => "heads",
            Self::Asks => "asks",
            Self::Requests => "requests",
            Self::Memory => "memory",
            Self::Threads => "threads",
            Self::Cache => "cache",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }
}

/// The code of a row: the first 16 bytes of an HMAC-SHA256.
pub(crate) type Code = [u8; 16];

/// What the rows of one store are sealed with. One key serves several stores: their identities make
/// it another one in each.
#[derive(Clone)]
pub(crate) struct Seals([Hmac<Sha256>; Table::ALL.len()]);

impl Seals {
    pub(crate) fn new(key: &StoreKey, identity: Identity) -> Self {
        Self(Table::ALL.map(|table| {
            let mut derived = keyed(&key.0);
            derived.update(b"tenure-store 1\0");
            derived.update(&identity.0);
            derived.update(table.name().as_bytes());
            keyed(&derived.finalize().into_bytes())
        }))
    }

    /// The code of a row, given as bytes.
    pub(crate) fn code(&self, table: Table, row: &[u8]) -> Code {
        // A clone has the key's part of the work done.
        let mut mac = self.0[table as usize].clone();
        mac.update(row);
        let mut code = [0; 16];
        code.copy_from_slice(&mac.finalize().into_bytes()[..16]);
        code
    }

    /// Whether a row has its code. Takes as long whichever byte differs.
    pub(crate) fn is_code(&self, table: Table, row: &[u8], code: &[u8]) -> bool {
        let mut mac = self.0[table as usize].clone();
        mac.update(row);
        code.len() == 16 && mac.verify_truncated_left(code).is_ok()
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of every length")
}

/// What the column `sum` has of a row: its checksum, and in a store with a key its code behind it.
pub(crate) enum Seal {
    Checksum(u32),
    Coded([u8; 20]),
}

impl Seal {
    pub(crate) fn new(checksum: u32, code: Option<Code>) -> Self {
        let Some(code) = code else { return Self::Checksum(checksum) };
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes[4..].copy_from_slice(&code);
        Self::Coded(bytes)
    }

    /// A seal as it was read; none if it is something else.
    pub(crate) fn read(column: ValueRef<'_>) -> Option<Self> {
        match column {
            ValueRef::Integer(sum) => u32::try_from(sum).ok().map(Self::Checksum),
            ValueRef::Blob(seal) => seal.try_into().ok().map(Self::Coded),
            _ => None,
        }
    }

    pub(crate) fn checksum(&self) -> u32 {
        match self {
            Self::Checksum(checksum) => *checksum,
            Self::Coded([a, b, c, d, ..]) => u32::from_le_bytes([*a, *b, *c, *d]),
        }
    }

    pub(crate) fn code(&self) -> Option<&[u8]> {
        match self {
            Self::Checksum(_) => None,
            Self::Coded(bytes) => Some(&bytes[4..]),
        }
    }
}

impl ToSql for Seal {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Checksum(checksum) => ToSqlOutput::Owned(Value::Integer(i64::from(*checksum))),
            Self::Coded(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

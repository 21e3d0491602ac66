//! Stores with their keys in a folder of the tests' own, for this process and its children.

use std::path::Path;
use tenure_store::{Store, StoreError, StoreKeys};

pub(crate) fn keys() -> StoreKeys {
    StoreKeys::folder(concat!(env!("CARGO_TARGET_TMPDIR"), "/store-keys"))
}

pub(crate) fn open(path: impl AsRef<Path>) -> Result<Store, StoreError> {
    Store::open_with(path, &keys())
}

pub(crate) fn open_existing(path: impl AsRef<Path>) -> Result<Store, StoreError> {
    Store::open_existing_with(path, &keys())
}

//! Stores of tests, with their keys in a folder beside them.

use crate::{Store, StoreError, StoreKeys};
use std::path::Path;

pub(crate) fn keys(path: &Path) -> StoreKeys {
    StoreKeys::folder(path.with_file_name("keys"))
}

pub(crate) fn open(path: impl AsRef<Path>) -> Result<Store, StoreError> {
    Store::open_with(&path, &keys(path.as_ref()))
}

pub(crate) fn open_existing(path: impl AsRef<Path>) -> Result<Store, StoreError> {
    Store::open_existing_with(&path, &keys(path.as_ref()))
}

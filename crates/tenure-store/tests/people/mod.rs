//! What people have to do with a store: they are asked, they are remembered, they go on talking.
//!
//! Agents, files and processes are real; only the model is not.

mod asked;
mod remembered;
mod talking;

use std::path::PathBuf;
use tempfile::TempDir;
use tenure_store::Store;

/// A file in a folder of its own.
fn new_store() -> (TempDir, PathBuf, Store) {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let path = folder.path().join("tenure.db");
    let store = crate::keys::open(&path).expect("a new store opens");
    (folder, path, store)
}

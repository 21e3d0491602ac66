//! What would run: every file, program and permission that a run of these cards would use, with
//! hashes of their contents.
//!
//! Making an [`Inventory`] executes nothing. Whether it is trusted is decided elsewhere, and never
//! by a file of the project.

mod collect;
mod command;
mod command_state;
mod digest;
mod environment;
mod guard;
mod installed;
mod instructions;
mod item;
mod modules;
mod python;
mod reach;
mod ready;
mod start_state;
mod whole;

pub use collect::{Collector, inventory, inventory_with};
pub use command_state::CommandChecks;
pub(crate) use command_state::CommandUser;
pub use digest::sha256_hex;
pub(crate) use digest::sha256_of;
pub(crate) use environment::interpreter_files;
pub use guard::Guards;
pub use item::{Change, Inventory, Item, ItemKind, changes};
pub(crate) use modules::{Modules, ProjectPython};
pub use python::own_interpreter;
pub(crate) use python::{MOST_FILES, added_folders};
pub use ready::UsedHook;

/// What stands for the contents of a file that cannot be read.
const UNREADABLE: &str = "unreadable";

//! What would run: every file, program and permission that a run of these cards would use, with
//! hashes of their contents.
//!
//! Making an [`Inventory`] executes nothing. Whether it is trusted is decided elsewhere, and never
//! by a file of the project.

mod collect;
mod command;
mod command_state;
mod digest;
mod item;
mod python;
mod reach;
mod ready;

pub use collect::{Collector, inventory, inventory_with};
pub(crate) use command_state::CommandState;
pub use digest::sha256_hex;
pub(crate) use digest::sha256_of;
pub use item::{Change, Inventory, Item, ItemKind, changes};
pub use python::own_interpreter;

/// What stands for the contents of a file that cannot be read.
const UNREADABLE: &str = "unreadable";

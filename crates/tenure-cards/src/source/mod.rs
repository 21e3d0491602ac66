//! Files as they were written: text with places, the YAML in it as a tree whose every value knows
//! where it stands, and the body behind the front matter.
//!
//! Nothing here knows what a card's fields mean. Reading is bounded: a file of at most 1 MiB, a
//! tree of at most 100 000 nodes nested at most 64 deep after aliases are expanded, so hostile
//! YAML costs a diagnostic and no more. Problems go to a [`Report`](crate::diagnostic::Report);
//! what could be read in spite of them is still given back, so that one run finds them all.

mod arena;
mod document;
mod expand;
mod faults;
mod file;
mod front_matter;
mod json;
mod loader;
mod node;
mod scalar;
mod syntax;
#[cfg(test)]
mod tests;
mod text;
mod yaml;

pub use document::{Body, Document, FileKind, parse};
pub(crate) use document::{Layout, Root};
pub use file::read;
pub(crate) use front_matter::{is_boundary, is_history_marker};
pub use json::parse_json;
pub use node::{Key, Node, Value};
pub(crate) use scalar::resolve as resolve_plain;
pub use text::{Place, Source, Span};
pub use yaml::parse_yaml;

/// The largest file that is read, in bytes.
pub const MAX_FILE: usize = 1024 * 1024;
/// The most nodes a file may have after its aliases are expanded.
pub const MAX_NODES: usize = 100_000;
/// The deepest nesting of lists and mappings.
pub const MAX_DEPTH: usize = 64;
/// The most bytes of text the expanded tree may hold.
pub(crate) const MAX_TEXT: usize = 4 * MAX_FILE;

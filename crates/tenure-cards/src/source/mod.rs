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

use crate::limit::MAX_TEXT;
pub use crate::limit::{MAX_DEPTH, MAX_FILE, MAX_NODES};
pub use document::{Body, Document, FileKind, parse};
pub(crate) use document::{Layout, Root};
pub use file::{ReadError, read, read_bytes};
pub(crate) use front_matter::{is_boundary, is_history_marker};
pub use json::parse_json;
pub use node::{Key, Node, Value};
pub(crate) use scalar::resolve as resolve_plain;
pub use text::{Place, Source, Span};
pub use yaml::parse_yaml;

//! A card written again, with nothing lost: what people wrote is copied, not re-made.
//!
//! The fields are slices of the source, with their comments, in one canonical order; `${SECRET}`
//! stays as it is written, because nothing here ever sees a value. A dump of a dump is that dump,
//! in both formats and from one to the other. Before it is given out it is read again and compared
//! with the card, so that a layout nobody thought of costs beauty and never content.

mod instruction;
mod order;
mod pieces;
mod scalar;
#[cfg(test)]
mod tests;
mod write;

pub use write::{Format, dump_document};

/// The card as text in the given form; see [`dump_document`].
pub fn dump(card: &crate::card::Card, format: Format) -> String {
    dump_document(&card.document, &card.name, format)
}

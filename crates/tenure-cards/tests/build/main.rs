//! What becomes of each field of a card.

mod composed;
mod declared;
mod explained;
mod fields;
mod refused;
#[path = "../team/support.rs"]
mod support;

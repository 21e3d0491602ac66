//! Who owns which piece of state, and who may write it (G9).
//!
//! In Rust the type of the handle says it; for keys that are only known at run time the
//! [`Ownership`] of the agent does, at the write.

mod ownership;
mod reducer;
mod slot;
mod store;

pub use ownership::{Ownership, StateOwnership, StateViolation};
pub use reducer::Reducer;
pub(crate) use slot::{Slot, into_json, put};
pub(crate) use store::StateStore;

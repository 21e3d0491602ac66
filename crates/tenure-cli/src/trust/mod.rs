//! Which projects may execute what they contain (G13).
//!
//! The [`store`] keeps, for each project, the hashes of everything that a person agreed to. A
//! project is trusted if all that it would execute now, with the same contents and for the same uses,
//! is among that. Nothing in the project, and no variable of this program, can grant it. [`gate`] is
//! the one place that decides whether a run may go on, and [`review`] is how it is put to a person.

mod gate;
mod layout;
mod review;
mod store;

pub(crate) use gate::{Leave, admit, confirm_unchanged, would_ask};
pub(crate) use review::{FINGERPRINT_DIGITS, changes, fingerprint, listing, short_fingerprint};
pub(crate) use store::{Item, Standing, Store, is_inside};

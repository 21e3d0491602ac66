//! What several hooks read and write the same way: names with stars, moments, templates.

mod hex;
mod key;
mod moment;
mod names;
#[cfg(feature = "schema")]
mod schema;
mod template;

pub(crate) use hex::hex;
pub(crate) use key::own_key;
pub(crate) use moment::{Moment, civil};
pub(crate) use names::fits;
#[cfg(feature = "schema")]
pub(crate) use schema::compiled;
pub(crate) use template::{bounded, evaluator, expression};

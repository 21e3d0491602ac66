//! What several hooks read and write the same way: names with stars, moments, templates.

mod moment;
mod names;
mod template;

pub(crate) use moment::{Moment, civil};
pub(crate) use names::fits;
pub(crate) use template::evaluator;

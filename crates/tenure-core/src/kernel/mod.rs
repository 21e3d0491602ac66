//! How hooks are called. Two primitives, and nothing else calls a hook.
//!
//! A [`sequence`](sequence::sequence) hands one point to the entries that have it, in order: it
//! opens and closes scopes, and takes the decisions before and after a model call. An
//! [`around`](around) hands a request inward through a slice of wraps, `next` borrowing the rest.
//! Both bound every call, catch its panics, meet its policy, record and announce it; so G1, G3, G4
//! and G5 are proven here, once.

mod around;
mod bounded;
mod clock;
mod sequence;
mod site;

pub(crate) use around::{Around, Inside, Kind, Leaf, ModelKind, ToolKind};
pub use around::{Next, NextCall, NextModel, NextTool};
pub(crate) use bounded::{Bounded, Bounds, caught, later, panic_message};
pub(crate) use clock::{Clock, Clocks, Paused};
pub(crate) use sequence::{Ends, Sequence, sequence, step_name};
pub(crate) use site::{Carried, ScopeData, Shared, Site};

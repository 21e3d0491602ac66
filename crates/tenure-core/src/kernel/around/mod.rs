//! A request handed inward through the wraps, and its response handed outward.
//!
//! A call of `next` is a plain future that holds the boxed future of the next wrap, or of the
//! effect itself; it allocates nothing of its own. The request is lent, not given, so a wrap can
//! call `next` again with it.

mod call;
mod kind;
mod next;

pub use call::NextCall;
pub(crate) use kind::{Kind, Leaf, ModelKind, ToolKind};
pub(crate) use next::{Around, Inside};
pub use next::{Next, NextModel, NextTool};

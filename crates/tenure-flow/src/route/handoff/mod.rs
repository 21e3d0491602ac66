//! Handoffs: who takes over from whom, and when.

mod condition;
mod judge;
mod router;
mod rule;
mod view;

pub(crate) use condition::without_marks;
pub use condition::{Condition, ModelCondition};
pub use router::Handoffs;
pub use rule::{HandoffKind, HandoffRule, Scope, Source};

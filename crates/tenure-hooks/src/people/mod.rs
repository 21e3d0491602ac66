//! Hooks that ask people.

mod approval;
mod condition;
mod glob;

pub use approval::{Approval, ApprovalRule, Decision, OnReject, Remember};
pub(crate) use glob::fits;

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[Ready::of::<approval::ApprovalOptions>()];

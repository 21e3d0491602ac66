//! Hooks that ask people.

mod approval;
mod condition;

pub use approval::{Approval, ApprovalRule, Decision, OnReject, Remember};

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[Ready::of::<approval::ApprovalOptions>()];

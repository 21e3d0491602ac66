//! A second model that judges what the first one says.

mod consensus;
mod hook;
mod options;
mod panel;
mod verdict;

pub use consensus::Consensus;
pub use hook::{Critic, Judged, OnFailure, OnRejected};
pub use panel::{CriticContext, Judge};

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[Ready::of::<options::CriticOptions>()];

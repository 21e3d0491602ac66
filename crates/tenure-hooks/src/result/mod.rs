//! Hooks that do something with a result: keep it, tell of it, put it into a form.

pub(crate) mod file;
mod format;
mod notify;
mod record;
mod save;

pub use format::Format;
pub use notify::Notify;
#[cfg(feature = "network")]
pub use notify::verify_signature;
pub use record::Part;
pub use save::SaveResult;

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[
    Ready::of::<format::FormatOptions>(),
    Ready::of::<save::SaveOptions>(),
    Ready::of::<notify::NotifyOptions>(),
];

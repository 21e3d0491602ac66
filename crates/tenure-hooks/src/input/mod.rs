//! Hooks that see a request before any model does: checked, cleaned, counted, enriched, or sent elsewhere.

mod account;
pub(crate) mod classify;
mod documents;
mod hand_over;
mod html;
mod load_context;
pub(crate) mod marked;
mod quota;
mod reads;
mod route;
pub(crate) mod sanitise;
pub(crate) mod seen;
mod validate;

pub use load_context::{ContextPlace, LoadContext, Missing};
pub use quota::{Keep, Per, Quota};
pub use route::{Route, Way};
pub use sanitise::{Form, Sanitise};
pub use validate::Validate;

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[
    Ready::of::<sanitise::SanitiseOptions>(),
    Ready::of::<validate::ValidateOptions>(),
    Ready::of::<quota::QuotaOptions>(),
    Ready::of::<route::RouteOptions>(),
    Ready::of::<load_context::LoadContextOptions>(),
];

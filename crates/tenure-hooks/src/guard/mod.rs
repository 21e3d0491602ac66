//! Guards: hooks whose failure denies.

mod audit;
mod budget;
mod call_limit;
mod dry_run;
mod emulate;
mod ending;
mod glob;
mod permissions;
mod pii;
#[cfg(feature = "schema")]
mod result_schema;
mod safety;
mod unread;

pub use audit::{AuditLog, Broken, Keep, Verified};
pub use budget::{Budget, Ledger, Spent};
pub use call_limit::{AtLimit, CallLimit};
pub use dry_run::DryRun;
pub use emulate::EmulateTools;
pub use permissions::{Condition, Permissions};
pub use pii::{Detector, Pii, Strategy};
#[cfg(feature = "schema")]
pub use result_schema::{OnMismatch, ResultSchema};
pub use safety::{Injection, OnUnsafe, Safety};

pub(crate) use unread::refuse_unread;

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[
    Ready::of::<permissions::PermissionsOptions>(),
    Ready::of::<call_limit::CallLimitOptions>(),
    Ready::of::<budget::BudgetOptions>(),
    Ready::of::<dry_run::DryRunOptions>(),
    Ready::of::<emulate::EmulateToolsOptions>(),
    #[cfg(feature = "schema")]
    Ready::of::<result_schema::ResultSchemaOptions>(),
    Ready::of::<audit::AuditOptions>(),
    Ready::of::<pii::PiiOptions>(),
    Ready::of::<safety::SafetyOptions>(),
];

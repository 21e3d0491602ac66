//! Hooks that only watch: telemetry, metrics, logs, usage.
//!
//! None of them changes what an agent does, holds a stream back, or slows an agent that cannot be
//! watched: what does not fit into a queue is dropped and counted, and a receiver that is not there
//! is nobody's failure.
//!
//! A run that goes on in another process passes its recorded calls once more on its way to where it
//! stopped; they are seen again there, and counted.

#[cfg(feature = "telemetry")]
mod chats;
mod clock;
mod gather;
#[cfg(feature = "telemetry")]
mod lifecycle;
mod log;
#[cfg(feature = "telemetry")]
mod metrics;
#[cfg(feature = "telemetry")]
mod pump;
mod saver;
mod seen;
#[cfg(feature = "telemetry")]
mod telemetry;
mod texts;
mod usage;

pub use log::StructuredLog;
#[cfg(feature = "telemetry")]
pub use metrics::Metrics;
#[cfg(feature = "telemetry")]
pub use telemetry::Telemetry;
pub use usage::{UsageReport, UsageRow, UsageSnapshot};

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[
    #[cfg(feature = "telemetry")]
    Ready::of::<telemetry::TelemetryOptions>(),
    #[cfg(feature = "telemetry")]
    Ready::of::<metrics::MetricsOptions>(),
    Ready::of::<log::LogOptions>(),
    Ready::of::<usage::UsageOptions>(),
];

//! Hooks that only watch.

mod lifecycle;
mod log;
mod metrics;
mod receiver;
mod rotel;
mod telemetry;
mod telemetry_fails;
mod telemetry_lost;
mod usage;

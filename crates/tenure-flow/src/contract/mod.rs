//! The orchestrator contract: stages in order, routing with a reason, what a failure means.

mod metrics;
mod stage;
mod strategy;

pub use metrics::OrchestratorMetrics;
pub use stage::{IllegalStage, Stage, Stages};
pub use strategy::ErrorStrategy;

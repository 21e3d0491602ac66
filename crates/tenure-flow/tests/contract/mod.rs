//! The orchestrator contract, kept by real agents.

mod endings;
mod lives;
mod partial;
mod property;
mod routing;
mod stages;
mod strategies;
mod support;

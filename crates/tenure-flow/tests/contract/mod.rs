//! The orchestrator contract, kept by real agents.

mod endings;
mod lives;
mod own;
mod partial;
mod property;
mod routing;
mod stages;
mod strategies;
mod support;

//! Workflows: loaded, routed, run and resumed.

mod contract;
mod engine;
mod examples;
mod lifecycle;
mod loading;
mod resume;
mod routing;
mod variables;

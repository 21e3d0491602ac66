//! Agents made of agents, run by real agents with scripted models.

mod chain;
mod ends;
mod evaluator;
mod maker;
mod orchestrator;
mod parallel;
mod router;
mod support;

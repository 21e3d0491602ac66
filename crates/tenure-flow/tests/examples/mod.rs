//! The workflows under `examples/workflows`, from their files to the report of a chat, with real
//! Python: what they print, what they announce, and what they leave behind.

mod desk;
mod journeys;
mod public;
mod seeds;
mod shape;
mod support;
mod typed;
mod whole;
mod written;

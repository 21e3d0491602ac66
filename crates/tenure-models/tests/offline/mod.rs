//! What each model promises, asked through real agents.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod others;
mod passthrough;
mod playback;
mod script;
mod scripted;
mod support;

//! What each model promises, asked through real agents.

mod others;
mod passthrough;
mod playback;
mod script;
mod scripted;
mod support;

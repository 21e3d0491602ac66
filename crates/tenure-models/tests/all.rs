//! The models, asked through real agents.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

#[cfg(feature = "providers")]
mod aimock;
mod offline;
#[cfg(feature = "providers")]
mod provider;

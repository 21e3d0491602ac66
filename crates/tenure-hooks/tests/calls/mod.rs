//! Hooks around calls.

mod breaker;
mod cache;
mod fallback;
mod limits;
mod open;
mod retry;
mod support;
mod timeout;
mod tool_errors;
mod tool_retry;

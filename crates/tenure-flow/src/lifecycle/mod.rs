//! Lifecycle tools: what runs before and after a chat, and before and after each agent's turn.
//!
//! A [`LifecycleTool`] says what runs when: a Python function, a command, or something in Rust that
//! is registered by name. Each becomes one entry in the chain of an agent, by [`of_chat`] in that of
//! the chat's host and by [`of_agent`] in that of every agent it concerns, so that its limit, its
//! policy and its record are those of every hook. What it returns is logged and announced, and
//! decides nothing.
//!
//! Every call is announced as `lifecycle.tool_call`, and exactly one of `lifecycle.tool_result` and
//! `lifecycle.tool_error` follows, also if the call is cut off.

mod attach;
mod begun;
mod function;
mod platform;
mod runner;
mod tool;
mod work;

pub use attach::{Hosts, of_agent, of_chat};
pub use function::{FunctionError, function};
pub use platform::platform_defaults;
pub use tenure_hosts::LifecycleCall;
pub use tool::{LifecycleTool, Run, Trigger};

/// The name of the person among the agents.
pub(crate) const USER: &str = "user";

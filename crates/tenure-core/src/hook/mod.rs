//! Hooks: the one trait, what a registration says of it, and the order of entries.
//!
//! Everything that hooks an agent's life becomes an entry of one chain: a Rust `impl`, a closure,
//! a phase hook, a tower layer, and what files declare. How entries are *called* is the business
//! of the kernel.

mod chain;
mod closure;
mod error;
mod lifecycle;
mod limit;
mod order;
mod point;
mod registration;
mod registry;
mod text;

pub(crate) use chain::{Chain, Defaults, Entry, Hold};
pub use closure::{
    after_agent, after_chat, after_model, before_agent, before_chat, before_model, on_shutdown,
    on_start, on_transition, wrap_model_call, wrap_tool_call,
};
pub(crate) use error::FaultRecord;
pub use error::{FaultKind, HookError, HookFailure};
pub(crate) use lifecycle::short_type_name;
pub use lifecycle::{After, AgentLifecycle, Flow, HookAction, JumpTarget};
pub use limit::Limit;
pub use point::{Point, Points};
pub use registration::{IntoRegistration, Origin, Policy, Registration, hook};
pub use registry::HookRegistry;
pub use text::{FilteredText, TextFilter};

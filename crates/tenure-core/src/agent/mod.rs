//! Agents: what one is ([`Blueprint`]), and one that lives ([`Agent`]).
//!
//! A blueprint is built once and shared; an instance is a small struct beside it. The builder
//! checks everything before anything runs, and reports all that is wrong at once.

mod blueprint;
mod builder;
mod config;
mod handle;
mod inner;
mod instance;
mod recorded;
mod registry;
mod request;
mod tools;
mod transition;

pub(crate) use blueprint::BlueprintInner;
pub use blueprint::{Blueprint, Entrant};
pub use builder::AgentBuilder;
pub use config::{AgentConfig, Limits};
pub use handle::Agent;
pub use handle::WeakAgent;
pub(crate) use inner::{Inner, Label};
pub(crate) use instance::stop_at_startup;
pub use registry::{AgentRegistry, Registry};
pub use request::Request;
pub(crate) use tools::ToolSet;
pub(crate) use transition::{Arrow, Telling, Untold};

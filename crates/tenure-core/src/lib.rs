//! An agent's whole life, with a hook at every point of it, and promises about what happens when
//! one of them fails.
//!
//! This crate is the lifecycle itself: phases, scopes, the chain of hooks, and the drive loop that
//! runs a turn. It opens no file, no socket and no process; what does lives in other crates. Most
//! people want the crate `tenure`, which re-exports this one.
//!
//! The modules follow one run: an [`agent`] is built and started ([`life`], [`phase`]), a request
//! enters the [`drive`] loop, its [`hook`]s get a [`context`], the [`model`] answers, [`tool`]s are
//! called, a report leaves.
//!
//! Everything here runs on tokio; timers need a runtime with time enabled.

pub mod agent;
pub mod ask;
mod blocking;
pub mod cache;
mod cancel;
pub mod chat;
pub mod clone;
pub mod content;
pub mod context;
pub mod drive;
pub mod engine;
mod error;
pub mod event;
pub mod hook;
mod id;
pub(crate) mod kernel;
pub mod life;
pub mod memory;
pub mod message;
pub mod model;
mod outcome;
pub mod phase;
pub mod resource;
pub mod secret;
pub mod state;
pub mod step;
mod sync;
pub mod tool;
pub mod tower;

pub use blocking::blocking;
pub use cancel::{CancelCause, CancelToken};
pub use error::{BoxError, Error, ErrorKind};
pub use id::{InstanceId, RunId, TraceId};
pub use kernel::{Next, NextCall, NextModel, NextTool};
pub use outcome::{ExitReason, Outcome};

/// A boxed future, as closures for hooks return it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the macros need. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use async_trait;
    pub use serde;
    pub use serde_json;
}

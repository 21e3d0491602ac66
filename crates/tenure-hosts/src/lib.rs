//! Hooks and tools that live in another process: Python functions and commands.
//!
//! To an agent they are hooks and tools like any other: each implements
//! [`AgentLifecycle`](tenure_core::hook::AgentLifecycle) or [`Tool`](tenure_core::tool::Tool), and
//! is registered with a policy and a limit. What a process may do to its caller is promised here:
//!
//! - could not be started, crashed, ended with a failure, took too long and said something that
//!   makes no sense are told apart, and each meets the policy (G3);
//! - a call that is over its limit, or that nobody waits for any more, is killed, with everything
//!   that its process started (G4); no process is left behind;
//! - a guard that says nothing has not said yes;
//! - a process sees an [`Environment`] by allow-list;
//! - in a program that calls [`supervise`] first in its `main`, a process runs under the rules of its environment
//!   ([`Environment::confined`]) and ends with the program, however that ends.
//!
//! ```
//! use tenure_core::agent::Agent;
//! use tenure_core::hook::{hook, Point, Policy};
//! use tenure_hosts::{CommandHook, Environment, Role};
//! use tenure_models::Passthrough;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let says = |reply: &str| vec!["echo".to_owned(), reply.to_owned()];
//! let guard = |reply| {
//!     let guard = CommandHook::new(says(reply), Point::BeforeAgent, ".", Environment::new());
//!     hook(guard.role(Role::Guard)).policy(Policy::Deny)
//! };
//! let agent = Agent::builder("echo").model(Passthrough::new());
//! let agent = agent.with_lifecycle(guard(r#"{"deny": "not today"}"#)).build()?;
//! let denied = agent.scoped(async |agent| agent.run("hello").await).await;
//! assert!(denied.is_err_and(|error| error.is_denied()));
//!
//! let agent = Agent::builder("echo").model(Passthrough::new());
//! let agent = agent.with_lifecycle(guard(r#"{"allow": true}"#)).build()?;
//! assert_eq!(agent.scoped(async |agent| agent.run("hello").await).await?.output(), "hello");
//! # Ok::<_, tenure_core::Error>(()) }).unwrap();
//! ```

mod command;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod lifecycle;
pub mod mcp;
mod payload;
pub mod python;
mod reply;
mod role;
mod site;
mod trim;

pub use command::{CommandHook, CommandLifecycleTool, ShellTool};
pub use error::HostError;
pub use lifecycle::LifecycleCall;
pub use python::{
    CheckedModules, Interpreter, MessageHookKind, PythonConfig, PythonError, PythonFile,
    PythonFunction, PythonHook, PythonHost, PythonLifecycleTool, PythonLimits, PythonMessageHook,
    PythonModules, PythonTool, STAND_INS, Style, ToolHooks, ToolHooksAdapter, WorkerKeeper,
};
pub use role::Role;
pub use tenure_process::{
    Abilities, Confinement, Environment, Lineage, Network, PROCESS_NAME, StartCheck, find_program,
};
#[cfg(target_os = "linux")]
pub use tenure_process::{
    abilities, end_supervisor, hidden, hide, is_supervised, supervise, supervisor_id,
};
pub use trim::TrimToolHistory;

/// A page of the guide: its code is compiled and run with the doc tests.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/mcp.md")]
mod guide {}

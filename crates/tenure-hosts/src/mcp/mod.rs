//! Tool servers, by the Model Context Protocol.
//!
//! [`McpServers`] holds the servers of a team, each with one connection that its agents share. What
//! one agent sees of them is a [`McpView`]: a source of tools, and the prompts and resources. Its
//! [`McpKeeper`] is a hook that holds the connections open while an instance lives.
//!
//! ```
//! use tenure_core::agent::Agent;
//! use tenure_hosts::Environment;
//! use tenure_hosts::mcp::{McpSelection, McpServer, McpServers, McpState, McpTransport};
//! use tenure_models::Passthrough;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let dead = McpServer::new("files", McpTransport::stdio(["no-such-program"], "."));
//! let servers = McpServers::new([dead], Environment::new());
//! let view = servers.view(vec![McpSelection::all("files").tools(["read_*"])]);
//! let agent = Agent::builder("reader")
//!     .model(Passthrough::new())
//!     .with_lifecycle(view.keeper())
//!     .tool_source(view)
//!     .build()?;
//! // A server that is not there does not keep the agent from its work.
//! let seen = agent.scoped(async |agent| {
//!     agent.run("hello").await?;
//!     Ok::<_, tenure_core::Error>(servers.status().remove(0))
//! });
//! assert_eq!(seen.await?.state, McpState::Failed);
//! assert_eq!(servers.status()[0].state, McpState::Idle);
//! # Ok::<_, tenure_core::Error>(()) }).unwrap();
//! ```
//!
//! What is promised:
//!
//! - nothing waits for a server without a bound, and a dead server stops neither the agent nor the
//!   other servers; it is tried again for as long as somebody needs it;
//! - a call that may have been made is never made again by itself;
//! - a list that cannot be read leaves the last good one in place;
//! - a server's process is killed with everything that it started, and none is left behind.

mod call;
mod calls;
mod config;
mod connect;
mod content;
mod elicit;
mod filter;
mod handler;
mod http;
mod keeper;
mod link;
mod list;
mod names;
mod pipes;
mod server;
mod servers;
mod status;
mod stdio;
mod supervise;
mod tool;
mod unmatched;
mod view;
mod wire;

pub use config::{McpProtocol, McpSelection, McpServer, McpTransport};
pub use keeper::McpKeeper;
pub use servers::McpServers;
pub use status::{McpPrompt, McpPromptArgument, McpResource, McpState, McpStatus};
pub use unmatched::{McpOffer, McpUnmatched};
pub use view::McpView;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also if somebody panicked meanwhile: nothing here is left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

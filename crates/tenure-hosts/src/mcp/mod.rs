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
//!
//! Without the feature `mcp` servers can be described and not connected to: each is
//! [`Failed`](McpState::Failed), and says why.

// What only a connection reads has no reader where there is none.
#![cfg_attr(not(feature = "mcp"), allow(dead_code))]

#[cfg(feature = "mcp")]
mod call;
#[cfg(feature = "mcp")]
mod calls;
mod config;
#[cfg(feature = "mcp")]
mod connect;
#[cfg(feature = "mcp")]
mod content;
#[cfg(feature = "mcp")]
mod elicit;
mod filter;
#[cfg(feature = "mcp")]
mod handler;
#[cfg(feature = "mcp")]
mod http;
#[cfg(feature = "mcp")]
mod keeper;
#[cfg(not(feature = "mcp"))]
mod left_out;
#[cfg(feature = "mcp")]
mod link;
#[cfg(feature = "mcp")]
mod list;
mod names;
#[cfg(feature = "mcp")]
mod pipes;
#[cfg(feature = "mcp")]
mod server;
#[cfg(feature = "mcp")]
mod servers;
mod status;
#[cfg(feature = "mcp")]
mod stdio;
#[cfg(feature = "mcp")]
mod supervise;
#[cfg(feature = "mcp")]
mod tool;
mod unmatched;
#[cfg(feature = "mcp")]
mod view;
#[cfg(feature = "mcp")]
mod wire;

pub use config::{McpProtocol, McpSelection, McpServer, McpTransport};
#[cfg(feature = "mcp")]
pub use keeper::McpKeeper;
#[cfg(not(feature = "mcp"))]
pub use left_out::{McpKeeper, McpServers, McpView};
#[cfg(feature = "mcp")]
pub use servers::McpServers;
pub use status::{McpPrompt, McpPromptArgument, McpResource, McpState, McpStatus};
pub use unmatched::{McpOffer, McpUnmatched};
#[cfg(feature = "mcp")]
pub use view::McpView;

#[cfg(feature = "mcp")]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also if somebody panicked meanwhile: nothing here is left half done.
#[cfg(feature = "mcp")]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

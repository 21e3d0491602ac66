//! From cards to agents that can be started.
//!
//! Building executes nothing: no interpreter is looked for, no process is started. What a card asks
//! for and this release cannot do is refused here, at the field that asks for it, all of it at once
//! (G13 and "accepted works, or is refused").

mod agent;
mod assembly;
mod attach;
mod catalog;
mod children;
mod composed;
mod declaration;
mod doubt;
mod files;
mod foreign;
mod hooks;
mod makings;
mod memory;
mod messages;
mod model;
mod reference;
mod refuse;
mod remote;
mod results;
mod servers;
mod skills;
mod stand_in;
mod tools;
mod trajectory;

pub(crate) use assembly::{Assembly, Built, Settings, SharedAsker};
pub use attach::{Attach, AttachHosts, Attached, AttachedEntry};
pub use catalog::HookCatalog;
pub(crate) use hooks::HookPlace;
pub(crate) use memory::SharedMemory;
pub(crate) use model::is_internal;
pub(crate) use servers::{selections, used as used_servers};
pub(crate) use skills::manifests;
pub use stand_in::StandIn;

/// The most model calls that a turn of a card's agent may make, unless `max_iterations` says
/// otherwise.
pub const DEFAULT_MAX_STEPS: usize = 20;

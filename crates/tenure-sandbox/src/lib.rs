//! The confinement of a process: what it may write and read, whom it may reach, how much it may take.
//!
//! [`enter`] puts the process that calls it under the rules of a [`Confinement`]: a mount namespace first, in which
//! all is read-only but what may be written, landlock second, then limits, capabilities and a filter of calls of
//! the system. It is for a process that was forked, has one thread and is about to run a program.
//!
//! Linux only: elsewhere there is nothing but the rules. A part of Tenure, not for use by itself.

mod abilities;
#[cfg(target_os = "linux")]
mod calls;
mod confinement;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod listed;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod system;

pub use abilities::Abilities;
pub use confinement::{Confinement, Network};
#[cfg(target_os = "linux")]
pub use enter::{Entered, enter};
#[cfg(target_os = "linux")]
pub use system::{Forked, child_signals, close_from, exit_now, fork};

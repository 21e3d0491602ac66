//! Hooks and tools written in Python.
//!
//! A [`PythonHost`] keeps worker processes: for each family of instances or group one, one more for its
//! guards, one for each other environment that functions run in, and a warm spare. A worker runs one embedded script. Each instance has a lane there, which is a
//! thread with an event loop and a socket; functions are sent as source and called by frames. A call that
//! takes too long is cancelled, then its thread is given up; only a process that no longer answers is killed.

mod arguments;
mod brief;
mod call;
mod config;
mod control;
mod desk;
mod folding;
mod frame;
mod function;
mod hook;
mod host;
mod interpreter;
mod keeper;
mod lane;
mod life;
mod lifecycle_tool;
mod message_hooks;
mod modules;
mod outbox;
mod raised;
mod seats;
mod source;
mod start;
mod starts;
mod tool;
mod tool_hooks;
mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use config::{PythonConfig, PythonLimits};
pub(crate) use frame::read_frames;
pub use function::{PythonFile, PythonFunction, Style};
pub use hook::PythonHook;
pub use host::PythonHost;
pub use interpreter::Interpreter;
pub use keeper::WorkerKeeper;
pub use lifecycle_tool::PythonLifecycleTool;
pub use message_hooks::{MessageHookKind, PythonMessageHook};
pub use modules::{CheckedModules, PythonModules};
pub use raised::PythonError;
pub use source::STAND_INS;
pub use tool::PythonTool;
pub use tool_hooks::{ToolHooks, ToolHooksAdapter};

/// Locks. What somebody who panicked left behind is whole: nothing here is changed by halves.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Hooks and tools written in Python.
//!
//! A [`PythonHost`] keeps worker processes, one for each family of instances or group, and one
//! warm spare. A worker runs one embedded script; functions are sent to it as source, called by
//! frames on a pipe of their own, and killed with their process group when they take too long.

mod arguments;
mod brief;
mod call;
mod config;
mod desk;
mod folding;
mod frame;
mod function;
mod hook;
mod host;
mod interpreter;
mod keeper;
mod life;
mod lifecycle_tool;
mod message_hooks;
mod outbox;
mod raised;
mod source;
mod start;
mod tool;
mod tool_hooks;
mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use config::PythonConfig;
pub use function::{PythonFile, PythonFunction, Style};
pub use hook::PythonHook;
pub use host::PythonHost;
pub use interpreter::Interpreter;
pub use keeper::WorkerKeeper;
pub use lifecycle_tool::PythonLifecycleTool;
pub use message_hooks::{MessageHookKind, PythonMessageHook};
pub use raised::PythonError;
pub use source::STAND_INS;
pub use tool::PythonTool;
pub use tool_hooks::{ToolHooks, ToolHooksAdapter};

/// Locks. What somebody who panicked left behind is whole: nothing here is changed by halves.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

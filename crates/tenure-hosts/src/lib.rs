//! Hooks and tools that live in another process: Python functions and commands.

mod command;
mod error;
mod payload;
mod process;
pub mod python;
mod reply;
mod role;
mod trim;

pub use command::{CommandHook, ShellTool};
pub use error::HostError;
pub use process::Environment;
pub use python::{
    Interpreter, PythonConfig, PythonFile, PythonFunction, PythonHook, PythonHost, PythonTool,
    Style, ToolHooks, ToolHooksAdapter, WorkerKeeper,
};
pub use role::Role;
pub use trim::TrimToolHistory;

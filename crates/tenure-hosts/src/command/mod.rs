//! Hooks that are commands: one JSON object in, one out.
//!
//! A command is started for each call, gets the call on its standard input and says what it
//! decides on its standard output; what it writes to its standard error becomes log lines. Could
//! not start, crashed, exited with a failure, took too long and replied nonsense are told apart,
//! and each meets the hook's policy. However a call ends, nothing of its process group stays.

mod exchange;
mod hook;
mod lifecycle;
mod shell;

pub use hook::CommandHook;
pub use lifecycle::CommandLifecycleTool;
pub use shell::ShellTool;

//! What lives in another process: commands, Python and tool servers.

mod command;
mod mcp;
mod python;

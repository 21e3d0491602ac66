//! Python source, read and never run.
//!
//! A file is parsed once per load; its module-level names are found, a function's parameters are
//! held against its use, and the JSON Schema of a tool is made from its signature and from the classes
//! that it names, also in other files of the project. What cannot be known without running the file is
//! an error that says so, or a schema that takes anything, never a guess.

mod bound;
mod docstring;
mod effect;
mod files;
mod fit;
mod frameworks;
mod guards;
mod imports;
mod module;
mod reach;
mod tool;
mod touch;
mod types;

pub(crate) use effect::SaidEffect;
pub(crate) use files::{Found, FunctionProcess, refusal};
pub use files::{Origin, PythonFiles};
pub use fit::Use;
pub(crate) use fit::{Misfit, context, fit};
pub(crate) use guards::check_processes;
pub(crate) use reach::reach;
pub(crate) use tool::tool_spec;

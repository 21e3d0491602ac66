//! Functions in Python as hooks and tools, with a real interpreter.

mod bytecode;
mod context;
mod ends;
mod faults;
mod interpreter;
mod support;
mod talk;
mod tool_hooks;
mod tools;
mod types;
mod workers;

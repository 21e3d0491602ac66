//! Functions in Python as hooks and tools, with a real interpreter.

mod bytecode;
mod checked;
mod context;
mod cut;
mod ends;
mod faults;
mod guards;
mod interpreter;
mod lanes;
mod modules;
mod replaced;
mod support;
mod talk;
mod tool_hooks;
mod tools;
mod types;
mod variables;
mod views;
mod workers;

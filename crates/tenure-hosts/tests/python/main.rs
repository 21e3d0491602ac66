//! Functions in Python as hooks and tools, with a real interpreter.

mod context;
mod faults;
mod interpreter;
mod support;
mod talk;
mod tools;
mod workers;

//! Hooks that shape what a model gets to read.

mod cheaper_model;
mod clear;
mod conversations;
mod dedupe;
mod prompt;
mod select_tools;
mod stage;
mod todo;
mod window;

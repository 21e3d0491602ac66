//! The ready-made hooks, in real agents.

mod calls;
mod chaos;
mod compose;
mod context;
mod guard;
mod input;
mod judge;
mod privacy;
mod results;
mod see;
mod support;

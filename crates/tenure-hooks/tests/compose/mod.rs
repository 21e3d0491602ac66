//! Every ready-made hook beside every other one, both ways: they stand as they have to, or the agent
//! is not built; and what is promised holds.

mod docs;
mod faults;
mod options;
mod order;
mod pairs;
mod stage;

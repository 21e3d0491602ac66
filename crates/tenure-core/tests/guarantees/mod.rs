//! The guarantees, tested. Each test is named after the guarantee it is about; the clock is paused,
//! so nothing here waits for real.

mod announced;
mod bad_input;
mod budgets;
mod children;
mod contract;
mod corners;
mod dropped;
mod endings;
mod g1_table;
mod lifecycle;
mod many;
mod named;
mod own;
mod phases;
mod releases;
mod support;
mod told;

//! Commands as hooks, with real processes.

mod asks;
mod faults;
mod leftovers;
mod points;
mod stress;
mod support;

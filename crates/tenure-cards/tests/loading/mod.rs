//! What loading makes of files.

mod cards;
mod codes;
mod config;
mod corpus;
mod files;
mod fuzz;
mod fuzz_load;
mod guards;
mod support;
mod trust;
mod types;

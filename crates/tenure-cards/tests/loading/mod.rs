//! What loading makes of files.

mod cards;
mod codes;
mod config;
mod corpus;
mod files;
mod fuzz;
mod fuzz_load;
mod guards;
mod instructions;
mod support;
mod trust;
mod types;

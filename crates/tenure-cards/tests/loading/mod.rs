//! What loading makes of files.

mod cards;
mod config;
mod files;
mod support;

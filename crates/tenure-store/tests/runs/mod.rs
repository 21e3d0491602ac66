//! Runs of real agents, recorded in a real file: interrupted, taken up, answered, given up.

mod asks;
mod cuts;
mod differences;
mod ends;
mod engine;
mod support;

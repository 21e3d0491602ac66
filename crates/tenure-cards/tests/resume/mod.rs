//! Teams whose runs are recorded: cut at every step, and gone on with.

mod asks;
mod composed;
mod declared;
mod effects;
mod lost;
mod plain;
mod run;
mod support;

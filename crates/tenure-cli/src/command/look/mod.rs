//! Looking back at runs: what there is on record of them, what they wait for, and stopping them.
//!
//! `place` finds the file and the run. `timeline` makes lines of records, `item` draws them and
//! `spoken` has their words. Everything else is a command.

mod again;
mod answer;
mod asks;
mod db;
mod entry;
mod events;
mod export;
mod item;
mod markdown;
mod place;
mod runs;
mod show;
mod spoken;
mod stop;
mod tail;
mod timeline;
mod words;

pub(super) use again::{replay, restart};
pub(super) use answer::run as answer;
pub(super) use asks::run as asks;
pub(super) use db::run as db;
pub(super) use events::run as events;
pub(super) use export::run as export;
pub(super) use runs::run as runs;
pub(super) use show::run as show;
pub(super) use stop::{cancel, kill};
pub(super) use tail::run as tail;

//! Runs that survive: the journal, questions, memory and conversations of agents in one SQLite file.
//!
//! A [`Store`] is a file. Any process may read it; one at a time drives its runs. What was
//! acknowledged is on disk, what is read is what was written, or an error says what is damaged. Its
//! rows are sealed with a key that is kept apart from it ([`StoreKeys`]): what someone else wrote is
//! not acted on.

mod ask;
mod cache;
mod db;
mod driver;
mod engine;
mod error;
#[doc(hidden)]
pub mod fail;
#[doc(hidden)]
pub mod fuzz;
mod hand;
mod journal;
mod key;
mod memory;
mod run;
mod runs;
mod store;
#[cfg(test)]
mod testing;
mod thread;
mod wish;

pub use ask::{AskInfo, AskQuery, AskStatus};
pub use cache::StoreCache;
pub use db::{Authenticity, Compacted, Compaction, DriverInfo, Fault, Holdings, Verified};
pub use driver::{Begun, Driver};
pub use engine::{LocalEngine, Recovered, Recovery};
pub use error::{StoreError, StoreErrorKind};
pub use journal::Record;
pub use key::{OrphanKey, StoreKeys};
pub use memory::{Memo, Rule, StoreMemory};
pub use run::{Change, Difference, Now, Resume, RunLog};
pub use store::{Durability, Store};
pub use thread::{ThreadInfo, Threads};
pub use wish::Wish;

/// The guide: every block of Rust in it is compiled and run with the doc tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/asks.md")]
    mod asks {}
    #[doc = include_str!("../../../docs/memory.md")]
    mod memory {}
}

//! Tests for agents and hooks of one's own.
//!
//! - [`compliance!`] asks of any agent what the lifecycle contract promises, test by test.
//! - [`HookHarness`] runs a hook at any point of a real agent's life, without an agent to write.
//! - [`Recorder`] keeps every event of a bus, and [`assert_paired`] says what began and never ended.
//! - [`FaultPlan`] makes hooks, models and tools fail, panic, hang or dawdle where it says so.
//! - [`RecordedModel`] keeps every request that a model gets, and [`TestFolder`] the files that a test writes.
//! - [`cases`], [`eventually`], [`is_alive`] and [`ran_alone`] are for tests of many cases and of processes.
//!
//! Nothing here is a mock: the harness and the faults run in the real drive loop.

mod cases;
pub mod compliance;
mod fault;
mod folder;
mod harness;
mod process;
mod recorded_model;
mod recorder;

pub use cases::cases;
pub use fault::{Fault, FaultPlan, FaultyHook, FaultyModel, FaultyTool, Injected, Place};
pub use folder::TestFolder;
pub use harness::{HarnessRun, HookHarness};
pub use process::{eventually, is_alive, ran_alone};
pub use recorded_model::RecordedModel;
pub use recorder::{Recorder, assert_paired};

/// What the macro needs. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use tokio;

    /// Runs one test on a runtime of its own.
    pub fn block_on(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime for one thread needs nothing that can be missing")
            .block_on(test);
    }
}

//! Processes: how they start, what they get to see of our environment, and how they end.
//!
//! A [`Process`] leads a process group of its own and is the only owner of it. Whatever becomes of
//! the future that waits for it, the group and everything that descends from it is killed and the
//! process is reaped: no zombie and no orphan stays behind.
//!
//! A program that calls [`supervise`] first in its `main` has its processes started by a process of its own, which
//! confines them and ends them also if the program is killed.
//!
//! A part of Tenure, not for use by itself: its API shows types of other crates, and changes with
//! them.
//!
//! ```
//! use tenure_process::{Command, Environment};
//! use tokio_util::task::TaskTracker;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let tracker = TaskTracker::new();
//! let count = Command::shell("wc -c", ".", &Environment::new()).told(b"hello");
//! let heard = count.run(&tracker).await?;
//! assert!(heard.ended.is_ok());
//! assert_eq!(heard.out.text().trim(), "5");
//! # Ok::<_, String>(()) }).unwrap();
//! ```

mod child;
mod command;
mod environment;
mod hint;
mod kept;
mod lineage;
mod output;
mod program;
mod start_check;
#[cfg(target_os = "linux")]
mod supervisor;
mod tree;

pub use child::{Ended, Launch, Leftovers, Process};
pub use command::{Command, Heard};
pub use environment::Environment;
pub use kept::Kept;
pub use lineage::{Lineage, PROCESS_NAME};
pub use output::{Printed, output_within};
pub use program::find_program;
pub use start_check::StartCheck;
#[cfg(target_os = "linux")]
pub use supervisor::{
    abilities, end_supervisor, hidden, hide, is_supervised, supervise, supervisor_id,
};
pub use tenure_sandbox::{Abilities, Confinement, Network};
pub use tree::Victim;

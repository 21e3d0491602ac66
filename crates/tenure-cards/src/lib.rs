//! Agent cards: files that declare agents and their hooks.
//!
//! [`load`] reads files and folders and finds everything that is wrong with them, in all files at
//! once, without running anything of them. A [`Team`] builds agents of what was loaded, starts them
//! children first, asks them, and stops them in reverse, whatever happens in between. [`dump`] writes
//! a card back as it was meant, [`schema`] describes cards for editors, and [`trust`] lists
//! everything that would run, with its hashes.
//!
//! ```
//! use tenure_cards::{LoadOptions, Team, load};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! std::fs::write(folder.join("echo.md"), "---\nmodel: passthrough\n---\nYou repeat.\n")?;
//! let loaded = load(folder, &LoadOptions::default());
//! let team = Team::builder(loaded).build().expect("the cards are good");
//! team.start().await?;
//! assert_eq!(team.run(None, "hello").await?.output, "hello");
//! team.shutdown().await;
//! # Ok::<_, Box<dyn std::error::Error>>(()) })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub mod build;
pub mod card;
pub mod check;
pub mod compose;
pub mod diagnostic;
pub mod dump;
pub mod embed;
mod feature;
pub mod hook;
pub mod limit;
mod nearest;
pub mod project;
mod python;
pub mod sandbox;
pub mod schema;
pub mod server;
pub mod source;
pub mod sources;
pub mod team;
pub mod trust;
pub mod user;

pub use build::HookCatalog;
pub use card::Card;
pub use check::{LoadOptions, Loaded, load};
pub use diagnostic::{Code, Diagnostic, Report, Severity};
pub use nearest::nearest;
pub use project::Project;
pub use team::{Team, TeamError};
pub use user::UserConfig;

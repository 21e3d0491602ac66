//! Context variables: what the agents of a chat share, and where it comes from.
//!
//! A workflow declares its variables, each with a type and a source, and says which agent gets to
//! read which. [`Variables`] is what it declares, checked; a [`Session`] is what one chat has of it:
//! the values it began with, what is read again and what is written, and when. Who may write what
//! is settled by `rules.rs`: states and documents that the chat writes, with a value of their type;
//! everything else that is declared is read-only to hooks and tools, and what is not declared is the
//! chat's scratch, which neither prompts nor handoffs see.

mod computed;
mod database;
mod definition;
mod expose;
mod kind;
mod load;
mod pattern;
mod plan;
mod problem;
mod provided;
mod rules;
mod session;
mod sqlite;
mod template;
mod trigger;
mod writing;

pub use database::{Database, DatabaseError, Document, Query};
pub use definition::{
    Computed, Config, DataEntity, DataReference, Definition, EntityField, Exposure, File,
    FileFormat, Index, PersistTo, Refresh, Source, SourceKind, State, Transition, Trigger,
    WriteStrategy,
};
pub use kind::Kind;
pub(crate) use kind::shown;
pub use load::RuntimeKeys;
pub use pattern::{Pattern, Regular};
pub(crate) use plan::secrets;
pub use plan::{Variables, check};
pub use problem::Problem;
pub use provided::{DescribedSchema, Provided};
pub use session::Session;
pub use sqlite::Sqlite;
pub use trigger::{CONTEXT_CHANGED, Change, Heard};

//! The ready-made hooks of Tenure: what people write by hand in every agent.
//!
//! Each is a builder that is given to `with_lifecycle`, and a name that cards and workflows use:
//!
//! ```yaml
//! hooks:
//!   - { use: retry, with: { attempts: 3 } }
//! ```
//!
//! A hook says where it has to stand among the others (a cache around a retry, a guard next to the
//! tool), so the order in which they are registered does not matter, and an order that cannot work is
//! refused when the agent is built. [`ready`] lists them all with their options.

#[cfg(feature = "standard")]
pub mod adapt;
#[cfg(feature = "standard")]
pub mod calls;
#[cfg(feature = "standard")]
pub mod context;
#[cfg(feature = "standard")]
pub mod critic;
#[cfg(feature = "standard")]
pub mod guard;
#[cfg(feature = "standard")]
pub mod input;
pub mod limit;
#[cfg(feature = "standard")]
pub mod people;
pub mod ready;
#[cfg(feature = "standard")]
pub mod result;
#[cfg(feature = "standard")]
pub mod see;
#[cfg(feature = "standard")]
pub mod tools;
#[cfg(feature = "standard")]
mod words;

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

pub mod adapt;
pub mod calls;
pub mod context;
pub mod critic;
pub mod guard;
pub mod input;
pub mod people;
pub mod ready;
pub mod result;
pub mod see;
pub mod tools;
mod words;

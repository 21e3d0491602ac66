//! Hooks that keep things private, and hooks that ask people.

mod approval;
mod approval_edits;
mod approval_names;
mod approval_resume;
mod pii;
mod pii_forms;
mod safety;
mod support;

//! The order in which agents were declared.

use std::sync::Arc;

/// The one after `name` in the order of declaration, if that is somebody else.
pub(super) fn next_after<'a>(agents: &'a [Arc<str>], name: &str) -> Option<&'a Arc<str>> {
    let at = agents.iter().position(|agent| &**agent == name)?;
    agents.get((at + 1) % agents.len()).filter(|next| &***next != name)
}

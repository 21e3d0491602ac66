//! How deep chats are inside of each other.

use serde_json::Value;
use tenure_core::Error;
use tenure_core::context::ExecutionContext;

/// How many chats may be inside of each other.
pub const MOST_DEPTH: u64 = 8;

/// Where a context says how deep its chat is.
const DEPTH: &str = "flow_depth";

/// Refuses a chat that is too deep inside of others.
pub(crate) fn check_depth(context: &ExecutionContext) -> Result<(), Error> {
    let depth = depth(context);
    if depth < MOST_DEPTH {
        return Ok(());
    }
    Err(Error::orchestration(format!(
        "the chat would be the {depth}th inside of another, and {MOST_DEPTH} are allowed inside of \
         each other; a workflow may be running itself"
    )))
}

/// The context of a chat inside of the one that `context` belongs to.
pub(crate) fn child_context(context: &ExecutionContext, intent: &str) -> ExecutionContext {
    context.child(intent).with_metadata(DEPTH, depth(context) + 1)
}

fn depth(context: &ExecutionContext) -> u64 {
    context.metadata().get(DEPTH).and_then(Value::as_u64).unwrap_or(0)
}

//! How a guard ends a turn from within a tool call.
//!
//! What a guard says no to is a result that the model reads. A guard that is to end the turn leaves a
//! mark behind, and says so when the model would be asked again: every call of the batch has its
//! result by then. The mark is state of the instance, so a resumed run has it too.

use serde_json::Value;
use tenure_core::Error;
use tenure_core::context::{Cx, ToolCx, TurnCx};

/// Leaves the mark at once, and not with the batch: a call that is cut off leaves it too.
pub(crate) fn mark(cx: ToolCx<'_>, key: &str, why: &str) -> Result<(), Error> {
    Cx::set_state(&cx, key, why)
}

/// Why the turn is to end, if it is. A mark that an earlier turn has left is taken away.
pub(crate) fn marked(cx: TurnCx<'_>, key: &str) -> Result<Option<String>, Error> {
    let Some(Value::String(why)) = cx.state(key) else { return Ok(None) };
    if cx.step_number() > 1 {
        return Ok(Some(why));
    }
    cx.set_state(key, Value::Null)?;
    Ok(None)
}

//! Calls of a workflow's lifecycle tools, as their events tell of them.

use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

/// The triggers of lifecycle tools.
pub(super) const TRIGGERS: [&str; 4] = ["before_chat", "after_chat", "before_agent", "after_agent"];
/// The ends that a call can have.
const STATUSES: [&str; 8] =
    ["success", "error", "timed_out", "crashed", "cancelled", "not_started", "bad_reply", "paused"];

/// A call of a lifecycle tool that is over.
pub(super) struct LifecycleCall<'e> {
    /// The place of its trigger in [`TRIGGERS`].
    pub(super) trigger: usize,
    /// Its name, which begins with `platform.` if it is the platform's own.
    pub(super) tool: Cow<'e, str>,
    /// Its end, of a set that does not grow.
    pub(super) status: &'static str,
    /// Its own time.
    pub(super) took: Duration,
    /// The function that it runs.
    pub(super) function: Option<&'e str>,
    /// Its purpose.
    pub(super) description: Option<&'e str>,
}

impl<'e> LifecycleCall<'e> {
    /// Reads the call that an announced event tells of, if it is one.
    pub(super) fn read(name: &str, data: &'e Value) -> Option<Self> {
        if !matches!(
            name,
            "lifecycle.tool_result" | "lifecycle.tool_error" | "lifecycle.tool_paused"
        ) {
            return None;
        }
        // Others may announce events of these names, and say what they like.
        let text = |field: &str| data.get(field).and_then(Value::as_str);
        let trigger = text("trigger")?;
        let tool = text("tool")?;
        let status = text("status")?;
        let seconds = data.get("elapsed_ms")?.as_f64()? / 1000.0;
        Some(Self {
            trigger: TRIGGERS.iter().position(|known| *known == trigger)?,
            tool: match text("origin") {
                Some("platform") => format!("platform.{tool}").into(),
                _ => tool.into(),
            },
            status: STATUSES.into_iter().find(|known| *known == status).unwrap_or("other"),
            took: Duration::try_from_secs_f64(seconds).ok()?,
            function: text("function"),
            description: text("description"),
        })
    }
}

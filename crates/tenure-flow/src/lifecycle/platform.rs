//! The platform's own lifecycle tools: a line when a chat begins, and one when it is over.

use super::{LifecycleCall, LifecycleTool, Run, Trigger};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tenure_core::context::Cx;
use tenure_core::event::LogStream;
use tenure_core::hook::Origin;
use tenure_hosts::PythonFunction;
use tokio::time::Instant;

/// The file beneath the root of a project whose functions stand in for the platform's own.
const FILE: &str = "logs/workflow_lifecycle.py";
const DEFAULTS: [(Trigger, &str); 2] =
    [(Trigger::BeforeChat, "log_workflow_start"), (Trigger::AfterChat, "log_workflow_completion")];

/// The tools that every workflow has: `log_workflow_start` and `log_workflow_completion`.
///
/// `replaced` gives the function of the project's own `logs/workflow_lifecycle.py` that stands in
/// for the one of this name, if there is one.
#[doc(alias = "log_workflow_completion")]
#[doc(alias = "log_workflow_start")]
pub fn platform_defaults(
    replaced: impl Fn(&'static str) -> Option<PythonFunction>,
) -> Vec<LifecycleTool> {
    let tool = |(trigger, name)| {
        let mut tool = match replaced(name) {
            Some(function) => {
                let mut tool = LifecycleTool::new(trigger, name, Run::Python(function));
                tool.file = FILE.into();
                tool
            }
            None => LifecycleTool::new(trigger, name, Run::Platform),
        };
        tool.function = name.into();
        tool.origin = Origin::Platform;
        tool
    };
    DEFAULTS.into_iter().map(tool).collect()
}

/// The state of the agent that stands for a chat which holds when it began.
const BEGAN: &str = "_chat_began";

/// Keeps when a chat began, for the platform's own line at its end: also if the project has its own at
/// the begin. Nothing is kept where no line asks for it.
///
/// The moment is state of the agent that stands for the chat, and so it is on record with the first
/// `before_chat`: a chat that goes on in another process began in its first life.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChatClock {
    is_asked: bool,
}

impl ChatClock {
    /// The clock of chats that these tools are called in.
    pub(super) fn of(tools: &[&LifecycleTool]) -> Self {
        let asks = |tool: &&LifecycleTool| {
            tool.trigger == Trigger::AfterChat && matches!(tool.run, Run::Platform)
        };
        Self { is_asked: tools.iter().any(asks) }
    }

    /// A chat begins, unless it has begun before.
    pub(super) fn begin(self, cx: &Cx<'_>) {
        if self.is_asked && cx.state(BEGAN).is_none() {
            // Only an agent that is terminated has no state, and then there is no chat.
            let _ = cx.keep_state(BEGAN, Began::now());
        }
    }

    /// Returns how long a chat took, if its begin was kept.
    fn end(self, cx: &Cx<'_>) -> Option<Duration> {
        cx.state_as::<Began>(BEGAN).ok().flatten().map(|began| began.elapsed())
    }
}

/// The moment at which a chat began.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Began {
    unix_ms: u64,
    /// In the process where it began: the clock on the wall may be set while it goes on.
    #[serde(skip)]
    here: Option<Instant>,
}

impl Began {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { unix_ms, here: Some(Instant::now()) }
    }

    /// The time since then. In a later life of the run the clock on the wall tells it, and the time
    /// between the lives is part of it.
    fn elapsed(&self) -> Duration {
        match self.here {
            Some(here) => here.elapsed(),
            None => {
                let began = Duration::from_millis(self.unix_ms);
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                now.unwrap_or_default().saturating_sub(began)
            }
        }
    }
}

impl From<Began> for Value {
    fn from(began: Began) -> Self {
        json!({ "unix_ms": began.unix_ms })
    }
}

/// Logs the line of a chat's begin or end.
pub(super) struct Line {
    name: Arc<str>,
    clock: ChatClock,
}

impl Line {
    pub(super) fn new(name: Arc<str>, clock: ChatClock) -> Self {
        Self { name, clock }
    }

    /// `is_paused` says of a chat that is over that it waits for a person who is not there.
    pub(super) fn say(&self, call: &LifecycleCall<'_>, is_paused: bool) -> Value {
        let text = |key: &str| {
            let value = call.variables().and_then(|variables| variables.get(key));
            match value {
                Some(Value::String(text)) if !text.is_empty() => text,
                Some(Value::Null | Value::String(_)) | None => "-".to_owned(),
                Some(other) => other.to_string(),
            }
        };
        let (workflow, chat) = (text("workflow_name"), text("chat_id"));
        let timestamp = timestamp(SystemTime::now());
        let cx = call.cx();
        let (line, result) = match call.outcome() {
            None => {
                self.clock.begin(cx);
                let (user, app) = (text("user_id"), text("app_id"));
                let line = format!(
                    "🚀 Workflow Initialized | workflow={workflow} | chat={chat} | user={user} | \
                     app={app} | timestamp={timestamp}"
                );
                (line, Value::Null)
            }
            Some(outcome) => {
                let took = match self.clock.end(cx) {
                    // It began in another process, which kept no moment.
                    None if cx.resumed() => None,
                    took => Some(took.unwrap_or_default().as_secs_f64()),
                };
                let duration = took.map_or_else(|| "-".to_owned(), |took| format!("{took:.2}s"));
                let (word, how) = match outcome.is_ok() {
                    true => ("✅ Workflow Completed", String::new()),
                    false if is_paused => ("⏸ Workflow Paused", String::new()),
                    false => ("⛔ Workflow Ended", format!(" | outcome={outcome}")),
                };
                let line = format!(
                    "{word} | workflow={workflow} | chat={chat}{how} | duration={duration} | \
                     timestamp={timestamp}"
                );
                (line, json!({ "duration_s": took.map(|took| (took * 100.0).round() / 100.0) }))
            }
        };
        cx.log(&self.name, LogStream::Host, &line);
        result
    }
}

/// The time in UTC, as in `2025-10-10T14:32:15.123Z`.
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since the first of March of the year 0, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_the_time_in_utc() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_760_106_735_123, "2025-10-10T14:32:15.123Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
        ] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(timestamp(at), expected);
        }
    }
}

//! The events of a call: one when it begins, and one when it is over.

use super::{LifecycleTool, Run};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::Error;
use tenure_core::context::Cx;
use tenure_core::event::LogStream;
use tenure_core::hook::{FaultKind, HookError, Origin};
use tenure_hosts::PythonError;
use tokio::time::Instant;

/// A call that has begun. However it ends, that is announced once: also if it is dropped half way.
pub(super) struct Begun<'a> {
    tool: &'a LifecycleTool,
    /// The name of the entry, for the log.
    name: &'a str,
    cx: Cx<'a>,
    since: Instant,
    is_over: bool,
}

impl<'a> Begun<'a> {
    pub(super) fn new(tool: &'a LifecycleTool, name: &'a str, cx: Cx<'a>) -> Self {
        let begun = Self { tool, name, cx, since: Instant::now(), is_over: false };
        cx.announce("lifecycle.tool_call", || begun.payload("started"));
        begun
    }

    /// What every event of the call says.
    fn payload(&self, status: &str) -> Value {
        let LifecycleTool { trigger, agent, file, function, name, description, .. } = self.tool;
        let mut payload = json!({
            "tool": name,
            "trigger": trigger,
            "agent": agent,
            "function": function,
            "file": Some(file).filter(|file| !file.is_empty()),
            "status": status,
        });
        if let Some(description) = description {
            payload["description"] = (&**description).into();
        }
        // A tool of the workflow's may have the same name.
        if self.tool.origin == Origin::Platform {
            payload["origin"] = "platform".into();
        }
        if !trigger.is_of_chat() {
            payload["current_agent"] = self.cx.agent_name().into();
        }
        payload
    }

    /// The function's own time, its repetitions included. What came before it began is not its own:
    /// the start of Python, the import of its module, the queue before its thread.
    fn took(&self) -> Duration {
        self.since.elapsed().saturating_sub(self.cx.time_off())
    }

    /// The function as the log names it, with what it is for in one line.
    fn described(&self) -> String {
        match &self.tool.description {
            Some(description) => {
                let words: Vec<_> = description.split_whitespace().collect();
                format!("{} ({})", self.tool.function, words.join(" "))
            }
            None => self.tool.function.to_string(),
        }
    }

    fn over(&self, status: &str) -> Value {
        let mut payload = self.payload(status);
        let millis = self.took().as_secs_f64() * 1000.0;
        payload["elapsed_ms"] = ((millis * 1000.0).round() / 1000.0).into();
        payload
    }

    /// It returned.
    pub(super) fn returned(mut self, result: Value) {
        self.is_over = true;
        // The platform's own is a line of the log already.
        if !result.is_null() && !matches!(self.tool.run, Run::Platform) {
            let line = format!("{} returned {result}", self.described());
            self.cx.log(self.name, LogStream::Host, &line);
        }
        self.cx.announce("lifecycle.tool_result", || {
            let mut payload = self.over("success");
            payload["result"] = result;
            payload
        });
    }

    /// It failed.
    pub(super) fn failed(mut self, error: &HookError) {
        self.is_over = true;
        let traceback =
            error.downcast_ref::<PythonError>().and_then(|error| error.traceback.as_deref());
        let status = match error.kind() {
            _ if error.downcast_ref::<Error>().is_some_and(Error::is_cancelled) => "cancelled",
            FaultKind::Panicked => "crashed",
            FaultKind::Exited if !matches!(self.tool.run, Run::Command { .. }) => "crashed",
            FaultKind::TimedOut => "timed_out",
            FaultKind::NotStarted => "not_started",
            FaultKind::BadReply => "bad_reply",
            _ => "error",
        };
        self.announce_failure(status, &error.to_string(), traceback);
    }

    /// It was left with its chat, which goes on later and calls it again.
    fn paused(&self) {
        let line = format!("{} is paused with its chat", self.described());
        self.cx.log(self.name, LogStream::Host, &line);
        self.cx.announce("lifecycle.tool_paused", || self.over("paused"));
    }

    /// Why it was cut off: its own time was up, or that of what it belongs to.
    fn cut_off(&self, is_late: bool) -> String {
        let own = match (self.tool.timeout, self.tool.trigger.is_end()) {
            (Some(limit), _) => limit.duration(),
            (None, true) => Duration::from_secs(5),
            (None, false) => Duration::from_secs(30),
        };
        let took = self.took();
        match took >= own {
            true => format!("no answer within {own:?}"),
            false if is_late => "the time of the turn was up".to_owned(),
            false => format!("no answer within {}ms, when its time was up", took.as_millis()),
        }
    }

    fn announce_failure(&self, status: &str, error: &str, traceback: Option<&str>) {
        let (trigger, agent) = (self.tool.trigger.as_str(), self.cx.agent_name());
        let description = self.tool.description.as_deref();
        tracing::warn!(agent, trigger, tool = self.name, description, status, traceback, "{error}");
        let line = format!("{} failed: {error}", self.described());
        self.cx.log(self.name, LogStream::Host, &line);
        self.cx.announce("lifecycle.tool_error", || {
            let mut payload = self.over(status);
            payload["error"] = error.into();
            if let Some(traceback) = traceback {
                payload["traceback"] = traceback.into();
            }
            payload
        });
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if self.cx.is_left() {
            self.paused();
            return;
        }
        let is_late = self.cx.deadline().is_some_and(|at| at <= std::time::Instant::now());
        let (status, error) = if std::thread::panicking() {
            ("crashed", "it panicked".to_owned())
        } else if self.cx.is_expired() {
            ("timed_out", "the time of the chat was up".to_owned())
        } else if self.cx.is_cancelled() && !is_late {
            ("cancelled", "the chat was cancelled".to_owned())
        } else {
            ("timed_out", self.cut_off(is_late))
        };
        self.announce_failure(status, &error, None);
    }
}

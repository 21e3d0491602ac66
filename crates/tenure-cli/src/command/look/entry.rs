//! One record of a run, as these commands read it.

use crate::time::rfc3339;
use serde_json::{Value, json};
use std::time::SystemTime;
use tenure_core::RunId;
use tenure_core::step::StepKey;
use tenure_store::Record;

/// One record of a run.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) run: RunId,
    pub(super) seq: u64,
    pub(super) time: SystemTime,
    /// Its type, such as `tool.ended`.
    pub(super) of: String,
    pub(super) agent: Option<String>,
    pub(super) instance: Option<String>,
    pub(super) trace: Option<String>,
    pub(super) cause: Option<String>,
    pub(super) step: Option<StepKey>,
    /// Where in the run.
    pub(super) path: Option<String>,
    /// The id of what began or ended: `turn:`, `chat:` or `instance:` and its place.
    pub(super) scope: Option<String>,
    pub(super) data: Value,
}

impl Entry {
    pub(super) fn of(run: RunId, record: Record) -> Self {
        Self {
            run,
            seq: record.seq,
            time: record.time,
            of: record.name,
            agent: record.agent,
            instance: record.instance,
            trace: record.trace,
            cause: record.cause,
            step: record.step,
            path: record.path,
            scope: record.scope,
            data: record.data,
        }
    }

    /// What kind of thing it is that began or ended.
    pub(super) fn scope_kind(&self) -> Option<&str> {
        self.scope.as_deref()?.split(':').next()
    }

    /// A text in its data.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.data.get(name)?.as_str()
    }

    /// The record as a line of JSON has it.
    pub(super) fn to_json(&self) -> Value {
        let mut line = json!({
            "run": self.run,
            "seq": self.seq,
            "time": rfc3339(self.time),
            "type": self.of,
        });
        let texts = [
            ("agent", &self.agent),
            ("instance", &self.instance),
            ("trace", &self.trace),
            ("cause", &self.cause),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                line[name] = Value::from(text.as_str());
            }
        }
        if let Some(step) = &self.step {
            line["step"] = json!({
                "id": step.id(self.run),
                "path": step.path,
                "kind": step.kind,
                "name": step.name,
                "ordinal": step.ordinal,
                "input": format!("{:016x}", step.input),
            });
        }
        if let Some(scope) = &self.scope {
            line["scope"] = Value::from(scope.as_str());
            line["path"] = self.path.as_deref().map_or(Value::Null, Value::from);
        }
        line["data"] = self.data.clone();
        line
    }
}

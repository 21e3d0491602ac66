//! Calls that fail as a script says, and how often each has failed.

use super::{ScriptError, read_time, wrong};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::InstanceId;
use tenure_core::model::{ModelError, ModelErrorKind};

/// How many calls are counted at once. Whoever gives up before a call succeeds leaves one behind.
const MOST: usize = 1_000;
/// No call fails more often.
const MOST_TIMES: u64 = 1_000_000;

/// How a call fails.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    message: String,
    kind: ModelErrorKind,
    retry_after: Option<Duration>,
    /// How often; always, if it does not say.
    pub(super) times: Option<u64>,
}

impl Failure {
    pub(super) fn read(
        place: &str,
        message: String,
        object: &Map<String, Value>,
    ) -> Result<Self, ScriptError> {
        let given = |key: &str| object.get(key).filter(|value| !value.is_null());
        let kind = match given("kind") {
            None => ModelErrorKind::Other,
            Some(kind) => serde_json::from_value(kind.clone())
                .map_err(|error| wrong(format!("{place}.kind: {error}")))?,
        };
        let retry_after = match given("retry_after") {
            None => None,
            Some(Value::String(text)) => read_time(place, "retry_after", Some(text.clone()))?,
            Some(_) => return Err(wrong(format!("{place}.retry_after must be a text"))),
        };
        let times = match given("times").map(Value::as_u64) {
            None => None,
            Some(Some(times @ 1..=MOST_TIMES)) => Some(times),
            Some(_) => {
                let why = "must be a whole number, and at least 1";
                return Err(wrong(format!("{place}.times {why}")));
            }
        };
        Ok(Self { message, kind, retry_after, times })
    }

    pub(super) fn error(&self, fill: impl FnOnce(&str) -> String) -> ModelError {
        let error = ModelError::new(self.kind, fill(&self.message));
        match self.retry_after {
            Some(after) => error.with_retry_after(after),
            None => error,
        }
    }
}

/// A call that may be made again: of which instance, for which request, and which of the turn.
type Call = (InstanceId, String, usize);

/// How often calls have failed that fail a number of times. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempts(Arc<Mutex<VecDeque<(Call, u64)>>>);

impl Attempts {
    /// How often this call has failed before, if it is to fail again; `None` once it has failed `all`
    /// times, and then it is forgotten.
    pub(super) fn next(&self, call: Call, all: u64) -> Option<u64> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = counted.iter().position(|(known, _)| *known == call);
        let failed = place.and_then(|at| counted.remove(at)).map_or(0, |(_, failed)| failed);
        if failed >= all {
            return None;
        }
        if counted.len() >= MOST {
            counted.pop_front();
        }
        counted.push_back((call, failed + 1));
        Some(failed)
    }
}

/// What was counted is no part of what a script says.
impl PartialEq for Attempts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

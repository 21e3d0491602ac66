//! What a recorded chat says of itself in the record of its run, beside what its agents say.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tenure_core::step::{StepKey, Steps};
use tenure_core::{Error, ErrorKind};

/// Whether nothing of a chat goes on after this: its run is parked, or given up, or cancelled. Nobody
/// makes such a thing good by trying something else.
pub(crate) fn is_final(error: &Error) -> bool {
    error.parks() || error.is_cancelled() || error.kind() == ErrorKind::Abandoned
}

/// The id of a chat that is part of a run, the same in every life of it.
pub(super) fn chat_id(steps: &Steps) -> Arc<str> {
    let (run, path) = (steps.log().run_id(), steps.path());
    match &**path {
        "" => format!("chat_{run}").into(),
        path => format!("chat_{run}/{path}").into(),
    }
}

/// What came of something that does not come to the same twice: chance, a clock or a person had a
/// part in it. Looked up before it is tried again, and kept once it is over.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    steps: Steps,
    key: StepKey,
}

impl Outcome {
    /// The one of this name, at this place of a run.
    pub(crate) fn at(steps: &Steps, name: impl Into<Arc<str>>) -> Self {
        let key = StepKey::new(steps.path().clone(), "outcome", name, 0, 0);
        Self { steps: steps.clone(), key }
    }

    /// What came of it in an earlier life of the run.
    pub(crate) async fn known<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let mut is_new = false;
        let look = async {
            is_new = true;
            // An effect that fails is not recorded.
            Err(Error::cancelled())
        };
        match self.steps.log().step(self.key.clone(), Box::pin(look)).await {
            Ok(record) => read(record).map(Some),
            Err(_) if is_new => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps what came of it. What is used from here on is what is recorded.
    pub(crate) async fn keep<T>(&self, value: T) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut record = serde_json::to_value(&value).map_err(unreadable)?;
        let redacted = self.steps.log().redact(&mut record);
        let kept = self.steps.log().step(self.key.clone(), Box::pin(async { Ok(record) })).await?;
        if redacted { read(kept) } else { Ok(value) }
    }
}

fn read<T: DeserializeOwned>(record: Value) -> Result<T, Error> {
    serde_json::from_value(record).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::replay(format!("what the chat has on record cannot be read: {error}"))
}

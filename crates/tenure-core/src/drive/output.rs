//! Checking the form of an answer.

use std::fmt;
use std::sync::Arc;

/// How often a wrong answer is shown to the model before the turn fails.
pub(crate) const CORRECTIONS: u32 = 2;

type Check = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// Says whether an answer has the form that was asked for.
#[derive(Clone)]
pub(crate) struct OutputCheck(Arc<Check>);

impl OutputCheck {
    pub(crate) fn new(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        (self.0)(text)
    }
}

impl fmt::Debug for OutputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputCheck")
    }
}

//! What an inner chat's end means for the turn that it was.

use crate::chat::{ChatReport, ChatStatus};
use std::fmt;
use std::sync::Arc;
use tenure_core::{Error, ErrorKind};

/// An inner chat that did not come to its end.
#[derive(Debug)]
pub(super) struct InnerFailed {
    flow: Arc<str>,
    status: ChatStatus,
    error: Option<Error>,
}

impl InnerFailed {
    pub(super) fn new(report: &ChatReport) -> Self {
        Self { flow: report.flow.clone(), status: report.status, error: report.error.clone() }
    }
}

impl fmt::Display for InnerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flow, status, error } = self;
        write!(f, "the workflow `{flow}` inside of it ended as {status}")?;
        match error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InnerFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.as_ref().map(|error| error as &(dyn std::error::Error + 'static))
    }
}

/// What kind of failure a turn had that was an inner chat: one that was refused is refused outside
/// too, one whose time was up took too long. Its turns are its own affair, and so is who cancelled
/// it: outside it has failed.
pub(crate) fn cause(error: &Error) -> Option<&Error> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(inner) = error.downcast_ref::<InnerFailed>() {
            let kinds = [ErrorKind::Denied, ErrorKind::TimedOut, ErrorKind::Panicked];
            let inner = inner.error.as_ref()?;
            return kinds.contains(&inner.kind()).then_some(inner);
        }
        cause = error.source();
    }
    None
}

//! A way to announce lines when no call is under way.

use crate::agent::Inner;
use crate::event::{EventKind, LogStream};
use std::fmt;
use std::sync::{Arc, Weak};

/// Announces what something foreign prints while an instance lives: between its calls, too.
///
/// It does not keep the instance alive; once that is gone it says nothing.
#[derive(Clone)]
pub struct Logger {
    instance: Weak<Inner>,
}

impl Logger {
    pub(crate) fn of(instance: &Arc<Inner>) -> Self {
        Self { instance: Arc::downgrade(instance) }
    }

    /// Announces a line, for whoever listens: `source` says what printed it.
    pub fn log(&self, source: &str, stream: LogStream, line: &str) {
        let Some(instance) = self.instance.upgrade() else { return };
        if let Some(bus) = instance.listening() {
            let (source, line) = (source.into(), line.to_owned());
            bus.emit(&instance, None, EventKind::Log { source, stream, line });
        }
    }

    /// Whether there is still an instance to speak for.
    pub fn is_alive(&self) -> bool {
        self.instance.strong_count() > 0
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("alive", &self.is_alive()).finish()
    }
}

//! A check before a process is started.

use std::fmt;
use std::sync::Arc;

/// Says before each start of a process whether it may be started.
///
/// It is for files that were checked and may have been changed since. Between the check and the start they can still
/// be: what runs is read by the system.
#[derive(Clone)]
pub struct StartCheck(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl StartCheck {
    /// A check whose error says why the process must not be started. It may read files: it is called where that
    /// keeps no other task waiting.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Checks, on a thread for work that blocks.
    pub async fn run(&self) -> Result<(), String> {
        let check = self.0.clone();
        let checked = tokio::task::spawn_blocking(move || check()).await;
        checked.unwrap_or_else(|error| Err(format!("it could not be checked: {error}")))
    }
}

impl fmt::Debug for StartCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartCheck")
    }
}

impl PartialEq for StartCheck {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for StartCheck {}

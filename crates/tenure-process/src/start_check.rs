//! A check before a process is started.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tenure_sandbox::Confinement;

/// The variable that says where Python looks for compiled code, and a place that has none and takes none.
const NO_CACHES: (&str, &str) = ("PYTHONPYCACHEPREFIX", "/dev/null");

/// Says before each start of a process whether it may be started.
///
/// It is for files that were checked and may have been changed since. Between the check and the start they can still
/// be: what runs is read by the system.
#[derive(Clone)]
pub struct StartCheck {
    check: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    caches: Arc<[PathBuf]>,
}

impl StartCheck {
    /// A check whose error says why the process must not be started. It may read files: it is called where that
    /// keeps no other task waiting.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { check: Arc::new(check), caches: Arc::default() }
    }

    /// Names the places where Python would find compiled code for the sources that were checked. It believes such code
    /// by a time and a size that anyone can write, so the process may see none of it.
    #[must_use]
    pub fn distrusting(mut self, caches: impl IntoIterator<Item = PathBuf>) -> Self {
        self.caches = caches.into_iter().collect();
        self
    }

    /// Returns the variable that a process under these rules needs to read no compiled code; none, if the rules hide all
    /// that there is. It takes that of installed packages too, which costs a start some 100 ms.
    pub fn variable(&self, rules: Option<&Confinement>) -> Option<(OsString, OsString)> {
        let hidden = rules.map(|rules| rules.hidden.as_slice()).unwrap_or_default();
        let is_hidden = self.caches.iter().all(|place| hidden.contains(place));
        (!is_hidden).then(|| (NO_CACHES.0.into(), NO_CACHES.1.into()))
    }

    /// Checks, on a thread for work that blocks.
    pub async fn run(&self) -> Result<(), String> {
        let check = self.check.clone();
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
        Arc::ptr_eq(&self.check, &other.check) && self.caches == other.caches
    }
}

impl Eq for StartCheck {}

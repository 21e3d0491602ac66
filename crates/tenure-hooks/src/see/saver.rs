//! A file that always holds the newest of something, and is never seen half written.

use super::seen::lock;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Keeps a file up to date, off the agents' threads. Saves that come while one is under way become
/// one.
pub(super) struct Saver {
    path: PathBuf,
    mode: u32,
    render: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
    state: Mutex<State>,
    /// Says that nobody writes soon any more.
    rests: Condvar,
    /// Held while the file is written.
    writing: Mutex<()>,
}

/// How long to wait for a save that is under way; it is made anew after that.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    wanted: bool,
    running: bool,
    told: bool,
}

impl Saver {
    /// Saves what `render` says. The file has these permissions.
    pub(super) fn new(
        path: PathBuf,
        mode: u32,
        render: impl Fn() -> Vec<u8> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (state, rests, writing) = (Mutex::default(), Condvar::new(), Mutex::default());
        Arc::new(Self { path, mode, render: Box::new(render), state, rests, writing })
    }

    /// Has the file written soon, by another thread.
    pub(super) fn soon(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.wanted = true;
        if !std::mem::replace(&mut state.running, true) {
            let saver = self.clone();
            tokio::task::spawn_blocking(move || saver.run());
        }
    }

    fn run(&self) {
        loop {
            {
                let mut state = lock(&self.state);
                if !std::mem::take(&mut state.wanted) {
                    state.running = false;
                    self.rests.notify_all();
                    return;
                }
            }
            if let Err(error) = self.write() {
                // Once is enough: it would be said at every turn.
                if !std::mem::replace(&mut lock(&self.state).told, true) {
                    tracing::warn!("{} cannot be written: {error}", self.path.display());
                }
            }
        }
    }

    /// Writes the file, and waits for it.
    pub(super) async fn now(self: &Arc<Self>) -> io::Result<()> {
        let saver = self.clone();
        tenure_core::blocking(move || saver.write_last()).await
    }

    /// Writes the file once nobody else does: it is at rest afterwards.
    fn write_last(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        state.wanted = false;
        let waited = self.rests.wait_timeout_while(state, PATIENCE, |state| state.running);
        drop(waited);
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let _one_at_a_time = lock(&self.writing);
        replace(&self.path, self.mode, &(self.render)())
    }
}

/// Puts a file in the place of another at once: whoever reads sees the one or the other.
fn replace(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = (|| {
        // What an earlier process of this number left behind is not written into.
        let _ = std::fs::remove_file(&part);
        let mut file = create(&part, mode)?;
        file.write_all(content)?;
        file.sync_data()?;
        std::fs::rename(&part, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn create(path: &Path, mode: u32) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

//! What a short-lived process prints, waited for without a runtime.

use crate::tree;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a pipe may stay open when the process itself has ended.
const AFTERMATH: Duration = Duration::from_millis(500);
/// How often it is looked whether the process has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// What a process printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Printed {
    /// What it wrote to its standard output.
    pub said: Vec<u8>,
    /// What it wrote to its standard error.
    pub words: Vec<u8>,
    /// How it ended.
    pub ended: ExitStatus,
}

/// Runs a command in a group of its own and waits for its end. When the patience is over, and also
/// when it has ended, what is left of the group is killed.
pub fn output_within(mut command: Command, patience: Duration) -> Result<Printed, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())?;
    let said = reader(child.stdout.take());
    let words = reader(child.stderr.take());
    let since = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(None) if since.elapsed() < patience => std::thread::sleep(PAUSE),
            Ok(Some(ended)) => break Ok(ended),
            Ok(None) => break Err(format!("it did not answer within {patience:?}")),
            Err(error) => break Err(error.to_string()),
        }
    };
    tree::kill_group(child.id());
    if ended.is_err() {
        // It has been killed, so this does not take long.
        let _ = child.wait();
    }
    let ended = ended?;
    let take = |from: mpsc::Receiver<Vec<u8>>| from.recv_timeout(AFTERMATH).unwrap_or_default();
    Ok(Printed { said: take(said), words: take(words), ended })
}

/// Reads a pipe to its end, beside whatever else goes on.
fn reader(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (give, take) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = pipe.read_to_end(&mut all);
            let _ = give.send(all);
        });
    }
    take
}

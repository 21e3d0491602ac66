//! Whether a log is as it was written.

use super::line::Head;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is read.
pub(super) const LONGEST: u64 = 16 << 20;

/// A log that is as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// How many lines it has.
    pub lines: u64,
    /// The hash of its last line. Kept elsewhere, it shows later whether lines are missing at the
    /// end: a log that was cut off there is a log of its own.
    pub head: String,
}

/// What is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// The line that is not as it should be, counted from one; 0 if the log cannot be read at all.
    /// Where lines are missing or in another order it is the first one that does not follow.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.why),
            line => write!(f, "line {line}: {}", self.why),
        }
    }
}

impl std::error::Error for Broken {}

/// Follows the chain from the first line to the last.
pub(super) fn verify(path: &Path) -> Result<Verified, Broken> {
    let unreadable =
        |error: std::io::Error| Broken { line: 0, why: format!("it cannot be read: {error}") };
    let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
    let (mut head, mut bytes) = (Head::start(), Vec::new());
    loop {
        bytes.clear();
        let broken = |why: String| Broken { line: head.seq + 1, why };
        let read = (&mut reader).take(LONGEST).read_until(b'\n', &mut bytes);
        if read.map_err(unreadable)? == 0 {
            return Ok(Verified { lines: head.seq, head: head.hash });
        }
        if bytes.pop() != Some(b'\n') {
            return Err(broken("it has no end: it was not written to the end, or cut".to_owned()));
        }
        let line = std::str::from_utf8(&bytes);
        let line = line.map_err(|_| broken("it is no text".to_owned()))?;
        head = head.follow(line).map_err(broken)?;
    }
}

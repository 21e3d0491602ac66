//! Reading a file from disk, bounded.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{MAX_FILE, Source, Span};
use crate::diagnostic::{Code, Diagnostic, Report};

/// Reads a file of at most [`MAX_FILE`] bytes; `shown` is the path that messages show. What is
/// wrong goes to the report. Only regular files are read: nothing here waits for a pipe.
pub fn read(path: &Path, shown: impl Into<PathBuf>, report: &mut Report) -> Option<Arc<Source>> {
    let shown = shown.into();
    match bytes(path) {
        Ok(bytes) => text(bytes, shown, report),
        Err((code, message, help)) => {
            let source = Arc::new(Source::new(shown, ""));
            report.push(Diagnostic::new(code, &source, Span::at(0), message).help(help));
            None
        }
    }
}

type Refusal = (Code, String, &'static str);

fn bytes(path: &Path) -> Result<Vec<u8>, Refusal> {
    read_bytes(path).map_err(|error| match &error {
        ReadError::Io(cause) if cause.kind() == ErrorKind::NotFound => (
            Code::PathMissing,
            "there is no such file".to_owned(),
            "check the path for a typing error",
        ),
        ReadError::Io(cause) if cause.kind() == ErrorKind::PermissionDenied => (
            Code::Unreadable,
            "the file may not be read".to_owned(),
            "give yourself the right to read it",
        ),
        ReadError::Io(_) => (Code::Unreadable, format!("the file {error}"), "check the path"),
        ReadError::Folder => {
            (Code::Unreadable, "this is a folder, and a file is needed".to_owned(), "name a file")
        }
        ReadError::NotRegular => {
            let message = "this is no regular file, and a file is needed".to_owned();
            (Code::Unreadable, message, "name a file")
        }
        ReadError::TooLarge => {
            let help = "a card is a short text; name the right file";
            (Code::TooLarge, format!("the file {error}"), help)
        }
    })
}

/// The reason why a file is not read. Its text goes on with the name of the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refuses.
    Io(std::io::Error),
    /// It is a folder.
    Folder,
    /// It is a pipe or a device, which may have no end.
    NotRegular,
    /// It has more than [`MAX_FILE`] bytes.
    TooLarge,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Folder => f.write_str("is a folder"),
            Self::NotRegular => f.write_str("is not a regular file"),
            Self::TooLarge => f.write_str("is larger than 1 MiB"),
        }
    }
}

/// Reads a regular file of at most [`MAX_FILE`] bytes. Nothing here waits for a pipe.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let meta = std::fs::metadata(path).map_err(ReadError::Io)?;
    if !meta.is_file() {
        return Err(if meta.is_dir() { ReadError::Folder } else { ReadError::NotRegular });
    }
    let mut bytes = Vec::with_capacity((meta.len() as usize).min(MAX_FILE) + 1);
    let file = File::open(path).map_err(ReadError::Io)?;
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if bytes.len() > MAX_FILE {
        return Err(ReadError::TooLarge);
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>, shown: PathBuf, report: &mut Report) -> Option<Arc<Source>> {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Some(Arc::new(Source::new(shown, text))),
        Err(error) => error,
    };
    let at = error.utf8_error().valid_up_to();
    let bytes = error.into_bytes();
    let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let what = if wide { "UTF-16" } else { "not valid UTF-8" };
    let byte = bytes[at];
    // Up to the bad byte the lossy text is the file's own, so the place is right.
    let source = Arc::new(Source::new(shown, String::from_utf8_lossy(&bytes)));
    report.push(
        Diagnostic::new(
            Code::NotUtf8,
            &source,
            Span::new(at, at + '\u{fffd}'.len_utf8()),
            format!("the file is {what}: byte {byte:#04x} at offset {at}"),
        )
        .help("save it as UTF-8"),
    );
    None
}

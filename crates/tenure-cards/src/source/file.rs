//! Reading a file from disk, bounded.

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
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => (
            Code::PathMissing,
            "there is no such file".to_owned(),
            "check the path for a typing error",
        ),
        ErrorKind::PermissionDenied => (
            Code::Unreadable,
            "the file may not be read".to_owned(),
            "give yourself the right to read it",
        ),
        _ => (Code::Unreadable, format!("the file cannot be read: {error}"), "check the path"),
    };
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        let what = if meta.is_dir() { "a folder" } else { "no regular file" };
        let message = format!("this is {what}, and a file is needed");
        return Err((Code::Unreadable, message, "name a file"));
    }
    let mut bytes = Vec::with_capacity((meta.len() as usize).min(MAX_FILE) + 1);
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_FILE {
        let message = "the file is larger than 1 MiB".to_owned();
        return Err((Code::TooLarge, message, "a card is a short text; name the right file"));
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

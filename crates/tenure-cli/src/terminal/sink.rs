//! The two streams of the program. Everything that it prints passes through here, so that no secret
//! of a project comes out, whoever says it: a hook, a model, an error or an event.

use super::stream::{Stream, write};
use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use serde_json::Value;
use std::borrow::Cow;
use std::io::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{LazyLock, Mutex, PoisonError};
use tenure_cards::card::Environ;
use tenure_core::secret::Redactor;

/// The redactor of the process, as its streams are the process's. A project that is opened teaches it its
/// secrets, and its agents and its store are given this one; what was hidden stays hidden when files are
/// read again, because those who know the old secrets still run.
static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::of(Environ::process().secrets(&[])));

/// The redactor of every sink.
pub(crate) fn redactor() -> &'static Redactor {
    &REDACTOR
}

/// `text` as it may be shown, for what writes to the terminal by itself.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    REDACTOR.redact(text)
}

/// Takes out of `value` what may not be shown.
pub(crate) fn redact(value: &mut Value) {
    REDACTOR.redact_json(value);
}

/// How much at the end of `text` could be the beginning of a secret: what follows decides.
pub(crate) fn withheld(text: &str) -> usize {
    REDACTOR.unfinished(text)
}

/// Who puts lines above the one that is being typed.
static ABOVE: Mutex<Option<Sender<String>>> = Mutex::new(None);
/// Whether a line is being typed.
static EDITED: AtomicBool = AtomicBool::new(false);

/// From now on what is printed on standard error while a line is typed goes here.
pub(super) fn above(lines: Sender<String>) {
    *ABOVE.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
}

/// Says whether a line is being typed.
pub(super) fn set_edited(is_edited: bool) {
    EDITED.store(is_edited, Ordering::Release);
}

/// Whether a line is being typed, so that nothing may be drawn.
pub(super) fn is_edited() -> bool {
    EDITED.load(Ordering::Acquire)
}

/// Puts a piece of an answer on standard output as it is.
pub(crate) fn print_piece(text: &str) -> Result<()> {
    write(Stream::Out, shown(text).as_bytes())
}

/// Prints text on standard output, ended by a line break, with its colours where they are seen.
pub(crate) fn print_text(text: &str) -> Result<()> {
    print_as_written(&shown(text))
}

/// The same for what holds nothing but what a file says, and must not differ from it.
pub(crate) fn print_as_written(text: &str) -> Result<()> {
    let text = dressed(text, AutoStream::choice(&std::io::stdout()));
    write(Stream::Out, ended(&text).as_bytes())
}

/// Prints an answer on standard output, ended by a line break, byte for byte.
pub(crate) fn print_answer(text: &str) -> Result<()> {
    write(Stream::Out, ended(&shown(text)).as_bytes())
}

/// Prints a JSON document on standard output, for people to read too.
pub(crate) fn print_document(mut value: Value) -> Result<()> {
    redact(&mut value);
    print_as_written(&format!("{value:#}"))
}

/// Prints a line of JSON on standard output. A reader that went away does not stop a run.
pub(crate) fn print_json(mut value: Value) {
    redact(&mut value);
    drop(write(Stream::Out, format!("{value}\n").as_bytes()));
}

/// The same for a command that has nothing else to do: if nobody reads it any more, it ends.
pub(crate) fn print_json_line(mut value: Value) -> Result<()> {
    redact(&mut value);
    write(Stream::Out, format!("{value}\n").as_bytes())
}

/// Prints a line on standard error. A terminal that went away does not stop a run.
pub(crate) fn print_plain(line: &str) {
    prompt(&format!("{line}\n"));
}

/// Puts text on standard error as it is, with no line break behind it: the answer is typed there.
pub(crate) fn prompt(text: &str) {
    let text = shown(text);
    let text = dressed(&text, AutoStream::choice(&std::io::stderr()));
    if is_edited()
        && let Some(above) = &*ABOVE.lock().unwrap_or_else(PoisonError::into_inner)
        && above.send(text.clone().into_owned()).is_ok()
    {
        return;
    }
    // A terminal that went away answers nothing either, and that is a no.
    drop(write(Stream::Err, text.as_bytes()));
}

fn dressed(text: &str, choice: ColorChoice) -> Cow<'_, str> {
    match choice {
        ColorChoice::Never => strip_str(text).to_string().into(),
        _ => text.into(),
    }
}

fn ended(text: &str) -> Cow<'_, str> {
    if text.ends_with('\n') { text.into() } else { format!("{text}\n").into() }
}

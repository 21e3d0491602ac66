//! Colours, and where they go. All of them pass through `anstream`, which honours NO_COLOR,
//! CLICOLOR and CLICOLOR_FORCE and leaves them out where there is no terminal.

use anstyle::{AnsiColor, Style};
use std::fmt::Display;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const CALM: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// `text` in `style`. Streams of this program take the codes out again where they do not belong.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// `text` with its colours only if standard error shows them, for what does not go through
/// `anstream` itself.
pub(crate) fn on_stderr(text: &str) -> String {
    match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.to_owned(),
    }
}

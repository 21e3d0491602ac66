//! Colours, and where they go. All of them pass through `anstream`, which honours NO_COLOR,
//! CLICOLOR and CLICOLOR_FORCE and leaves them out where there is no terminal.

use anstyle::{AnsiColor, Style};
use std::fmt::Display;

pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const CALM: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();

/// `text` in `style`. Streams of this program take the codes out again where they do not belong.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// `text` as standard error may show it: with its colours only where they are seen, and without
/// secrets. For what writes to the terminal by itself.
pub(crate) fn on_stderr(text: &str) -> String {
    let text = &*super::sink::shown(text);
    match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.to_owned(),
    }
}

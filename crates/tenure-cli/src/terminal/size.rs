//! How much room there is.

/// The width of what is printed where nobody says it.
const PLAIN: usize = 100;
/// Nothing is readable in less.
const LEAST: usize = 40;

/// How many columns there are on standard error: what COLUMNS says, else what the terminal says.
pub(crate) fn columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|it| it.trim().parse().ok());
    let columns = said.filter(|columns| *columns > 0).or_else(|| terminal().map(|size| size.0));
    columns.map(|columns: usize| columns.max(LEAST))
}

/// How wide to draw.
pub(crate) fn width() -> usize {
    columns().unwrap_or(PLAIN)
}

/// Columns and rows of the terminal behind standard error.
pub(super) fn terminal() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then_some((size.ws_col.into(), size.ws_row.into()))
}

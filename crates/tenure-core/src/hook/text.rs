//! What a hook does to the text of a model before a reader sees it.

use std::fmt;
use std::sync::Arc;

/// What a hook does to a text piece by piece, for readers of a stream.
///
/// Whatever of a text has gone out has to be the beginning of what the hook makes of the whole: it
/// gives less rather than more, and the rest follows when the whole has been seen.
pub trait TextFilter: Send + Sync + 'static {
    /// Begins with a new text.
    fn open(&self) -> Box<dyn FilteredText>;
}

/// One text on its way through a [`TextFilter`].
pub trait FilteredText: Send {
    /// Takes the next piece, and gives what may go out by now: nothing, for as long as it cannot be
    /// known what will become of it.
    fn push(&mut self, piece: &str) -> String;
}

/// What a hook does to what a model said.
#[derive(Clone, Default)]
pub(crate) enum Text {
    /// It may change it when it has seen all of it.
    #[default]
    Changes,
    /// Nothing.
    Keeps,
    /// What the filter does.
    Filters(Arc<dyn TextFilter>),
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changes => "Changes",
            Self::Keeps => "Keeps",
            Self::Filters(_) => "Filters",
        })
    }
}

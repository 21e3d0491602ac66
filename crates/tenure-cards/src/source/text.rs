//! A file's text as people see it, and places in it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A range of bytes in a [`Source`], start inclusive and end exclusive.
///
/// A span made by this crate lies on character boundaries of its source's text; one made by hand
/// may not, and every method of [`Source`] that takes one copes with that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end` in bytes; an `end` before `start` gives an empty span.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The empty span at `at`.
    pub fn at(at: usize) -> Self {
        Self::new(at, at)
    }

    /// The bytes as a range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A place as people count: lines and columns from 1, a column for each character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The text of one file, with the path to show for it.
///
/// The text is exactly what the file holds (a byte order mark included), so that a byte offset in
/// a [`Span`] is a byte offset in the file.
pub struct Source {
    path: PathBuf,
    text: Arc<str>,
    lines: Vec<u32>,
}

/// Shows the path alone: a file may have secrets in it.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Source {
    /// A source with the path that messages show.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = starts.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX));
        let lines = std::iter::once(0).chain(starts).collect();
        Self { path: path.into(), text, lines }
    }

    /// The same with stars in the place of `span`, which may be a secret.
    pub(crate) fn hiding(&self, span: Span) -> Self {
        let hide = |(at, character): (usize, char)| {
            let inside = (span.start as usize..span.end as usize).contains(&at);
            match inside && character != '\n' {
                true => "*".repeat(character.len_utf8()),
                false => character.to_string(),
            }
        };
        let text: String = self.text.char_indices().map(hide).collect();
        Self { path: self.path.clone(), text: text.into(), lines: self.lines.clone() }
    }

    /// The path that messages show.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole text, shared.
    pub fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Line and column of a byte offset; one beyond the end, or within a character, counts as the
    /// nearest place before it.
    pub fn line_col(&self, offset: usize) -> Place {
        let offset = self.floor(offset);
        let line = self.line_index(offset);
        let start = self.lines[line] as usize;
        let start = if line == 0 { start + self.bom_len().min(offset) } else { start };
        Place { line: line + 1, column: self.text[start..offset].chars().count() + 1 }
    }

    /// The text of a span, cut to what the source holds.
    pub fn slice(&self, span: Span) -> &str {
        let start = self.floor(span.start as usize);
        let end = self.floor(span.end as usize).max(start);
        &self.text[start..end]
    }

    /// The span of the line (from 1) without its line break; an empty span at the end for a line
    /// that is not there.
    pub fn line_span(&self, line: usize) -> Span {
        let index = line.saturating_sub(1);
        let Some(start) = self.lines.get(index).map(|start| *start as usize) else {
            return Span::at(self.text.len());
        };
        let end = self.lines.get(index + 1).map_or(self.text.len(), |next| *next as usize - 1);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        Span::new(start, end)
    }

    /// The number of lines; text that ends in a line break has a last, empty line.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn bom_len(&self) -> usize {
        if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
    }

    fn line_index(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start as usize <= offset).saturating_sub(1)
    }

    fn floor(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_from_one() {
        let source = Source::new("a.md", "é🙂x\r\nsecond\n");
        assert_eq!(source.line_col(0), Place { line: 1, column: 1 });
        assert_eq!(source.line_col("é🙂".len()), Place { line: 1, column: 3 });
        assert_eq!(source.line_col("é🙂x\r\nse".len()), Place { line: 2, column: 3 });
    }

    #[test]
    fn a_place_beyond_the_end_or_inside_a_character_is_the_nearest_before() {
        let source = Source::new("a.md", "aé");
        assert_eq!(source.line_col(2), Place { line: 1, column: 2 });
        assert_eq!(source.line_col(99), Place { line: 1, column: 3 });
        assert_eq!(source.slice(Span::new(1, 99)), "é");
        assert_eq!(source.slice(Span { start: 9, end: 2 }), "");
    }

    #[test]
    fn a_byte_order_mark_takes_no_column() {
        let source = Source::new("a.md", "\u{feff}ab");
        assert_eq!(source.line_col(3), Place { line: 1, column: 1 });
        assert_eq!(source.line_col(4), Place { line: 1, column: 2 });
    }

    #[test]
    fn lines_are_given_without_their_break() {
        let source = Source::new("a.md", "one\r\ntwo\n");
        assert_eq!(source.slice(source.line_span(1)), "one");
        assert_eq!(source.slice(source.line_span(2)), "two");
        assert_eq!(source.slice(source.line_span(3)), "");
        assert_eq!(source.slice(source.line_span(9)), "");
        assert_eq!(source.line_count(), 3);
    }
}

//! Text that may have come from a card, made safe to print.

use std::borrow::Cow;

/// The text with every character escaped that could drive a terminal or hide what is written:
/// control characters (line breaks too) and those that change the direction of text.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hidden(character) {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// The text of an excerpt: what the excerpt's renderer would let through is replaced by harmless
/// characters of the same length, so that places stay right.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    // The renderer has signs of its own for the others, which are of one byte.
    let is_bad = |found: char| found.len_utf8() > 1 && is_hidden(found);
    if !text.chars().any(is_bad) {
        return Cow::Borrowed(text);
    }
    let shown = |found: char| match found.len_utf8() {
        _ if !is_bad(found) => found,
        2 => '¿',
        3 => '\u{fffd}',
        _ => '\u{1f6ab}',
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Whether a character steers a terminal, changes the direction of text, or is drawn as nothing: it could hide what
/// is written, or carry a text that people do not see.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_escaped() {
        assert_eq!(printable("a\u{1b}[31mb\r\n"), "a\\u{1b}[31mb\\r\\n");
        assert_eq!(printable("\u{9b}31m\u{202e}x"), "\\u{9b}31m\\u{202e}x");
        assert_eq!(printable("grün 🙂"), "grün 🙂");
        assert_eq!(printable("a\u{e0041}\u{200b}b"), "a\\u{e0041}\\u{200b}b");
    }

    #[test]
    fn an_excerpt_shows_what_cannot_be_seen() {
        let text = "a\u{e0041}\u{200b}\u{ad}\u{202e}b";
        let shown = excerpt(text);
        assert_eq!(shown.len(), text.len());
        assert!(!shown.chars().any(|found| found != '\t' && is_hidden(found)), "{shown:?}");
    }

    #[test]
    fn an_excerpt_keeps_its_length() {
        let text = "a\u{9b}b";
        assert_eq!(excerpt(text).len(), text.len());
        assert!(!excerpt(text).contains('\u{9b}'));
    }
}

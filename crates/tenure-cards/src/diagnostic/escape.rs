//! Text that may have come from a card, made safe to print.

use std::borrow::Cow;

/// The text with every character escaped that could drive a terminal or hide what is written:
/// control characters (line breaks too) and those that change the direction of text.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
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
    let bad = |character: char| ('\u{80}'..='\u{9f}').contains(&character);
    if !text.chars().any(bad) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|found| if bad(found) { '¿' } else { found }).collect())
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_escaped() {
        assert_eq!(printable("a\u{1b}[31mb\r\n"), "a\\u{1b}[31mb\\r\\n");
        assert_eq!(printable("\u{9b}31m\u{202e}x"), "\\u{9b}31m\\u{202e}x");
        assert_eq!(printable("grün 🙂"), "grün 🙂");
    }

    #[test]
    fn an_excerpt_keeps_its_length() {
        let text = "a\u{9b}b";
        assert_eq!(excerpt(text).len(), text.len());
        assert!(!excerpt(text).contains('\u{9b}'));
    }
}

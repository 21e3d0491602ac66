//! Texts of records that wait together, without a piece of memory for each.

use super::seen::cut;

/// Texts of records, one behind the other: a record only says where its own are.
#[derive(Default)]
pub(super) struct Texts(String);

/// Where a text is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    from: usize,
    to: usize,
}

impl Texts {
    /// The most room that is kept.
    const KEPT: usize = 256 << 10;

    /// Keeps a text.
    pub(super) fn keep(&mut self, text: &str) -> Text {
        let from = self.0.len();
        self.0.push_str(text);
        Text { from, to: self.0.len() }
    }

    /// Keeps as much of a text as fits into so many bytes, and says if that is not all of it.
    pub(super) fn keep_bounded(&mut self, text: &str, most: usize) -> Text {
        let (part, is_all) = cut(text, most);
        let kept = self.keep(part);
        if is_all { kept } else { Text { to: self.keep("…").to, ..kept } }
    }

    /// A text that was kept.
    pub(super) fn get(&self, text: Text) -> &str {
        &self.0[text.from..text.to]
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
        if self.0.capacity() > Self::KEPT {
            self.0 = String::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_as_they_are_or_as_far_as_they_fit() {
        let mut texts = Texts::default();
        let (first, none) = (texts.keep("Straße"), texts.keep(""));
        let (whole, part) = (texts.keep_bounded("Maß", 4), texts.keep_bounded("Maß", 3));
        assert_eq!(
            [first, none, whole, part].map(|text| texts.get(text)),
            ["Straße", "", "Maß", "Ma…"]
        );
        texts.keep(&"x".repeat(Texts::KEPT + 1));
        texts.clear();
        assert_eq!((texts.0.len(), texts.0.capacity()), (0, 0));
    }
}

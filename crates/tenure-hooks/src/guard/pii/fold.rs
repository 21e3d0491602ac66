//! Texts in other forms: wide letters, the digits of other scripts, and signs that nobody sees.
//!
//! What is looked for is written in ASCII for the most part. A text that says the same in other
//! characters has a plain copy, in which it is found, and which knows where everything stands in the
//! text itself.

use std::borrow::Cow;
use unicode_normalization::char::decompose_compatible;

/// The noughts of scripts with digits of their own; the other nine follow each.
const ZEROES: [u32; 70] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
    0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50,
    0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0x104a0,
    0x10d30, 0x10d40, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650,
    0x116c0, 0x116d0, 0x116da, 0x11730, 0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0,
    0x11de0, 0x11f50, 0x16130, 0x16a60, 0x16ac0, 0x16b50, 0x16d70, 0x1ccf0, 0x1e140, 0x1e2f0,
    0x1e4f0, 0x1e5f1, 0x1e950, 0x1fbf0,
];

/// What stands for a character in the plain copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The character itself.
    Same,
    /// An ASCII character.
    Plain(char),
    /// Nothing: it has no width, and parts what belongs together.
    Nothing,
}

fn form(letter: char) -> Form {
    match letter {
        // Most texts are made of these, and have no other form.
        '\0'..='\u{7f}'
        | '\u{c0}'..='\u{2ff}'
        | '\u{3001}'..='\u{a61f}'
        | '\u{ac00}'..='\u{d7ff}' => Form::Same,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => Form::Nothing,
        // Blanks, letterlike signs, small and wide forms, and the letters of formulas.
        '\u{a0}'
        | '\u{2000}'..='\u{205f}'
        | '\u{2100}'..='\u{214f}'
        | '\u{3000}'
        | '\u{fe50}'..='\u{fe6f}'
        | '\u{ff01}'..='\u{ff5e}'
        | '\u{1d400}'..='\u{1d7ff}' => {
            let (mut first, mut count) = (letter, 0);
            decompose_compatible(letter, |part| {
                first = if count == 0 { part } else { first };
                count += 1;
            });
            // What stands for several characters is none of them.
            if count == 1 && first.is_ascii() { Form::Plain(first) } else { Form::Same }
        }
        _ => {
            let code = u32::from(letter);
            let script = ZEROES[..ZEROES.partition_point(|zero| *zero <= code)].last();
            let digit = script.and_then(|zero| char::from_digit(code - zero, 10));
            digit.map_or(Form::Same, Form::Plain)
        }
    }
}

/// Whether the plain copy of a text is another one.
pub(super) fn folds(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|letter| form(letter) != Form::Same)
}

/// The plain form of a text.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    match Folded::of(text) {
        Some(folded) => Cow::Owned(folded.text),
        None => Cow::Borrowed(text),
    }
}

/// From here on, up to the next mark, a byte of the copy is a byte of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    copy: usize,
    text: usize,
}

/// The plain copy of a text.
#[derive(Clone, Debug)]
pub(super) struct Folded {
    text: String,
    /// In order, in the copy as in the text. What is left out has one at each of its sides, which
    /// are one place in the copy.
    marks: Vec<Mark>,
    /// How long the text itself is.
    length: usize,
}

impl Folded {
    /// The copy of a text, if it is another one.
    pub(super) fn of(text: &str) -> Option<Self> {
        folds(text).then(|| Self::copy(text))
    }

    /// The copy of a text, whether it is another one or not.
    pub(super) fn copy(text: &str) -> Self {
        let mut folded = Self {
            text: String::with_capacity(text.len()),
            marks: vec![Mark { copy: 0, text: 0 }],
            length: 0,
        };
        folded.push(text);
        folded
    }

    /// The text goes on.
    pub(super) fn push(&mut self, piece: &str) {
        for letter in piece.chars() {
            let form = form(letter);
            match form {
                Form::Same => self.text.push(letter),
                Form::Plain(plain) => self.text.push(plain),
                Form::Nothing => self.mark(),
            }
            self.length += letter.len_utf8();
            if form != Form::Same {
                self.mark();
            }
        }
    }

    fn mark(&mut self) {
        let mark = Mark { copy: self.text.len(), text: self.length };
        if self.marks.last() != Some(&mark) {
            self.marks.push(mark);
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The place in the copy of a place in the text.
    pub(super) fn place(&self, text: usize) -> usize {
        let next = self.marks.partition_point(|mark| mark.text <= text);
        let mark = self.marks[next - 1];
        mark.copy + (text - mark.text)
    }

    /// Where in the text something begins that begins here in the copy: behind what is left out
    /// before it.
    pub(super) fn start(&self, copy: usize) -> usize {
        let next = self.marks.partition_point(|mark| mark.copy <= copy);
        let mark = self.marks[next - 1];
        mark.text + (copy - mark.copy)
    }

    /// Where in the text something ends that ends here in the copy: before what is left out behind
    /// it.
    pub(super) fn end(&self, copy: usize) -> usize {
        let next = self.marks.partition_point(|mark| mark.copy < copy);
        match self.marks.get(next) {
            Some(mark) if mark.copy == copy => mark.text,
            _ => {
                let mark = self.marks[next - 1];
                mark.text + (copy - mark.copy)
            }
        }
    }
}

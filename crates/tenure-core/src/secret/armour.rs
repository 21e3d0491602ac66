//! Private keys in their armour (PEM), whole and line by line.

use super::shape::{Found, run, tail};

pub(super) const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";
/// The most bytes of the label of an armour.
const LONGEST_LABEL: usize = 64;
/// The least of a key's body in one piece: a text may speak of an armour and have none.
const LEAST_BODY: usize = 16;

/// The body that makes an armour a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArmourBody {
    /// That of a key. For texts that may speak of keys, and are to stay as they are.
    Key,
    /// Any, up to where the armour ends or else the text. For texts in which no key may be left.
    Any,
}

/// An armour in a text.
enum Armour {
    /// It is something else: a certificate, or a word about keys.
    Other,
    /// It ends there.
    Until(usize),
    /// It is not all there yet.
    Open,
}

impl ArmourBody {
    /// Calls `found` with the place of every private key that begins at `from` or behind it.
    pub fn find(self, text: &str, from: usize, found: &mut dyn FnMut(usize, usize)) {
        let found: Found<'_> = found;
        let mut here = from;
        while let Some(start) = text[here..].find(BEGIN).map(|it| here + it) {
            here = start + BEGIN.len();
            match self.armour(text, start) {
                Armour::Until(end) => {
                    found(start, end);
                    here = end.max(here);
                }
                // What has no end is key up to where the text ends, if it is one at all.
                Armour::Open => {
                    let is_key = match self {
                        Self::Key => longest(&text.as_bytes()[here..]) >= LEAST_BODY,
                        Self::Any => text[start..].contains("PRIVATE KEY"),
                    };
                    if is_key {
                        found(start, text.len());
                    }
                    return;
                }
                Armour::Other => {}
            }
        }
    }

    /// Returns where a private key begins that is not all there yet.
    pub fn open(self, text: &str, from: usize) -> Option<usize> {
        let mut here = from;
        while let Some(start) = text[here..].find(BEGIN).map(|it| here + it) {
            here = match self.armour(text, start) {
                Armour::Open => return Some(start),
                Armour::Until(end) => end.max(start + BEGIN.len()),
                Armour::Other => start + BEGIN.len(),
            };
        }
        let dashes = tail(text.as_bytes(), from, |byte| byte == b'-' || byte.is_ascii_uppercase());
        let last = &text[dashes..];
        (!last.is_empty() && BEGIN.starts_with(last)).then_some(dashes)
    }

    fn armour(self, text: &str, start: usize) -> Armour {
        let whole = &text[start..];
        let label = &whole[BEGIN.len()..whole.floor_char_boundary(BEGIN.len() + LONGEST_LABEL)];
        let Some(label_end) = label.find("-----") else {
            let is_whole = whole.len() >= BEGIN.len() + LONGEST_LABEL;
            return if is_whole { Armour::Other } else { Armour::Open };
        };
        if !label[..label_end].contains("PRIVATE KEY") {
            return Armour::Other;
        }
        let body = start + BEGIN.len() + label_end + 5;
        let end = match self {
            Self::Any => text.len(),
            Self::Key => {
                // Up to the next one at most, so that no stretch is gone over twice.
                let most = text[body..].find(BEGIN).map_or(text.len(), |next| body + next);
                body + run(&text.as_bytes()[..most], body, in_body)
            }
        };
        let armoured = &text[body..end];
        let is_key = self == Self::Any || longest(armoured.as_bytes()) >= LEAST_BODY;
        match armoured.find(END) {
            Some(_) if !is_key => Armour::Other,
            Some(found) => {
                let label = body + found + END.len();
                match text[label..].find("-----") {
                    Some(dashes) => Armour::Until(label + dashes + 5),
                    None => Armour::Open,
                }
            }
            None if end == text.len() => Armour::Open,
            None if is_key => Armour::Until(end),
            None => Armour::Other,
        }
    }
}

/// Whether a byte may stand between begin and end of an armour: line breaks may be written as JSON writes
/// them, and headers may come before the key.
fn in_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=\\:,-".contains(&byte)
}

/// A line as a part of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyLine {
    None,
    Begin,
    Body,
    End,
}

/// Returns the part that a line is, if the lines before it have left a private key open or not.
pub(super) fn key_line(line: &str, is_open: bool) -> KeyLine {
    if let Some(begin) = line.find(BEGIN) {
        let rest = &line[begin..];
        let is_begin = rest.contains("PRIVATE KEY-----") && !rest.contains(END);
        return if is_begin { KeyLine::Begin } else { KeyLine::None };
    }
    match is_open {
        true if line.contains(END) => KeyLine::End,
        true if line.bytes().all(in_body) => KeyLine::Body,
        _ => KeyLine::None,
    }
}

/// The length of the longest stretch of what the body of a key is made of.
fn longest(text: &[u8]) -> usize {
    let of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    text.split(|byte| !of_key(*byte)).map(<[u8]>::len).max().unwrap_or(0)
}

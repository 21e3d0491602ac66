//! Values that look like secrets, by their shape alone.
//!
//! Each shape is found in time that grows with the text and no faster: nothing here is a regular
//! expression, and no stretch is gone over twice.

use super::armour::{ArmourBody, BEGIN};
use std::ops::Range;

/// Takes the beginning and the end of each stretch that was found.
pub(super) type Found<'a> = &'a mut dyn FnMut(usize, usize);

/// Something that looks like a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// A key of a well-known service, by the way that it begins: `sk-`, `AKIA`, `ghp_`, `xoxb-`.
    ApiKey,
    /// A JSON web token.
    Jwt,
    /// A private key in its armour (PEM), all of it.
    PrivateKey,
    /// The token that follows `Bearer` or `Basic`.
    BearerToken,
    /// The password of an address: `hunter2` in `postgres://me:hunter2@db`.
    UrlPassword,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 5] =
        [Self::ApiKey, Self::Jwt, Self::PrivateKey, Self::BearerToken, Self::UrlPassword];

    /// Calls `found` with the place of everything of this shape that begins at `from` or behind it.
    pub fn find(self, text: &str, from: usize, found: &mut dyn FnMut(usize, usize)) {
        let bytes = text.as_bytes();
        match self {
            Self::ApiKey => api_keys(bytes, from, found),
            Self::Jwt => jwts(bytes, from, found),
            Self::PrivateKey => ArmourBody::Key.find(text, from, found),
            Self::BearerToken => bearer_tokens(bytes, from, found),
            Self::UrlPassword => url_passwords(bytes, from, found),
        }
    }

    /// Returns the texts of which one is in every text that has something of this shape.
    pub(super) fn signs(self) -> Vec<&'static str> {
        match self {
            Self::ApiKey => PREFIXES.iter().chain(&DOTTED).map(|(prefix, _)| *prefix).collect(),
            Self::Jwt => vec!["eyJ"],
            Self::PrivateKey => vec![BEGIN],
            Self::BearerToken => vec!["earer", "EARER", "asic", "ASIC"],
            Self::UrlPassword => vec![SCHEME_END],
        }
    }

    /// Returns where something of this shape begins that is not all there yet: in a text that goes
    /// on, only what follows tells.
    pub fn open(self, text: &str, from: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        match self {
            Self::PrivateKey => ArmourBody::Key.open(text, from),
            Self::ApiKey | Self::Jwt => {
                let of_it = |byte: u8| in_token(byte) || byte == b'.';
                let start = tail(bytes, from, of_it);
                let signs = self.signs();
                (start..text.len()).find(|at| {
                    let rest = &text.as_bytes()[*at..];
                    !joins(before(bytes, *at)) && signs.iter().any(|sign| begins(rest, sign))
                })
            }
            Self::BearerToken => open_bearer(bytes, from),
            Self::UrlPassword => open_address(text, from),
        }
    }
}

/// Where the word begins that says that a token follows, if the token may still go on.
fn open_bearer(text: &[u8], from: usize) -> Option<usize> {
    let last = tail(text, from, |byte| byte.is_ascii_alphabetic());
    let is_begun = |known: &&[u8]| {
        let word = &text[last..];
        !word.is_empty()
            && known.len() >= word.len()
            && known[..word.len()].eq_ignore_ascii_case(word)
    };
    if BEARERS.iter().any(is_begun) && !joins(before(text, last)) {
        return Some(last);
    }
    let start = tail(text, from, in_bearer);
    let blanks = tail(&text[..start], from, |byte| matches!(byte, b' ' | b'\t'));
    let word = tail(&text[..blanks], from, |byte| byte.is_ascii_alphabetic());
    let is_named = BEARERS.iter().any(|known| text[word..blanks].eq_ignore_ascii_case(known));
    (blanks < start && is_named).then_some(word)
}

/// Where the end of a scheme begins, if what follows may still become a name and a password.
fn open_address(text: &str, from: usize) -> Option<usize> {
    let start = tail(text.as_bytes(), from, in_authority);
    let before = &text[from..start];
    if before.ends_with(SCHEME_END) {
        return Some(start - SCHEME_END.len());
    }
    if before.ends_with(":/") && start == text.len() {
        return Some(start - 2);
    }
    text.ends_with(':').then(|| text.len() - 1)
}

/// Whether `rest` begins with `sign`, or ends before it is all there.
fn begins(rest: &[u8], sign: &str) -> bool {
    rest.starts_with(sign.as_bytes()) || sign.as_bytes().starts_with(rest)
}

/// Where the stretch of bytes begins that fit and that the text ends with.
pub(super) fn tail(text: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = &text[from.min(text.len())..];
    text.len() - rest.iter().rev().take_while(|byte| fits(**byte)).count()
}

/// The byte at a place; a blank behind the end.
fn at(text: &[u8], place: usize) -> u8 {
    text.get(place).copied().unwrap_or(b' ')
}

/// The byte before a place; a blank before the beginning.
fn before(text: &[u8], place: usize) -> u8 {
    place.checked_sub(1).map_or(b' ', |place| text[place])
}

/// Whether a byte goes on with a word, so that nothing begins behind it.
fn joins(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn in_bearer(byte: u8) -> bool {
    in_token(byte) || b"._~+/=".contains(&byte)
}

fn in_authority(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !byte.is_ascii_control() && !b"/?#\"'`<>\\".contains(&byte)
}

/// How many bytes from here on fit: all of them, since what is left of a secret is secret.
pub(super) fn run(text: &[u8], start: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = &text[start.min(text.len())..];
    rest.iter().take_while(|byte| fits(**byte)).count()
}

fn has_digit(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit)
}

/// Words that say that a token follows.
const BEARERS: [&[u8]; 2] = [b"bearer", b"basic"];
/// How far before a token the word may begin that says what it is.
const REACH: usize = 16;

/// How the keys of well-known services begin, and the least that follows.
const PREFIXES: [(&str, usize); 40] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("rk_test_", 16),
    ("pk_live_", 16),
    ("whsec_", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 20),
    ("gldt-", 20),
    ("glrt-", 20),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("npm_", 30),
    ("hf_", 30),
    ("pypi-", 30),
    ("dop_v1_", 30),
    ("doo_v1_", 30),
    ("gsk_", 30),
    ("xai-", 30),
    ("r8_", 30),
    ("pplx-", 30),
    ("lin_api_", 20),
    ("ntn_", 30),
    ("shpat_", 30),
    ("sq0csp-", 20),
    ("dckr_pat_", 20),
    ("AGE-SECRET-KEY-", 30),
];

/// Beginnings of keys that have a dot behind them, and the least that follows.
const DOTTED: [(&str, usize); 3] = [("SG.", 30), ("ya29.", 30), ("hvs.", 20)];
/// The most bytes of such a key that are looked at to say whether it is one.
const JUDGED: usize = 256;
/// The least of a long key with a dash behind its beginning that has no dash in it, but a digit. Names of
/// packages and classes have shorter words.
const WORD: usize = 10;

/// The end of an address's scheme.
const SCHEME_END: &str = "://";
/// The most bytes of a name and a password in an address.
const LONGEST_USER: usize = 1024;

/// Passwords in addresses. One that stands for another, such as `${PASSWORD}`, `<password>` or
/// `***`, is none.
fn url_passwords(text: &[u8], from: usize, found: Found<'_>) {
    let sign = SCHEME_END.as_bytes();
    let mut here = from.saturating_sub(sign.len());
    while let Some(begin) = text[here..].windows(sign.len()).position(|it| it == sign) {
        let start = here + begin + sign.len();
        let end = start + run(&text[..text.len().min(start + LONGEST_USER)], start, in_authority);
        here = end.max(start);
        let authority = &text[start..end];
        let Some(user_end) = authority.iter().rposition(|byte| *byte == b'@') else { continue };
        let Some(colon) = authority[..user_end].iter().position(|byte| *byte == b':') else {
            continue;
        };
        let password = &authority[colon + 1..user_end];
        let stands_for = password.starts_with(b"$")
            || password.starts_with(b"{")
            || password.starts_with(b"[")
            || password.starts_with(b"%7B")
            || password.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X'));
        if !stands_for && start + colon + 1 >= from {
            found(start + colon + 1, start + user_end);
        }
    }
}

/// Calls `each` with every stretch of bytes that tokens are made of.
fn stretches(text: &[u8], from: usize, mut each: impl FnMut(usize, usize)) {
    let mut here = from;
    while here < text.len() {
        let length = text[here..].iter().take_while(|byte| in_token(**byte)).count();
        if length > 0 {
            each(here, here + length);
        }
        here += length + 1;
    }
}

fn api_keys(text: &[u8], from: usize, found: Found<'_>) {
    let mut done = from;
    stretches(text, from, |begin, end| {
        // From the back, so that it is known at every place how the rest is made.
        let (mut word_end, mut digit, mut has_word, mut any_digit) = (end, false, false, false);
        for start in (begin..end).rev() {
            match text[start] {
                b'-' => (word_end, digit) = (start, false),
                byte => digit |= byte.is_ascii_digit(),
            }
            has_word |= digit && word_end - start >= WORD;
            any_digit |= text[start].is_ascii_digit();
            if !any_digit || !text[start].is_ascii_alphabetic() || joins(before(text, start)) {
                continue;
            }
            let here = &text[start..end];
            let known = PREFIXES.iter().find(|(prefix, _)| here.starts_with(prefix.as_bytes()));
            let is_key = |(prefix, least): &(&str, usize)| {
                let is_word = prefix.ends_with('-') && *least >= 20;
                end - start >= prefix.len() + least && (has_word || !is_word)
            };
            if known.is_some_and(is_key) {
                found(start, end);
            }
        }
        dotted(text, begin..end, &mut done, found);
    });
}

/// Finds a key whose beginning is the end of this stretch, with a dot behind it. `done` is where the
/// last one ended: what is within it is gone over once.
fn dotted(text: &[u8], stretch: Range<usize>, done: &mut usize, found: Found<'_>) {
    let Range { start: begin, end } = stretch;
    if begin < *done || at(text, end) != b'.' {
        return;
    }
    for (prefix, least) in DOTTED {
        let name = &prefix.as_bytes()[..prefix.len() - 1];
        if !text[begin..end].ends_with(name) || joins(before(text, end - name.len())) {
            continue;
        }
        let value = end + 1;
        let of_it = |byte: u8| in_token(byte) || byte == b'.';
        let judged = &text[..text.len().min(value + JUDGED)];
        let length = run(judged, value, of_it);
        if length >= least && has_digit(&judged[value..][..length]) {
            *done = value + run(text, value, of_it);
            found(end - name.len(), *done);
        }
    }
}

fn jwts(text: &[u8], from: usize, found: Found<'_>) {
    stretches(text, from, |begin, end| {
        if at(text, end) != b'.' {
            return;
        }
        for start in begin..end.saturating_sub(9) {
            if !text[start..].starts_with(b"eyJ") || joins(before(text, start)) {
                continue;
            }
            // Signed ones have three parts, encrypted ones five.
            let (mut last, mut parts) = (end, 1);
            while parts < 5 && at(text, last) == b'.' && in_token(at(text, last + 1)) {
                last += 1 + run(text, last + 1, in_token);
                parts += 1;
            }
            if parts > 1 {
                found(start, last);
                return;
            }
        }
    });
}

/// What follows the word for how somebody shows who he is.
fn bearer_tokens(text: &[u8], from: usize, found: Found<'_>) {
    for word in BEARERS {
        for start in from.saturating_sub(REACH)..text.len().saturating_sub(word.len()) {
            let end = start + word.len();
            let is_it = text[start..end].eq_ignore_ascii_case(word);
            if !is_it || joins(before(text, start)) {
                continue;
            }
            let blanks = text[end..].iter().take(3).take_while(|it| matches!(it, b' ' | b'\t'));
            let value = end + blanks.count();
            let length = run(text, value, in_bearer);
            if value > end && value >= from && length >= 16 && has_digit(&text[value..][..length]) {
                found(value, value + length);
            }
        }
    }
}

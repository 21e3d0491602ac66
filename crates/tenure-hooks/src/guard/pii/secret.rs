//! Passwords by the names that they are given. Keys and tokens have a
//! [`Shape`](tenure_core::secret::Shape).

use super::personal::{Found, at, before};

/// The most bytes of a value that are looked at to say whether it is a password. If it is, all of it
/// is.
const JUDGED: usize = 256;
/// How far behind its name the value of a password may begin.
pub(super) const REACH: usize = 16;

fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// How many bytes from here on fit: all of them, since what is left of a secret is secret.
fn run(text: &[u8], start: usize, fits: impl Fn(u8) -> bool) -> usize {
    let rest = &text[start.min(text.len())..];
    rest.iter().take_while(|byte| fits(**byte)).count()
}

/// Whether something of this name holds a password.
pub(super) fn is_secret_name(name: &[u8]) -> bool {
    const NAMES: [&str; 12] = [
        "password",
        "passwd",
        "passwort",
        "pwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "authkey",
    ];
    let plain = name.iter().rev().filter(|byte| !matches!(byte, b'_' | b'-'));
    let mut plain = plain.map(u8::to_ascii_lowercase);
    // From the back, where they differ most.
    let Some(last) = plain.next() else { return false };
    NAMES.iter().filter_map(|name| name.as_bytes().split_last()).any(|(end, rest)| {
        let mut plain = plain.clone();
        *end == last && rest.iter().rev().all(|byte| plain.next() == Some(*byte))
    })
}

/// Whether a value looks like a password, and not like a word, or like what was put in the place of
/// one.
pub(super) fn is_secret_value(value: &[u8]) -> bool {
    let is_replaced = value.starts_with(b"[REDACTED_")
        || value.starts_with(b"****")
        || value.starts_with(b"<") && value.windows(6).any(|it| it == b"_hash:");
    if value.len() < 6 || is_replaced {
        return false;
    }
    // Words are made of one kind of letters, and of few.
    let (mut kinds, mut seen) = (0_u8, 0_u128);
    for byte in value {
        kinds |= match byte {
            b'a'..=b'z' => 1,
            b'A'..=b'Z' => 2,
            b'0'..=b'9' => 4,
            _ => 8,
        };
        seen |= 1 << (byte & 127);
    }
    kinds.count_ones() >= 2 && seen.count_ones() >= 5
}

/// What is assigned to something by the name of `password`.
pub(super) fn passwords(text: &[u8], from: usize, found: Found<'_>) {
    let is_quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`');
    let fits = |byte: u8| byte.is_ascii_graphic() && !is_quote(byte) && !b",;&)}".contains(&byte);
    // Values within values end where those do: no stretch is gone over twice.
    let mut stretch = 0..0;
    for sign in from.saturating_sub(REACH)..text.len() {
        if !matches!(text[sign], b'=' | b':') {
            continue;
        }
        // To the left: blanks, a quote, the name.
        let blanks = text[..sign].iter().rev().take(3).take_while(|it| **it == b' ').count();
        let mut end = sign - blanks;
        end -= usize::from(is_quote(before(text, end)));
        let name = text[..end].iter().rev().take(64).take_while(|it| in_token(**it)).count();
        if !is_secret_name(&text[end - name..end]) {
            continue;
        }
        // To the right: the rest of the sign, blanks, a quote, the value.
        let mut value = sign + 1;
        value += usize::from(matches!(at(text, value), b'=' | b'>'));
        value += text[value..].iter().take(3).take_while(|it| **it == b' ').count();
        value += usize::from(is_quote(at(text, value)));
        if !stretch.contains(&value) {
            stretch = value..value + run(text, value, fits);
        }
        let end = stretch.end;
        if value >= from && value < end && is_secret_value(&text[value..end.min(value + JUDGED)]) {
            found(value, end);
        }
    }
}

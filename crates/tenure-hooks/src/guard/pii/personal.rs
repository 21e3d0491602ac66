//! What tells of a person: addresses, numbers of cards, accounts and telephones.
//!
//! Each finder goes over a text once. What it looks at around a place has a bound, so no text takes
//! more than its length times that bound.

/// Takes the begin and the end of something that was found.
pub(super) type Found<'a> = &'a mut dyn FnMut(usize, usize);

/// The byte at a place; a blank beyond the end.
pub(super) fn at(text: &[u8], place: usize) -> u8 {
    text.get(place).copied().unwrap_or(b' ')
}

/// The byte before a place; a blank before the beginning.
pub(super) fn before(text: &[u8], place: usize) -> u8 {
    place.checked_sub(1).map_or(b' ', |place| text[place])
}

/// Whether a byte goes on with a word, so that nothing begins behind it and nothing ends before it.
pub(super) fn joins(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Letters of names that are not English.
pub(super) fn is_latin(letter: char) -> bool {
    ('\u{c0}'..='\u{24f}').contains(&letter)
}

pub(super) fn emails(text: &str, from: usize, found: Found<'_>) {
    let in_name = |c: char| c.is_ascii_alphanumeric() || "._%+-'".contains(c) || is_latin(c);
    let in_host = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c) || is_latin(c);
    for (sign, _) in text[from..].match_indices('@') {
        let sign = from + sign;
        let name = text[from..sign].char_indices().rev().take(64);
        let start = name.take_while(|(_, c)| in_name(*c)).last().map_or(sign, |(i, _)| from + i);
        let name = text[start..sign].trim_start_matches(['.', '-', '%', '+', '\'']);
        let host = text[sign + 1..].char_indices().take(255).take_while(|(_, c)| in_host(*c));
        let end = host.last().map_or(sign + 1, |(i, c)| sign + 1 + i + c.len_utf8());
        let mut host = text[sign + 1..end].trim_end_matches(['.', '-']);
        let is_top = |label: &str| {
            label.chars().count() >= 2 && label.chars().all(char::is_alphabetic)
                || label.starts_with("xn--")
        };
        // What follows the last name of a domain is not part of it.
        while let Some((rest, label)) = host.rsplit_once('.')
            && !is_top(label)
        {
            host = rest;
        }
        if !name.is_empty() && host.contains('.') && !host.starts_with('.') {
            found(sign - name.len(), sign + 1 + host.len());
        }
    }
}

/// The check digit of cards.
fn is_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let digit = u32::from(digit - b'0');
            let doubled = digit * 2;
            if place % 2 == 0 { digit } else { doubled - if doubled > 9 { 9 } else { 0 } }
        })
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn credit_cards(text: &[u8], from: usize, found: Found<'_>) {
    for start in from..text.len() {
        if !(b'2'..=b'6').contains(&text[start]) || joins(before(text, start)) {
            continue;
        }
        let (mut digits, mut count, mut end) = ([0; 19], 0, None);
        let mut here = start;
        loop {
            let byte = at(text, here);
            if byte.is_ascii_digit() && count < digits.len() {
                digits[count] = byte;
                count += 1;
                let ends = !joins(at(text, here + 1));
                if count >= 13 && ends && is_luhn(&digits[..count]) {
                    end = Some(here + 1);
                }
            } else if !matches!(byte, b' ' | b'-') || !at(text, here + 1).is_ascii_digit() {
                break;
            }
            here += 1;
        }
        if let Some(end) = end {
            found(start, end);
        }
    }
}

/// The number that begins here, of at most `most` digits, and how many it has.
fn number(text: &[u8], start: usize, most: usize) -> (u32, usize) {
    let digits = text[start.min(text.len())..].iter().take(most);
    digits
        .take_while(|it| it.is_ascii_digit())
        .fold((0, 0), |(value, count), digit| (value * 10 + u32::from(digit - b'0'), count + 1))
}

pub(super) fn ips(text: &[u8], from: usize, found: Found<'_>) {
    for start in from..text.len() {
        let ahead = before(text, start);
        if joins(ahead) || !(text[start].is_ascii_hexdigit() || text[start] == b':') {
            continue;
        }
        if ahead != b'.'
            && text[start].is_ascii_digit()
            && let Some(end) = ip4(text, start)
        {
            found(start, end);
        }
        if ahead != b':'
            && let Some(end) = ip6(text, start)
        {
            found(start, end);
        }
    }
}

fn ip4(text: &[u8], start: usize) -> Option<usize> {
    let mut here = start;
    for part in 0..4 {
        let (value, count) = number(text, here, 3);
        if count == 0 || value > 255 {
            return None;
        }
        here += count;
        if part < 3 {
            if at(text, here) != b'.' {
                return None;
            }
            here += 1;
        }
    }
    let goes_on = at(text, here) == b'.' && at(text, here + 1).is_ascii_digit();
    (!goes_on && !joins(at(text, here))).then_some(here)
}

fn ip6(text: &[u8], start: usize) -> Option<usize> {
    let part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    let run = &text[start..text.len().min(start + 46)];
    let mut end = run.iter().take_while(|byte| part(byte)).count();
    let colons = run[..end].iter().filter(|byte| **byte == b':').count();
    // `a::b` is a path in a program far more often than an address.
    if colons < 2 || end > 45 || joins(at(text, start + end)) {
        return None;
    }
    for _ in 0..3 {
        let text = std::str::from_utf8(&run[..end]).ok()?;
        if text.bytes().any(|byte| byte.is_ascii_digit())
            && text.parse::<std::net::Ipv6Addr>().is_ok()
        {
            return Some(start + end);
        }
        if !text.ends_with(['.', ':']) {
            return None;
        }
        end -= 1;
    }
    None
}

pub(super) fn mac_addresses(text: &[u8], from: usize, found: Found<'_>) {
    for start in from..text.len().saturating_sub(16) {
        let ahead = before(text, start);
        if joins(ahead) || matches!(ahead, b':' | b'-') || !text[start].is_ascii_hexdigit() {
            continue;
        }
        let sign = text[start + 2];
        let pairs = text[start..start + 17].chunks(3).all(|pair| {
            pair[..2].iter().all(u8::is_ascii_hexdigit) && pair.get(2).is_none_or(|it| *it == sign)
        });
        let behind = at(text, start + 17);
        if matches!(sign, b':' | b'-') && pairs && !joins(behind) && behind != sign {
            found(start, start + 17);
        }
    }
}

pub(super) fn us_ssns(text: &[u8], from: usize, found: Found<'_>) {
    for start in from..text.len().saturating_sub(10) {
        let ahead = before(text, start);
        if joins(ahead) || ahead == b'-' || !text[start].is_ascii_digit() {
            continue;
        }
        let sign = text[start + 3];
        let (area, group, serial) =
            (number(text, start, 3), number(text, start + 4, 2), number(text, start + 7, 4));
        let is_whole = (area.1, group.1, serial.1) == (3, 2, 4);
        let is_given = !matches!(area.0, 0 | 666 | 900..) && group.0 > 0 && serial.0 > 0;
        let behind = at(text, start + 11);
        let goes_on = joins(behind) || behind == b'-' && joins(at(text, start + 12));
        if matches!(sign, b'-' | b' ')
            && text[start + 6] == sign
            && is_whole
            && is_given
            && !goes_on
        {
            found(start, start + 11);
        }
    }
}

pub(super) fn phones(text: &[u8], from: usize, found: Found<'_>) {
    for start in from..text.len() {
        let ahead = before(text, start);
        if !matches!(text[start], b'+' | b'(' | b'0'..=b'9') || joins(ahead) {
            continue;
        }
        let end = match text[start] {
            b'+' => international(text, start),
            _ if ahead == b'+' || ahead == b'-' => None,
            _ => american(text, start),
        };
        if let Some(end) = end.filter(|end| !joins(at(text, *end))) {
            found(start, end);
        }
    }
}

/// A plus, and 8 to 15 digits with blanks, points, hyphens and brackets among them.
fn international(text: &[u8], start: usize) -> Option<usize> {
    let (mut digits, mut apart, mut end) = (0, 0, None);
    for (here, byte) in text.iter().enumerate().skip(start + 1) {
        match byte {
            b'0'..=b'9' if digits < 15 => {
                (digits, apart) = (digits + 1, 0);
                if digits >= 8 {
                    end = Some(here + 1);
                }
            }
            b' ' | b'.' | b'-' | b'(' | b')' if apart < 2 && digits > 0 => apart += 1,
            _ => break,
        }
    }
    // A number that goes on is none that can be called.
    end.filter(|end| !at(text, *end).is_ascii_digit())
}

/// Three digits, three and four, apart from each other.
fn american(text: &[u8], start: usize) -> Option<usize> {
    let is_apart = |place| matches!(at(text, place), b' ' | b'.' | b'-');
    let mut here = start;
    if text[here] == b'1' && is_apart(here + 1) {
        here += 2;
    }
    if at(text, here) == b'(' {
        if number(text, here + 1, 3).1 != 3 || at(text, here + 4) != b')' {
            return None;
        }
        here += 5 + usize::from(is_apart(here + 5));
    } else {
        if number(text, here, 3).1 != 3 || !is_apart(here + 3) {
            return None;
        }
        here += 4;
    }
    let fits = number(text, here, 3).1 == 3
        && is_apart(here + 3)
        && number(text, here + 4, 4).1 == 4
        && !at(text, here + 8).is_ascii_digit();
    fits.then_some(here + 8)
}

/// Whether an account number may begin here, as far as there is anything: two letters, two digits.
pub(super) fn may_be_iban(text: &[u8], start: usize) -> bool {
    let fits = |(place, byte): (usize, &u8)| match place {
        0 | 1 => byte.is_ascii_uppercase(),
        _ => byte.is_ascii_digit(),
    };
    !joins(before(text, start)) && text[start..].iter().take(4).enumerate().all(fits)
}

pub(super) fn ibans(text: &[u8], from: usize, found: Found<'_>) {
    /// The remainder by 97, with a letter or a digit more.
    fn with(rest: u32, byte: u8) -> u32 {
        match byte {
            b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
            _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
        }
    }
    for start in from..text.len().saturating_sub(14) {
        if !may_be_iban(text, start) {
            continue;
        }
        let head = &text[start..start + 4];
        let (mut rest, mut count, mut end, mut here) = (0, 4, None, start + 4);
        loop {
            let byte = at(text, here);
            if (byte.is_ascii_uppercase() || byte.is_ascii_digit()) && count < 34 {
                rest = with(rest, byte);
                count += 1;
                let whole = head.iter().fold(rest, |rest, byte| with(rest, *byte));
                if count >= 15 && whole == 1 && !joins(at(text, here + 1)) {
                    end = Some(here + 1);
                }
            } else {
                let next = at(text, here + 1);
                if byte != b' ' || !(next.is_ascii_uppercase() || next.is_ascii_digit()) {
                    break;
                }
            }
            here += 1;
        }
        if let Some(end) = end {
            found(start, end);
        }
    }
}

pub(super) fn urls(text: &str, from: usize, found: Found<'_>) {
    let bytes = text.as_bytes();
    // Addresses within addresses end where those do: no stretch is gone over twice.
    let mut stretch = 0..0;
    let mut take = |start: usize, body: usize| {
        let ends = |c: char| !(c.is_ascii_graphic() || is_latin(c)) || "<>\"'`|{}^\\".contains(c);
        if !stretch.contains(&start) {
            let end = text[start..].find(ends).map_or(text.len(), |it| start + it);
            let whole = text[start..end]
                .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*', '_', '~']);
            stretch = start..start + whole.len();
        }
        if stretch.end > body {
            found(start, stretch.end);
        }
    };
    const SCHEMES: [&str; 7] = ["http", "https", "ftp", "ftps", "ws", "wss", "sftp"];
    for (sign, _) in text[from..].match_indices("://") {
        let sign = from + sign;
        let letters = bytes[from..sign].iter().rev().take(6);
        let start = sign - letters.take_while(|it| it.is_ascii_alphabetic()).count();
        let is_known = SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(&text[start..sign]));
        if is_known && !joins(before(bytes, start)) {
            take(start, sign + 3);
        }
    }
    for start in from..bytes.len().saturating_sub(4) {
        let ahead = before(bytes, start);
        if matches!(bytes[start], b'w' | b'W')
            && bytes[start..start + 4].eq_ignore_ascii_case(b"www.")
            && !joins(ahead)
            && !matches!(ahead, b'/' | b'.' | b'@')
            && bytes[start + 4].is_ascii_alphanumeric()
        {
            take(start, start + 4);
        }
    }
}

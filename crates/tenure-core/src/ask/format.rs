//! The formats of texts that forms ask for.

/// What a text of this format looks like, if `text` does not look like it. A format that is not
/// known refuses nothing.
pub(super) fn misfit(format: &str, text: &str) -> Option<&'static str> {
    let (fits, wanted) = match format {
        "date" => (is_date(text), "a date, as 2024-05-31"),
        "date-time" => (is_date_time(text), "a date and a time, as 2024-05-31T13:45:00Z"),
        "email" => (is_email(text), "an e-mail address, as ann@example.org"),
        "uri" => (is_uri(text), "an address with its scheme, as https://example.org"),
        _ => return None,
    };
    (!fits).then_some(wanted)
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// As RFC 3339 has it: the zone is always said.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let Some(zone) = time.find(['Z', 'z', '+', '-']) else { return false };
    let (time, zone) = time.split_at(zone);
    let zone_fits = match zone.strip_prefix(['+', '-']) {
        Some(offset) => is_clock(offset, &[23, 59]),
        None => zone.len() == 1,
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let fraction_fits = !fraction.is_empty() && fraction.bytes().all(|it| it.is_ascii_digit());
    // A minute may have a leap second.
    is_date(date) && is_clock(time, &[23, 59, 60]) && fraction_fits && zone_fits
}

/// Numbers of two digits between colons, each no more than its bound.
fn is_clock(text: &str, most: &[u32]) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let fits = |(part, most): (&&str, &u32)| digits(part, 2).is_some_and(|it| it <= *most);
    parts.len() == most.len() && parts.iter().zip(most).all(fits)
}

/// Something on both sides of the last `@`, and no blanks. Whether it exists only mail can tell.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let host_fits = host.split('.').all(|part| !part.is_empty());
    !name.is_empty() && host_fits && !text.contains(char::is_whitespace)
}

/// A scheme, and something behind it.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    begins
        && scheme.chars().all(is_plain)
        && !rest.trim_start_matches('/').is_empty()
        && !rest.contains(is_blank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_held_against_its_format() {
        let table: [(&str, &[&str], &[&str]); 4] = [
            (
                "date",
                &["2024-02-29", "2000-02-29", "2026-12-31"],
                &["tomorrow", "2026-02-29", "1900-02-29", "2026-13-01", "2026-1-1", "2026-01-00"],
            ),
            (
                "date-time",
                &["2024-05-31T13:45:00Z", "2024-05-31 13:45:00.25+02:00", "2016-12-31t23:59:60z"],
                &["2024-05-31", "2024-05-31T13:45Z", "2024-05-31T13:45:00", "2024-05-31T24:00:00Z"],
            ),
            ("email", &["ann@example.org", "a@localhost"], &["ann", "@b.c", "a@", "a b@c", "a@b."]),
            (
                "uri",
                &["https://example.org/a?b", "mailto:ann@example.org", "urn:isbn:1"],
                &["example.org", "https://", "1a:b", "https://a b"],
            ),
        ];
        for (format, good, bad) in table {
            good.iter().for_each(|it| assert_eq!(misfit(format, it), None, "{format} {it}"));
            bad.iter().for_each(|it| assert!(misfit(format, it).is_some(), "{format} {it}"));
        }
        assert_eq!(misfit("no such format", "anything"), None);
    }
}

//! When a provider wants to be asked again.

use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_http::reqwest::header::HeaderMap;

/// Nobody waits longer than this; a larger number is a mistake.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What the head and the body of an answer that hit a limit say about it, in any of the forms that
/// providers use.
pub(super) fn find(headers: &HeaderMap, body: Option<&Value>) -> Option<Duration> {
    // Which of the limits was hit is said by what remains of it.
    let reset = || {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let limits = ["requests", "tokens", "input-tokens", "output-tokens"];
        let resets = limits.iter().flat_map(|limit| {
            [("x-ratelimit", true), ("anthropic-ratelimit", false)].map(|(prefix, first)| {
                if first {
                    (format!("{prefix}-remaining-{limit}"), format!("{prefix}-reset-{limit}"))
                } else {
                    (format!("{prefix}-{limit}-remaining"), format!("{prefix}-{limit}-reset"))
                }
            })
        });
        resets
            .filter(|(remaining, _)| header(remaining).is_some_and(|left| left.trim() == "0"))
            .filter_map(|(_, reset)| header(&reset).and_then(|at| span(at).or_else(|| until(at))))
            .max()
    };
    Some(in_head(headers).or_else(reset).or_else(|| in_body(body))?.min(LONGEST))
}

/// The same for an answer that failed in another way. Limits that were not the reason do not count.
pub(super) fn said(headers: &HeaderMap, body: Option<&Value>) -> Option<Duration> {
    Some(in_head(headers).or_else(|| in_body(body))?.min(LONGEST))
}

fn in_head(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let millis = header("retry-after-ms").and_then(|value| seconds(value, 1e-3));
    millis.or_else(|| {
        header("retry-after").and_then(|value| seconds(value, 1.0).or_else(|| until(value)))
    })
}

fn in_body(body: Option<&Value>) -> Option<Duration> {
    let body = body?.as_array().and_then(|list| list.first()).or(body)?;
    let details = body.get("error").unwrap_or(body).get("details")?.as_array()?;
    details.iter().find_map(|detail| span(detail.get("retryDelay")?.as_str()?))
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0)
        .then(|| Duration::from_secs_f64((number * unit).min(LONGEST.as_secs_f64())))
}

/// A span of time as Go writes it: `1s`, `6m0s`, `20ms`, `1.5h`.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut sum = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        sum += number
            * match &rest[..end] {
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[end..];
    }
    seconds(&sum.to_string(), 1.0)
}

/// How long it is until a date: one of HTTP's, or one of RFC 3339.
fn until(text: &str) -> Option<Duration> {
    let at = http_date(text).or_else(|| internet_date(text))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(Duration::from_secs(at).saturating_sub(now))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, in seconds since 1970.
fn http_date(text: &str) -> Option<u64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|month| *month == name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok()?;
    let time = clock(words.next()?)?;
    Some(days(year, month, day)? * 86_400 + time)
}

/// `2026-11-16T08:49:37Z`, in seconds since 1970. Other zones than UTC are not used by providers.
fn internet_date(text: &str) -> Option<u64> {
    let (date, time) = text.trim().split_once(['T', 't'])?;
    let mut parts = date.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let time = time.strip_suffix(['Z', 'z']).or_else(|| time.strip_suffix("+00:00"))?;
    let whole = time.split('.').next()?;
    Some(days(year, month, day)? * 86_400 + clock(whole)?)
}

fn clock(text: &str) -> Option<u64> {
    let mut parts = text.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    (hour < 24 && minute < 60 && second <= 60).then(|| hour * 3600 + minute * 60 + second)
}

/// The days from 1970 to a date of the Gregorian calendar, counted in years that begin in March.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let in_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let value = |text: &str| text.parse().expect("a header value");
        pairs.iter().map(|(name, text)| (name.parse().expect("a name"), value(text))).collect()
    }

    #[test]
    fn dates_are_read_in_both_forms() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(internet_date("1994-11-06T08:49:37Z"), Some(784_111_777));
        assert_eq!(internet_date("2024-02-29T00:00:00.5Z"), Some(1_709_164_800));
        assert_eq!(http_date("tomorrow"), None);
        assert_eq!(internet_date("1994-13-06T08:49:37Z"), None);
    }

    #[test]
    fn every_form_of_the_answer_is_understood() {
        let found = |pairs: &[(&'static str, &str)]| find(&headers(pairs), None);
        assert_eq!(found(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(found(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        let both = [("retry-after", "7"), ("retry-after-ms", "250")];
        assert_eq!(found(&both), Some(Duration::from_millis(250)));
        assert_eq!(
            found(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]),
            Some(Duration::ZERO)
        );
        let hit = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-tokens", "12"),
            ("x-ratelimit-reset-tokens", "9h"),
        ];
        assert_eq!(found(&hit), Some(Duration::from_secs(360)));
        let anthropic = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2001-01-01T00:00:00Z"),
        ];
        assert_eq!(found(&anthropic), Some(Duration::ZERO));
        let body = json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}});
        assert_eq!(find(&HeaderMap::new(), Some(&body)), Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn nonsense_is_no_wait_and_no_wait_is_endless() {
        for nonsense in ["soon", "-1", "NaN", "inf", ""] {
            assert_eq!(find(&headers(&[("retry-after", nonsense)]), None), None, "{nonsense}");
        }
        assert_eq!(find(&headers(&[("retry-after", "1e300")]), None), Some(LONGEST));
    }
}

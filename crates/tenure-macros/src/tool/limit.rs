//! Time limits, as files and the runtime write them.

use std::time::Duration;

/// Reads a limit: a number and its unit, more than zero. The error says what to write.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let nanos_per_unit: u128 = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        "" if !text.is_empty() => {
            return Err(format!(
                "the limit `{text}` has no unit; write for example `{text}s` or `{text}ms`"
            ));
        }
        "" => return Err(not_a_limit(text)),
        other => {
            return Err(format!("`{other}` is not a unit of time; use ms, s, m or h"));
        }
    };
    let nanos = scaled(number.trim(), nanos_per_unit).ok_or_else(|| not_a_limit(text))?;
    match u64::try_from(nanos).map(Duration::from_nanos) {
        Ok(Duration::ZERO) => Err("a limit must be more than zero; leave it out for none".into()),
        Ok(duration) => Ok(duration),
        Err(_) => Err(format!("the limit `{text}` is too long")),
    }
}

fn not_a_limit(text: &str) -> String {
    format!("`{text}` is not a limit; write for example `30s` or `500ms`")
}

/// `number`, with or without a fraction, times `scale`; exact, and rounded down.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = whole.parse::<u128>().unwrap_or(u128::MAX).saturating_mul(scale);
    let mut place = scale;
    let fraction = fraction.bytes().fold(0, |sum, digit| {
        place /= 10;
        sum + place * u128::from(digit - b'0')
    });
    Some(whole.saturating_add(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_needs_a_unit_and_must_be_more_than_zero() {
        for (text, expected) in [
            ("500ms", Ok(Duration::from_millis(500))),
            ("30s", Ok(Duration::from_secs(30))),
            (" 5 s ", Ok(Duration::from_secs(5))),
            ("1.5s", Ok(Duration::from_millis(1500))),
            ("0.25m", Ok(Duration::from_secs(15))),
            ("2m", Ok(Duration::from_secs(120))),
            ("1h", Ok(Duration::from_secs(3600))),
            ("30", Err("has no unit; write for example `30s`")),
            ("5 parsecs", Err("`parsecs` is not a unit of time")),
            ("0s", Err("more than zero")),
            ("0.0ms", Err("more than zero")),
            ("-5s", Err("`-5s` is not a limit")),
            ("s", Err("`s` is not a limit")),
            ("1.s", Err("is not a limit")),
            ("1.2.3s", Err("is not a limit")),
            ("", Err("`` is not a limit")),
            ("99999999h", Err("too long")),
            ("999999999999999999999999999999999999999999h", Err("too long")),
        ] {
            match (parse(text), expected) {
                (Ok(limit), Ok(duration)) => assert_eq!(limit, duration, "{text}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}

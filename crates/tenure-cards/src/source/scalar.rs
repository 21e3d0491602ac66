//! What a plain scalar means.

use super::Value;

/// The value of a plain scalar, as YAML 1.1 readers understand it where people rely on that
/// (`yes`, `off`, `0x1F`, `017`, `1_000`), with the floats of YAML 1.2 (`1e3`). Dates and base-60
/// numbers stay text.
pub(crate) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        _ => {}
    }
    let (negative, digits) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        b'0'..=b'9' | b'.' => (false, text),
        _ => return Value::Text(text.to_owned()),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Value::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    whole(negative, digits)
        .or_else(|| fraction(negative, digits))
        .unwrap_or_else(|| Value::Text(text.to_owned()))
}

fn whole(negative: bool, digits: &str) -> Option<Value> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x', ..] => (16, &digits[2..]),
        [b'0', b'b', ..] => (2, &digits[2..]),
        [b'0', b'o', ..] => (8, &digits[2..]),
        [b'0', b'0'..=b'9' | b'_', ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    let first = digits.chars().next()?;
    let fits = |found: char| found.is_digit(radix) || found == '_';
    if (radix == 10 && first == '_') || !digits.chars().all(fits) {
        return None;
    }
    let bare: String = digits.chars().filter(|found| *found != '_').collect();
    if bare.is_empty() {
        return None;
    }
    let signed = if negative { format!("-{bare}") } else { bare };
    match i64::from_str_radix(&signed, radix) {
        Ok(number) => Some(Value::Int(number)),
        // Too large for a whole number: the nearest float, as far as it has one.
        Err(_) if radix == 10 => signed.parse().ok().map(Value::Float),
        Err(_) => None,
    }
}

fn fraction(negative: bool, digits: &str) -> Option<Value> {
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let starts = |text: &str| text.as_bytes().first().is_some_and(u8::is_ascii_digit);
    let shaped = number(before)
        && number(behind)
        && (starts(before) || (before.is_empty() && starts(behind)))
        && (exponent.is_some() || mantissa.contains('.'));
    if !shaped {
        return None;
    }
    if let Some(exponent) = exponent {
        let figures = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if figures.is_empty() || !figures.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    }
    let bare: String = digits.chars().filter(|found| *found != '_').collect();
    let value: f64 = bare.parse().ok()?;
    Some(Value::Float(if negative { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_values_are_those_of_yaml_1_1_in_the_usual_cases() {
        for text in ["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"] {
            assert_eq!(resolve(text), Value::Bool(true), "{text}");
        }
        for text in ["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"] {
            assert_eq!(resolve(text), Value::Bool(false), "{text}");
        }
        for text in ["y", "n", "yEs", "oN", "tRUE"] {
            assert_eq!(resolve(text), Value::Text(text.into()), "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_read_in_every_notation() {
        let table = [
            ("0", 0),
            ("-17", -17),
            ("+8", 8),
            ("1_000", 1000),
            ("0x1F", 31),
            ("-0x1F", -31),
            ("0b101", 5),
            ("017", 15),
            ("0o17", 15),
            ("-9223372036854775808", i64::MIN),
            ("9223372036854775807", i64::MAX),
        ];
        for (text, number) in table {
            assert_eq!(resolve(text), Value::Int(number), "{text}");
        }
    }

    #[test]
    fn other_numbers_are_floats() {
        let table = [
            ("1.5", 1.5),
            (".5", 0.5),
            ("-.5", -0.5),
            ("2.", 2.0),
            ("1e3", 1000.0),
            ("1.5E-3", 0.0015),
            ("+1_0.5", 10.5),
            ("9223372036854775808", 9_223_372_036_854_775_808.0),
            ("-.inf", f64::NEG_INFINITY),
            (".Inf", f64::INFINITY),
        ];
        for (text, number) in table {
            assert_eq!(resolve(text), Value::Float(number), "{text}");
        }
        assert!(matches!(resolve(".nan"), Value::Float(number) if number.is_nan()));
    }

    #[test]
    fn what_only_looks_like_a_number_is_text() {
        for text in [
            "-",
            "+",
            ".",
            "..",
            "_1",
            "1__x",
            "0x",
            "0xg",
            "08",
            "0b2",
            "1.2.3",
            "1e",
            "e3",
            "12:30",
            "2026-11-15",
            "--1",
            "1-",
            "0x_",
            "inf",
            "nan",
            "1,5",
            "٣",
            "._5",
            "5s",
        ] {
            assert_eq!(resolve(text), Value::Text(text.into()), "{text}");
        }
    }

    #[test]
    fn nothing_has_four_spellings() {
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(resolve(text), Value::Null, "{text}");
        }
        assert_eq!(resolve("nULL"), Value::Text("nULL".into()));
    }
}

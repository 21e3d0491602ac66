//! One line of the log, and the chain that the lines are.

use crate::words::Moment;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::SystemTime;

/// How a line begins: its hash is over the rest of it, byte for byte.
const BEGIN: &str = "{\"hash\":\"";
/// The length of a hash as it is written.
const HEX: usize = 64;

/// The last line of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Its number; 0 before the first.
    pub(super) seq: u64,
    /// Its hash.
    pub(super) hash: String,
}

impl Head {
    /// What stands before the first line.
    pub(super) fn start() -> Self {
        Self { seq: 0, hash: "0".repeat(HEX) }
    }

    /// The line that follows, without its end, and the chain with it.
    pub(super) fn line(&self, mut record: Map<String, Value>) -> (String, Head) {
        let seq = self.seq + 1;
        record.insert("seq".to_owned(), seq.into());
        record.insert("prev".to_owned(), self.hash.clone().into());
        let mut content = String::new();
        canonical(&Value::Object(record), &mut content);
        let hash = hash(content.as_bytes());
        (format!("{BEGIN}{hash}\",{}", &content[1..]), Head { seq, hash })
    }

    /// The chain with this line, if it is what follows.
    pub(super) fn follow(&self, line: &str) -> Result<Head, String> {
        let head = read(line)?;
        let Self { seq, hash } = self;
        if head.1.seq != seq + 1 {
            let found = head.1.seq;
            return Err(format!("it has the number {found}, and {} is due", seq + 1));
        }
        if head.0 != *hash {
            return Err("it does not follow the line before it".to_owned());
        }
        Ok(head.1)
    }
}

/// What a line says of the one before it and of itself, if it is as it was written.
pub(super) fn read(line: &str) -> Result<(String, Head), String> {
    let parts = line.strip_prefix(BEGIN).and_then(|rest| {
        let (hash, rest) = rest.split_at_checked(HEX)?;
        Some((hash, rest.strip_prefix("\",")?))
    });
    let Some((hash, rest)) = parts else {
        return Err("it is no line of an audit log".to_owned());
    };
    let content = format!("{{{rest}");
    if self::hash(content.as_bytes()) != hash {
        return Err("it is not what was written: its hash does not fit".to_owned());
    }
    let value: Value =
        serde_json::from_str(&content).map_err(|error| format!("it is not JSON: {error}"))?;
    match (value["seq"].as_u64(), value["prev"].as_str()) {
        (Some(seq), Some(prev)) => Ok((prev.to_owned(), Head { seq, hash: hash.to_owned() })),
        _ => Err("it has no number, or does not say what it follows".to_owned()),
    }
}

/// A hash, as lines have it.
pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::with_capacity(HEX), |mut hex, byte| {
        // Writing to a text cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A value as text, with the fields of objects in order.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.keys().collect();
            names.sort_unstable();
            text.push('{');
            for (at, name) in names.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                canonical(&fields[name], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// A time as lines have it: `2026-11-16T12:20:33.123Z`.
pub(super) fn written(time: SystemTime) -> String {
    Moment::from(time).rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::{Duration, UNIX_EPOCH};

    fn record(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_line_is_followed_only_by_its_own_next_one() {
        let (first, one) = Head::start().line(record(json!({ "tool": "a", "x": 0.1 })));
        let (second, two) = one.line(record(json!({ "tool": "b" })));
        assert_eq!(Head::start().follow(&first), Ok(one.clone()));
        assert_eq!(one.follow(&second), Ok(two));
        assert!(Head::start().follow(&second).is_err());
        assert!(one.follow(&first).is_err());
        for at in 0..first.len() {
            let mut bytes = first.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes);
            assert!(Head::start().follow(&changed).is_err(), "byte {at} may be changed");
        }
    }

    #[test]
    fn fields_are_in_order_wherever_they_came_from() {
        let mut text = String::new();
        canonical(&json!({ "b": [1, { "d": null, "c": "\u{e9}\"" }], "a": true }), &mut text);
        assert_eq!(text, "{\"a\":true,\"b\":[1,{\"c\":\"\u{e9}\\\"\",\"d\":null}]}");
    }

    #[test]
    fn a_time_is_written_as_a_date() {
        let at = |seconds| written(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56.000Z");
        assert_eq!(at(1_763_295_633), "2025-11-16T12:20:33.000Z");
        assert_eq!(at(4_102_444_799), "2099-12-31T23:59:59.000Z");
    }
}

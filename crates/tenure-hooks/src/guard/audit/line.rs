//! One line of the log, and the chain that the lines are.

use crate::words::{Moment, hex};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::SystemTime;

/// How a line begins: its hash is over the rest of it, byte for byte.
const BEGIN: &str = "{\"hash\":\"";
/// The length of a hash as it is written.
const HEX: usize = 64;

/// Fields of a line, in any order; each is there once.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// What a line says, beside what the chain adds.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// What all lines of a call say.
    pub(super) common: Arc<Fields>,
    /// What only this one says.
    pub(super) more: Fields,
}

impl Record {
    fn fields(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.common.iter().chain(&self.more).map(|(name, value)| (*name, value))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.fields().find(|(it, _)| *it == name).map(|(_, value)| value)
    }
}

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

    /// The line that follows, written at this time, without its end, and the chain with it.
    pub(super) fn line(&self, record: &Record, at: SystemTime) -> (Vec<u8>, Head) {
        let seq = self.seq + 1;
        let chain: Fields = vec![
            ("at", written(at).into()),
            ("prev", self.hash.as_str().into()),
            ("seq", seq.into()),
        ];
        let chain = chain.iter().map(|(name, value)| (*name, value));
        let mut fields: Vec<_> = record.fields().chain(chain).collect();
        fields.sort_unstable_by_key(|(name, _)| *name);

        let mut line = Vec::with_capacity(1 << 10);
        line.extend_from_slice(BEGIN.as_bytes());
        // Here the hash comes to stand, when the rest is there.
        let gap = line.len()..line.len() + HEX;
        line.resize(gap.end, b'0');
        line.extend_from_slice(b"\",");
        let rest = line.len();
        object(fields.into_iter(), &mut line);
        let hash = hex(&Sha256::new().chain_update(b"{").chain_update(&line[rest..]).finalize());
        line[gap].copy_from_slice(hash.as_bytes());
        (line, Head { seq, hash })
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
    hex(&Sha256::digest(bytes))
}

/// A value as text, with the fields of objects in order.
fn canonical(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(name, it)| (name.as_str(), it)).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push(b'{');
            object(fields.into_iter(), text);
        }
        Value::Array(items) => {
            text.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                canonical(item, text);
            }
            text.push(b']');
        }
        other => plain(other, text),
    }
}

/// The fields of an object, which are in order, and its end.
fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>, text: &mut Vec<u8>) {
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            text.push(b',');
        }
        plain(name, text);
        text.push(b':');
        canonical(value, text);
    }
    text.push(b'}');
}

fn plain(it: &(impl serde::Serialize + ?Sized), text: &mut Vec<u8>) {
    // Neither writing to bytes in memory nor a text, a number or a word can fail.
    let _ = serde_json::to_writer(text, it);
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

    fn line(head: &Head, more: Fields) -> (String, Head) {
        let common = Arc::new(vec![("tool", json!("a")), ("call", json!("1"))]);
        let (line, head) = head.line(&Record { common, more }, UNIX_EPOCH);
        (String::from_utf8(line).unwrap(), head)
    }

    #[test]
    fn a_line_is_followed_only_by_its_own_next_one() {
        let (first, one) = line(&Head::start(), vec![("x", json!(0.1))]);
        let (second, two) = line(&one, vec![("y", json!({ "b": 1, "a": "\u{e9}" }))]);
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
    fn a_line_is_as_lines_have_always_been() {
        let (line, head) = line(&Head::start(), vec![("phase", json!("begun"))]);
        let zeros = "0".repeat(HEX);
        let content = format!(
            "{{\"at\":\"1970-01-01T00:00:00.000Z\",\"call\":\"1\",\"phase\":\"begun\",\
             \"prev\":\"{zeros}\",\"seq\":1,\"tool\":\"a\"}}"
        );
        assert_eq!(head.hash, hash(content.as_bytes()));
        assert_eq!(line, format!("{BEGIN}{}\",{}", head.hash, &content[1..]));
    }

    #[test]
    fn fields_are_in_order_wherever_they_came_from() {
        let mut text = Vec::new();
        canonical(&json!({ "b": [1, { "d": null, "c": "\u{e9}\"" }], "a": true }), &mut text);
        let text = String::from_utf8(text).unwrap();
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

//! Fingerprints: what a step depends on, as a number.

use serde::Serialize;
use serde_json::Value;

/// A hash that is the same in every process, on every machine and in every release. Not a defence:
/// it notices that code or input has changed since a record was made.
pub(crate) struct Print(u64);

impl Print {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    pub(crate) const fn new() -> Self {
        Self(Self::START)
    }

    /// Goes on from another fingerprint.
    pub(crate) const fn after(print: u64) -> Self {
        Self(print ^ Self::START)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(Self::PRIME);
        }
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// The keys of an object are sorted here: whether a map keeps them sorted is decided by features
    /// of a crate that anybody in the build can turn on.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                self.bytes(b"{");
                self.number(fields.len() as u64);
                for (key, value) in fields {
                    self.text(key);
                    self.value(value);
                }
            }
            Value::Array(items) => {
                self.bytes(b"[");
                self.number(items.len() as u64);
                items.iter().for_each(|item| self.value(item));
            }
            Value::String(text) => {
                self.bytes(b"\"");
                self.text(text);
            }
            scalar => self.text(&scalar.to_string()),
        }
    }

    /// The fingerprint. The last mixing spreads a change of the last byte over all bits.
    pub(crate) const fn finish(self) -> u64 {
        let mut print = self.0;
        print = (print ^ (print >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        print = (print ^ (print >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        print ^ (print >> 31)
    }
}

/// A hash of what a step depends on, equal in every process and whatever the order of keys.
pub(crate) fn fingerprint<T: Serialize>(input: &T) -> u64 {
    let mut print = Print::new();
    print.value(&serde_json::to_value(input).unwrap_or_default());
    print.finish()
}

/// The [`fingerprint`] of a list of texts, which need not become JSON for it.
pub(crate) fn fingerprint_texts(texts: &[&str]) -> u64 {
    let mut print = Print::new();
    print.bytes(b"[");
    print.number(texts.len() as u64);
    for text in texts {
        print.bytes(b"\"");
        print.text(text);
    }
    print.finish()
}

#[cfg(test)]
mod tests {
    use super::{fingerprint, fingerprint_texts};
    use serde_json::json;

    #[test]
    fn a_fingerprint_ignores_the_order_of_keys_and_nothing_else() {
        let print = |text: &str| {
            fingerprint(&serde_json::from_str::<serde_json::Value>(text).expect("it is JSON"))
        };
        assert_eq!(print(r#"{"a":1,"b":{"c":2,"d":3}}"#), print(r#"{"b":{"d":3,"c":2},"a":1}"#));
        assert_ne!(print(r#"{"a":1,"b":2}"#), print(r#"{"a":2,"b":1}"#));
        assert_ne!(print("[1,2]"), print("[2,1]"));
        assert_ne!(print("[[1],2]"), print("[1,[2]]"));
        assert_ne!(print(r#"["ab","c"]"#), print(r#"["a","bc"]"#));
        assert_ne!(fingerprint(&json!("1")), fingerprint(&json!(1)));
        let texts = ["run", "", "a \"name\""];
        assert_eq!(fingerprint_texts(&texts), fingerprint(&json!(texts)));
    }

    /// Records of earlier releases are held against fingerprints of later ones.
    #[test]
    fn a_fingerprint_is_the_same_in_every_release() {
        assert_eq!(fingerprint(&json!({ "a": [1, "two", null] })), PINNED);
    }

    const PINNED: u64 = 15_057_873_198_433_656_858;
}

//! Integers with all their digits.

use serde_json::Value;
use std::collections::HashMap;

/// The fewest digits of an integer that 64 bits may not hold.
const LONG: usize = 19;

/// The integers of a JSON text that are too long for 64 bits, by their places.
///
/// A [`Value`] holds such an integer as a float, which has its first sixteen digits. This has all of
/// them, for whatever reads numbers of any length.
///
/// ```
/// use serde_json::{Value, json};
/// use tenure_core::tool::LongIntegers;
///
/// let text = r#"{"id": 123456789012345678901234567890, "n": 2}"#;
/// let mut value: Value = serde_json::from_str(text).unwrap();
/// value["n"] = json!(3);
/// let long = LongIntegers::of(text).expect("there is one");
/// assert_eq!(long.json(&value), r#"{"id":123456789012345678901234567890,"n":3}"#);
/// assert!(LongIntegers::of(r#"{"id": 1}"#).is_none());
/// ```
#[derive(Debug)]
pub struct LongIntegers<'t>(Within<'t>);

#[derive(Debug)]
enum Within<'t> {
    Integer(&'t str),
    Object(HashMap<String, LongIntegers<'t>>),
    List(HashMap<usize, LongIntegers<'t>>),
}

impl<'t> LongIntegers<'t> {
    /// The long integers of a text; `None` if it has none, or is not JSON.
    pub fn of(text: &'t str) -> Option<Self> {
        if !has_long_run(text) || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return None;
        }
        Cursor { text, at: 0 }.value()
    }

    /// Those of a key of this object.
    pub fn key(&self, key: &str) -> Option<&Self> {
        match &self.0 {
            Within::Object(fields) => fields.get(key),
            _ => None,
        }
    }

    /// Those of an item of this list.
    pub fn item(&self, at: usize) -> Option<&Self> {
        match &self.0 {
            Within::List(items) => items.get(&at),
            _ => None,
        }
    }

    /// The digits of this integer, if `number` is what was read of it. A number that was changed
    /// since is another one.
    pub fn digits(&self, number: &serde_json::Number) -> Option<&'t str> {
        match self.0 {
            Within::Integer(digits) => {
                let number = number.as_f64().filter(|_| number.is_f64())?;
                let read: f64 = digits.parse().ok()?;
                // Readers of JSON may miss a float by its last bits, and each that it passes may.
                ((number - read).abs() <= read.abs() * 8.0 * f64::EPSILON).then_some(digits)
            }
            _ => None,
        }
    }

    /// The JSON of a value that was read from the text, with the digits that the text has. Numbers
    /// that were changed since stay as they are.
    pub fn json(&self, value: &Value) -> String {
        let mut json = String::new();
        write(value, Some(self), &mut json);
        json
    }
}

fn write(value: &Value, long: Option<&LongIntegers<'_>>, json: &mut String) {
    let Some(long) = long else { return json.push_str(&value.to_string()) };
    match value {
        Value::Number(number) if let Some(digits) = long.digits(number) => json.push_str(digits),
        Value::Object(fields) => {
            let mut separator = '{';
            for (key, value) in fields {
                json.push(separator);
                json.push_str(&Value::from(key.as_str()).to_string());
                json.push(':');
                write(value, long.key(key), json);
                separator = ',';
            }
            json.push_str(if separator == '{' { "{}" } else { "}" });
        }
        Value::Array(items) => {
            let mut separator = '[';
            for (at, item) in items.iter().enumerate() {
                json.push(separator);
                write(item, long.item(at), json);
                separator = ',';
            }
            json.push_str(if separator == '[' { "[]" } else { "]" });
        }
        other => json.push_str(&other.to_string()),
    }
}

/// Whether there are so many digits in a row, wherever.
fn has_long_run(text: &str) -> bool {
    let mut run = 0;
    text.bytes().any(|byte| {
        run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        run == LONG
    })
}

/// A place in a text that is known to be JSON.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or_default()
    }

    /// Passes over a value, and gives the long integers in it.
    fn value(&mut self) -> Option<LongIntegers<'t>> {
        match self.peek() {
            b'{' => {
                let mut fields = HashMap::new();
                while self.another(b'}') {
                    let key = serde_json::from_str(self.string());
                    self.peek();
                    self.at += 1;
                    let long = self.value();
                    if let Ok(key) = key {
                        // Of two equal keys, the last one counts.
                        fields.remove(&key);
                        fields.extend(long.map(|long| (key, long)));
                    }
                }
                (!fields.is_empty()).then_some(LongIntegers(Within::Object(fields)))
            }
            b'[' => {
                let mut items = HashMap::new();
                let mut at = 0;
                while self.another(b']') {
                    items.extend(self.value().map(|long| (at, long)));
                    at += 1;
                }
                (!items.is_empty()).then_some(LongIntegers(Within::List(items)))
            }
            b'"' => {
                self.string();
                None
            }
            _ => {
                let word = self.word();
                let is_long = word.len() >= LONG
                    && word.bytes().skip(1).all(|byte| byte.is_ascii_digit())
                    && word.parse::<i64>().is_err()
                    && word.parse::<u64>().is_err();
                is_long.then_some(LongIntegers(Within::Integer(word)))
            }
        }
    }

    /// Passes over what opens or separates, and says whether something follows before `end`.
    fn another(&mut self, end: u8) -> bool {
        if self.peek() == end {
            self.at += 1;
            return false;
        }
        self.at += 1;
        if self.peek() == end {
            self.at += 1;
            return false;
        }
        self.at < self.text.len()
    }

    /// Passes over a string, quotes included.
    fn string(&mut self) -> &'t str {
        self.peek();
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Passes over a number, `true`, `false` or `null`.
    fn word(&mut self) -> &'t str {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let size = rest.find(|c: char| ",]}".contains(c) || c.is_ascii_whitespace());
        self.at += size.unwrap_or(rest.len());
        self.text.get(start..self.at).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const BIG: &str = "123456789012345678901234567890";

    fn told(text: &str) -> String {
        let value: Value = serde_json::from_str(text).expect("it is JSON");
        LongIntegers::of(text).map_or_else(|| value.to_string(), |long| long.json(&value))
    }

    #[test]
    fn every_place_keeps_its_digits() {
        for text in [
            BIG.to_owned(),
            format!("-{BIG}"),
            format!(r#"{{"a":{BIG}}}"#),
            format!(r#"{{"a":[1,{BIG},[],{{}},[{{"b":-{BIG}}}]],"c":"{BIG}"}}"#),
            format!(r#"{{"\"\\":{BIG},"é":[{BIG}]}}"#),
            format!("[18446744073709551615,18446744073709551616,{BIG}]"),
            "[-9223372036854775808,-9223372036854775809]".to_owned(),
        ] {
            assert_eq!(told(&text), text);
        }
        let loose = format!(" {{ \"a\" : [ {BIG} , 2 ] ,\n\t\"b\" : {{ }} }} ");
        assert_eq!(told(&loose), format!(r#"{{"a":[{BIG},2],"b":{{}}}}"#));
    }

    #[test]
    fn other_numbers_are_none() {
        let exact =
            r#"{"a":9223372036854775807,"b":18446744073709551615,"c":-9223372036854775808}"#;
        let others = [exact, "1.2345678901234567890123", "1e30", r#""1234567890123456789012345""#];
        for text in others {
            assert!(LongIntegers::of(text).is_none(), "{text}");
        }
        for text in ["{\"a\":123456789012345678901234567890", "", "[1234567890123456789012,]"] {
            assert!(LongIntegers::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_was_changed_since_stays_as_it_is() {
        let text = format!(r#"{{"a":{BIG},"b":{BIG},"c":[{BIG}],"a":1}}"#);
        let long = LongIntegers::of(&text).expect("there are some");
        let changed = json!({ "a": 1, "b": 5, "c": [1.0e20], "d": 1.2345678901234568e29 });
        assert_eq!(long.json(&changed), r#"{"a":1,"b":5,"c":[1e+20],"d":1.2345678901234568e+29}"#);
    }

    /// JSON texts with integers of any length, written without blanks.
    fn texts() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "-?[1-9][0-9]{0,40}",
            Just("null".to_owned()),
            any::<String>().prop_map(|text| Value::from(text).to_string()),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let fields = proptest::collection::btree_map("[a-z\"]{0,4}", inner.clone(), 0..4);
            prop_oneof![
                proptest::collection::vec(inner, 0..4)
                    .prop_map(|all| format!("[{}]", all.join(","))),
                fields.prop_map(|all| {
                    let field = |(key, text)| format!("{}:{text}", Value::from(key));
                    let all: Vec<String> = all.into_iter().map(field).collect();
                    format!("{{{}}}", all.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_text_of_integers_comes_back_as_it_was(text in texts()) {
            prop_assert_eq!(told(&text), text);
        }
    }
}

//! The secrets of a run, and how they are kept out of what is shown.

use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";
/// Anything shorter is too likely to be a part of something else.
const SHORTEST: usize = 6;
/// Words that make the name of a variable or of a setting one of a secret, wherever they stand.
const WORDS: &[&str] = &["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// The secret values that a run knows, to be taken out of whatever it shows or stores.
///
/// A value is found as it is, as it reads inside JSON, and by its lines if it has several. One that
/// somebody encoded, cut or spelled backwards is not found: this keeps secrets from being shown by
/// accident, and does not stop a hook that wants to give them away. Values of less than six
/// characters are left alone.
///
/// ```
/// use tenure_cards::Secrets;
///
/// let secrets = Secrets::new(["sk-12345", "short"]);
/// assert_eq!(secrets.redact("the key is sk-12345, short"), "the key is [redacted], short");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The longest first, each once.
    values: Arc<[Box<str>]>,
}

impl Secrets {
    /// These values.
    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut all: Vec<Box<str>> = Vec::new();
        for value in values {
            let value = value.as_ref().trim();
            let lines = value.lines().map(str::trim).filter(|line| *line != value);
            for part in [value].into_iter().chain(lines) {
                if part.chars().count() >= SHORTEST {
                    let written = Value::from(part).to_string();
                    all.extend([part.into(), written[1..written.len() - 1].into()]);
                }
            }
        }
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Self { values: all.into() }
    }

    /// These and the others.
    pub fn and(&self, others: &Self) -> Self {
        let mut all: Vec<_> = self.values.iter().chain(&*others.values).cloned().collect();
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Self { values: all.into() }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// `text` with `[redacted]` in the place of each secret. Where several begin at one place the
    /// longest counts.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        // Where each of them comes next; each looks only at what it has not seen.
        let mut next: Vec<(usize, &str)> =
            self.values.iter().filter_map(|it| Some((text.find(&**it)?, &**it))).collect();
        if next.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut seen = 0;
        // Of equals the first is taken, and that is the longest.
        while let Some(&(at, found)) = next.iter().min_by_key(|(at, _)| *at) {
            out.push_str(&text[seen..at]);
            out.push_str(REDACTED);
            seen = at + found.len();
            next.retain_mut(|(at, value)| {
                if *at < seen {
                    match text[seen..].find(*value) {
                        Some(found) => *at = seen + found,
                        None => return false,
                    }
                }
                true
            });
        }
        out.push_str(&text[seen..]);
        Cow::Owned(out)
    }

    /// How many bytes at the end of `text` could be the beginning of a secret, so that only what
    /// follows tells. For text that is shown while it comes.
    pub fn unfinished(&self, text: &str) -> usize {
        let begins = |value: &str| {
            let longest = text.len().min(value.len() - 1);
            (1..=longest)
                .rev()
                .filter(|length| value.is_char_boundary(*length))
                .find(|length| text.ends_with(&value[..*length]))
        };
        self.values.iter().filter_map(|value| begins(value)).max().unwrap_or(0)
    }

    /// The same for every text in `value`, the names of its fields included.
    pub fn redact_json(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redact(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.redact_json(field));
                if fields.keys().any(|name| matches!(self.redact(name), Cow::Owned(_))) {
                    let fields = std::mem::take(fields);
                    let renamed = fields
                        .into_iter()
                        .map(|(name, field)| (self.redact(&name).into_owned(), field));
                    *value = Value::Object(renamed.collect());
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// What of the value of a variable is a secret: all of it if its name says so, else an address with a
/// password in it, and that password.
pub fn secret_parts<'v>(name: &str, value: &'v str) -> Vec<&'v str> {
    match looks_secret(name) {
        true => vec![value],
        false => passwords(value),
    }
}

/// Shows how many there are, and none of them.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

/// Whether a variable or a setting of this name holds a secret.
pub(crate) fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    WORDS.iter().any(|word| name.contains(word))
        || parts.any(|part| {
            let ends = ["KEY", "KEYS", "TOKEN"].iter().any(|end| part.ends_with(end));
            ends || matches!(part, "AUTH" | "PASS")
        })
}

/// What of the value of a variable is a secret, whatever its name: an address with a password in it
/// and that password.
pub(crate) fn passwords(value: &str) -> Vec<&str> {
    let Some((_, rest)) = value.split_once("://") else { return Vec::new() };
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let Some((user, _)) = rest[..host].rsplit_once('@') else { return Vec::new() };
    match user.split_once(':') {
        Some((_, password)) if !password.is_empty() => vec![value, password],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_place_of_every_secret_is_hidden_and_the_longest_wins() {
        let secrets = Secrets::new(["abcdef", "abcdefgh", "redacted", "", "tiny"]);
        for (text, expected) in [
            ("abcdef abcdefgh", "[redacted] [redacted]"),
            ("abcdefabcdef", "[redacted][redacted]"),
            ("xabcdefghx", "x[redacted]x"),
            ("tiny abcde", "tiny abcde"),
            ("redacted", "[redacted]"),
            ("é abcdef é", "é [redacted] é"),
            ("", ""),
        ] {
            assert_eq!(secrets.redact(text), expected, "{text}");
        }
        assert!(matches!(secrets.redact("nothing"), Cow::Borrowed("nothing")));
        assert_eq!(format!("{secrets:?}"), "Secrets(3)");
    }

    #[test]
    fn together_they_hide_what_each_of_them_hides_and_the_longest_still_wins() {
        let secrets = Secrets::new(["abcdef", "uvwxyz"]);
        let all = secrets.and(&Secrets::new(["abcdefgh", "abcdef"]));
        assert_eq!(all.redact("abcdefgh uvwxyz abcdef"), "[redacted] [redacted] [redacted]");
        assert_eq!(format!("{all:?}"), "Secrets(3)");
        assert_eq!(all.and(&Secrets::default()), all);
    }

    #[test]
    fn the_beginning_of_a_secret_is_not_known_to_be_none() {
        let secrets = Secrets::new(["abcdef", "abcdefgh", "éabcdef"]);
        for (text, expected) in
            [("", 0), ("x", 0), ("x abc", 3), ("abcdef", 6), ("abcdefgh", 0), ("x é", 2)]
        {
            assert_eq!(secrets.unfinished(text), expected, "{text}");
        }
        assert_eq!(Secrets::default().unfinished("abc"), 0);
    }

    #[test]
    fn a_secret_is_found_inside_json_and_by_its_lines() {
        let secrets = Secrets::new(["pass\"word\n", "first line\nsecond line\n}"]);
        assert_eq!(secrets.redact(r#"{"a":"pass\"word"}"#), r#"{"a":"[redacted]"}"#);
        assert_eq!(secrets.redact("log: second line"), "log: [redacted]");
        assert_eq!(secrets.redact("}"), "}");
    }

    #[test]
    fn json_stays_json() {
        let secrets = Secrets::new(["123456", "\"a\":\"b\""]);
        let mut value =
            json!({"a": "b", "n": 123456, "x123456": ["123456!", {"y": "\"a\":\"b\""}]});
        secrets.redact_json(&mut value);
        let expected = json!({
            "a": "b", "n": 123456, "x[redacted]": ["[redacted]!", {"y": "[redacted]"}]
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn many_places_take_no_more_than_one_look_each() {
        let secrets = Secrets::new(["aaaaaa".to_owned(), "b".repeat(50), "c".repeat(50)]);
        let text = "aaaaaa ".repeat(100_000);
        assert_eq!(secrets.redact(&text).len(), "[redacted] ".len() * 100_000);
    }

    #[test]
    fn names_of_secrets_are_told_from_others() {
        for name in [
            "API_KEY",
            "OPENAIKEY",
            "SSH_KEYS",
            "GH_TOKEN",
            "client_secret",
            "DB_PASSWORD",
            "MYSQL_PASSWD",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "BASIC_AUTH",
            "x-api-key",
        ] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["HOME", "DATABASE_URL", "KEYBOARD", "AUTHOR", "COMPASS", "MAX_TOKENS"] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_a_secret() {
        let address = "postgres://me:hunter22@db/x";
        assert_eq!(passwords(address), [address, "hunter22"]);
        for other in ["https://x.example/a:b@c", "postgres://me@db", "a:b@c", "x://:@y"] {
            assert!(passwords(other).is_empty(), "{other}");
        }
    }
}

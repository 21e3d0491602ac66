//! What lines keep of arguments, results and answers.

use super::Keep;
use super::line::hash;
use crate::guard::permissions::argument::Argument;
use serde_json::{Value, json};
use tenure_core::secret::Redactor;

/// The most that may be kept of each.
pub(super) const MOST: usize = 1 << 20;

/// What is kept.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) keep: Keep,
    pub(super) most: usize,
    pub(super) redact: Vec<Argument>,
}

impl Default for Content {
    fn default() -> Self {
        Self { keep: Keep::Full, most: 16 << 10, redact: Vec::new() }
    }
}

impl Content {
    pub(super) fn of_arguments(&self, arguments: &Value, redactor: &Redactor) -> Option<Value> {
        if matches!(self.keep, Keep::Nothing) {
            return None;
        }
        let mut arguments = arguments.clone();
        redactor.redact_json(&mut arguments);
        for argument in &self.redact {
            argument.replace(&mut arguments, &Value::from("[redacted]"));
        }
        let text = arguments.to_string();
        match self.keep {
            Keep::Full if text.len() <= self.most => Some(arguments),
            _ => self.of_clean(&text),
        }
    }

    /// Keeps of a text what may be kept, without its secrets. Its length and its hash are those of
    /// what is kept: the hash of a short secret would tell it to whoever tries.
    pub(super) fn of_text(&self, text: &str, redactor: &Redactor) -> Option<Value> {
        if matches!(self.keep, Keep::Nothing) {
            return None;
        }
        self.of_clean(&redactor.redact(text))
    }

    fn of_clean(&self, text: &str) -> Option<Value> {
        let print = || json!({ "sha256": hash(text.as_bytes()), "bytes": text.len() });
        match self.keep {
            Keep::Nothing => None,
            Keep::Hash => Some(print()),
            Keep::Full if text.len() <= self.most => Some(text.into()),
            Keep::Full => {
                let end = (0..=self.most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                let mut cut = print();
                cut["begins"] = text[..end].into();
                Some(cut)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_the_bound_is_cut_between_characters() {
        let none = Redactor::new();
        let content = Content { most: 4, ..Content::default() };
        assert_eq!(content.of_text("abcd", &none), Some(json!("abcd")));
        let cut = content.of_text("abc\u{e9}\u{e9}", &none).unwrap();
        assert_eq!((&cut["begins"], &cut["bytes"]), (&json!("abc"), &json!(7)));
        assert_eq!(cut["sha256"], json!(hash("abc\u{e9}\u{e9}".as_bytes())));
    }

    #[test]
    fn what_is_redacted_is_in_no_form_of_the_arguments() {
        let none = Redactor::new();
        let secret = json!({ "user": "eve", "login": { "password": "hunter2" } });
        let redact = vec![Argument::new("login.password").unwrap()];
        let content = Content { redact: redact.clone(), ..Content::default() };
        let kept = content.of_arguments(&secret, &none).unwrap();
        assert_eq!(kept["login"]["password"], "[redacted]");
        let hashed = Content { keep: Keep::Hash, redact, ..Content::default() };
        let other = json!({ "user": "eve", "login": { "password": "other" } });
        assert_eq!(hashed.of_arguments(&secret, &none), hashed.of_arguments(&other, &none));
        assert_eq!(Content { keep: Keep::Nothing, ..content }.of_arguments(&secret, &none), None);
    }
}

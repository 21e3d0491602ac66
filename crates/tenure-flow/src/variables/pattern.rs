//! What a message has to say.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use std::fmt;

/// The largest text that is searched with a regular expression, in bytes. What comes behind is not
/// looked at.
const MOST_TEXT: usize = 64 * 1024;
/// The largest compiled expression, in bytes.
const MOST_COMPILED: usize = 256 * 1024;

/// What a message has to say. The spaces around it and case do not count.
#[derive(Clone)]
pub enum Pattern {
    /// The whole message is this.
    Equals(String),
    /// The message has this in it.
    Contains(String),
    /// The message has something in it that this describes.
    Regex(Regular),
}

/// A regular expression, compiled. It takes time in proportion to the message, whatever it says.
#[derive(Clone)]
pub struct Regular {
    text: Box<str>,
    compiled: Regex,
}

impl Pattern {
    /// Compiles a regular expression; the error says what is wrong with it.
    pub fn regex(expression: &str) -> Result<Self, String> {
        let compiled = Regex::builder()
            .syntax(syntax::Config::new().case_insensitive(true))
            .configure(Regex::config().nfa_size_limit(Some(MOST_COMPILED)))
            .build(expression)
            .map_err(|error| match error.syntax_error() {
                Some(error) => in_a_line(&error.to_string()),
                None if error.size_limit().is_some() => "it is too large".to_owned(),
                None => error.to_string(),
            })?;
        Ok(Self::Regex(Regular { text: expression.into(), compiled }))
    }

    /// Whether a message says it.
    pub fn matches(&self, message: &str) -> bool {
        let message = message.trim();
        match self {
            Self::Equals(text) => same(text.trim(), message),
            Self::Contains(text) => folded(message).contains(&folded(text.trim())),
            Self::Regex(regular) => regular.compiled.is_match(bounded(message)),
        }
    }

    /// What has to be said, as the file has it.
    pub fn text(&self) -> &str {
        match self {
            Self::Equals(text) | Self::Contains(text) => text,
            Self::Regex(regular) => &regular.text,
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Equals(_) => "Equals",
            Self::Contains(_) => "Contains",
            Self::Regex(_) => "Regex",
        };
        f.debug_tuple(name).field(&self.text()).finish()
    }
}

impl fmt::Debug for Regular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Regular").field(&self.text).finish()
    }
}

fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || folded(one) == folded(other)
}

fn folded(text: &str) -> String {
    text.to_lowercase()
}

fn bounded(text: &str) -> &str {
    let mut end = text.len().min(MOST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The last line of what a parser says: the reason, without the drawing above it.
fn in_a_line(error: &str) -> String {
    let last = error.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or(error);
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_around_a_message_and_case_do_not_count() {
        let equals = Pattern::Equals(" NEXT ".to_owned());
        assert!(equals.matches("\n next\t"));
        assert!(!equals.matches("next please"));
        let contains = Pattern::Contains("Grüße".to_owned());
        assert!(contains.matches("viele GRÜSSE und grüße"));
        assert!(!contains.matches("Gruß"));
        let regex = Pattern::regex(r"^plan (approved|accepted)\.?$").expect("it is good");
        assert!(regex.matches("  Plan APPROVED.  "));
        assert!(!regex.matches("the plan approved"));
    }

    #[test]
    fn words_digits_and_boundaries_are_those_of_every_language() {
        let said = |expression: &str, text: &str| {
            Pattern::regex(expression).expect("it is good").matches(text)
        };
        assert!(said(r"\bnext\b", "then NEXT, please"));
        assert!(!said(r"\bnext\b", "nextdoor"));
        assert!(said(r"\bgrüße\b", "viele GRÜßE!"));
        assert!(!said(r"\bgr\b", "viele Grüße"), "ü is a letter of the word");
        assert!(said(r"^\w+ \d{2}$", "Straße 12"));
        assert!(said(r"^ωμέγα$", "ΩΜΈΓΑ"));
    }

    #[test]
    fn a_bad_expression_says_why_and_a_huge_one_is_refused() {
        let error = Pattern::regex("(a").expect_err("it is not closed");
        assert_eq!(error, "unclosed group");
        let error = Pattern::regex("(a{1000}){1000}").expect_err("it is huge");
        assert!(error.contains("too large") || error.contains("size"), "{error}");
    }

    #[test]
    fn only_the_beginning_of_a_long_message_is_searched() {
        let regex = Pattern::regex("needle").expect("it is good");
        let message = format!("needle {}", "ä".repeat(MOST_TEXT));
        assert!(regex.matches(&message));
        let message = format!("{} needle", "ä".repeat(MOST_TEXT));
        assert!(!regex.matches(&message));
    }
}

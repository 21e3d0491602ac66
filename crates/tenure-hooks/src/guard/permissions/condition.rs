//! What an argument has to be for a rule to be about a call.

use super::argument::{self, kind};
use super::beneath::Beneath;
use crate::guard::glob::Glob;
use regex_automata::meta::Regex;
use serde_json::{Number, Value};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What an argument has to be for a rule to be about a call.
///
/// Values are compared as they come: nothing in them is decoded, unescaped or brought to another
/// case, so `%2e%2e` is a name like any other, and so is `FILE` beside `file`. What a tool decodes
/// has to be judged by the tool.
///
/// ```
/// use tenure_hooks::guard::Condition;
///
/// let small = Condition::min(1.0).and(Condition::max(10.0));
/// let harmless = Condition::one_of(["ls", "pwd"]);
/// # let _ = (small, harmless);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Condition {
    pub(super) tests: Vec<Test>,
    pub(super) broken: Option<String>,
}

#[derive(Clone)]
pub(super) enum Test {
    Glob(Vec<Glob>),
    Pattern { regex: Regex, is_path: bool },
    OneOf(Vec<Value>),
    Max(f64),
    Min(f64),
    Longest(usize),
    Beneath(Box<Beneath>),
    Check(Arc<dyn Fn(&Value) -> bool + Send + Sync>),
}

/// Why a path is refused that a pattern cannot judge.
const GOES_UP: &str =
    "it has `..` in it, and a pattern cannot tell where that leads; judge paths with `beneath`";

/// Whether something holds of an argument.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
    /// It is of another kind than the rule is about, or cannot be judged: refused, whatever the
    /// rule says.
    Odd(String),
}

impl Condition {
    fn of(test: Test) -> Self {
        Self { tests: vec![test], broken: None }
    }

    fn broken(why: String) -> Self {
        Self { tests: Vec::new(), broken: Some(why) }
    }

    /// A text that one of these patterns is about, all of it: `*` stops at a `/`, `**` does not, `?`
    /// is one character. With a `/` in a pattern it is about paths, and a text with `..` between its
    /// slashes is refused: [`Condition::beneath`] is for those.
    pub fn glob<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        let globs: Result<Vec<_>, _> = patterns.into_iter().map(Glob::of_texts).collect();
        globs.map_or_else(Self::broken, |globs| Self::of(Test::Glob(globs)))
    }

    /// A text that this regular expression matches, all of it. If it has a `/` in it, a text with `..`
    /// between its slashes is refused as it is for [`Condition::glob`].
    pub fn pattern(pattern: &str) -> Self {
        // Alone first: what is no expression by itself must not become one by what is put around it.
        let regex = match Regex::new(pattern) {
            Ok(_) => Regex::new(&format!(r"\A(?:{pattern})\z")),
            Err(error) => Err(error),
        };
        match regex {
            Ok(regex) => Self::of(Test::Pattern { regex, is_path: pattern.contains('/') }),
            Err(error) => {
                let why =
                    error.syntax_error().map_or_else(|| error.to_string(), |it| it.to_string());
                Self::broken(format!("`{pattern}` is no regular expression: {why}"))
            }
        }
    }

    /// One of these values. Numbers are compared by what they are: `1.0` is `1`.
    pub fn one_of<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> Self {
        Self::of(Test::OneOf(values.into_iter().map(Into::into).collect()))
    }

    /// A number that is not more than this.
    pub fn max(most: f64) -> Self {
        Self::of(Test::Max(most))
    }

    /// A number that is not less than this.
    pub fn min(least: f64) -> Self {
        Self::of(Test::Min(least))
    }

    /// A text of at most so many characters, or a list of at most so many items.
    pub fn max_length(most: usize) -> Self {
        Self::of(Test::Longest(most))
    }

    /// A path that leads to this folder or beneath it, where the system would follow it: `..` and
    /// links are resolved, and what is not there yet is judged by the folder that it would be in.
    ///
    /// A relative path starts at the working folder of the process; see
    /// [`Condition::beneath_from`]. Between this look and the tool's own somebody else may change a
    /// link: a folder that others may write needs a tool that holds on to what it opened.
    pub fn beneath(folder: impl Into<PathBuf>) -> Self {
        Self::of(Test::Beneath(Box::new(Beneath { folder: folder.into(), start: None })))
    }

    /// The same for a tool that takes relative paths from `start`.
    pub fn beneath_from(folder: impl Into<PathBuf>, start: impl Into<PathBuf>) -> Self {
        let beneath = Beneath { folder: folder.into(), start: Some(start.into()) };
        Self::of(Test::Beneath(Box::new(beneath)))
    }

    /// Whatever this function says yes to. If it panics, the call is denied.
    pub fn check(holds: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self::of(Test::Check(Arc::new(holds)))
    }

    /// Both.
    pub fn and(mut self, other: Condition) -> Self {
        self.tests.extend(other.tests);
        self.broken = self.broken.or(other.broken);
        self
    }

    /// Whether it has to look at the file system.
    pub(super) fn looks(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, Test::Beneath(_)))
    }

    pub(super) fn holds(&self, value: &Value) -> Holds {
        let mut all = Holds::Yes;
        for test in &self.tests {
            match test.holds(value) {
                Holds::Yes => {}
                Holds::No => all = Holds::No,
                odd @ Holds::Odd(_) => return odd,
            }
        }
        all
    }
}

impl Test {
    fn holds(&self, value: &Value) -> Holds {
        let said = |yes| if yes { Holds::Yes } else { Holds::No };
        let text = |judge: &dyn Fn(&str) -> Holds| match value {
            Value::String(text) => judge(text),
            other => odd(other, "a text"),
        };
        let number = |judge: &dyn Fn(f64) -> bool| match value.as_f64() {
            Some(number) => said(judge(number)),
            None => odd(value, "a number"),
        };
        match self {
            Self::Glob(globs) => {
                let is_path = globs.iter().any(|glob| glob.text().contains('/'));
                text(&|text| match is_path && goes_up(text) {
                    true => Holds::Odd(GOES_UP.to_owned()),
                    false => said(globs.iter().any(|glob| glob.matches(text))),
                })
            }
            Self::Pattern { regex, is_path } => text(&|text| match *is_path && goes_up(text) {
                true => Holds::Odd(GOES_UP.to_owned()),
                false => said(regex.is_match(text)),
            }),
            Self::Beneath(beneath) => text(&|path| match beneath.holds(path) {
                Ok(yes) => said(yes),
                Err(why) => Holds::Odd(why),
            }),
            Self::Max(most) => number(&|number| number <= *most),
            Self::Min(least) => number(&|number| number >= *least),
            Self::OneOf(values) if values.iter().any(|one| same(one, value)) => Holds::Yes,
            Self::OneOf(values) => {
                let alike = values.iter().any(|one| kind(one) == kind(value));
                if alike { Holds::No } else { odd(value, "one of the values that are allowed") }
            }
            Self::Longest(most) => match value {
                Value::String(text) => said(text.chars().count() <= *most),
                Value::Array(items) => said(items.len() <= *most),
                other => odd(other, "a text or a list"),
            },
            Self::Check(check) => said(check(value)),
        }
    }
}

fn odd(found: &Value, wanted: &str) -> Holds {
    Holds::Odd(argument::odd(found, wanted))
}

/// Whether two values are the same. Numbers are compared by what they are, and not by how they are
/// written: `0` is `0.0`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            // Whole numbers may be too large for what `as_f64` can tell apart.
            let whole = |it: &Number| it.as_i64().map(i128::from).or(it.as_u64().map(i128::from));
            match (whole(one), whole(other)) {
                (Some(one), Some(other)) => one == other,
                _ => one.as_f64() == other.as_f64(),
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in = |(name, one)| other.get(name).is_some_and(|other| same(one, other));
            one.len() == other.len() && one.iter().all(is_in)
        }
        _ => one == other,
    }
}

/// A text that a pattern about paths cannot be held against: what it looks like is not where it
/// leads.
fn goes_up(text: &str) -> bool {
    let apart = |it: char| matches!(it, '/' | '\\') || it.is_whitespace();
    text.split(apart).any(|part| part == "..")
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Glob(globs) => f.debug_tuple("Glob").field(globs).finish(),
            Self::Pattern { regex, .. } => f.debug_tuple("Pattern").field(regex).finish(),
            Self::OneOf(values) => f.debug_tuple("OneOf").field(values).finish(),
            Self::Max(most) => f.debug_tuple("Max").field(most).finish(),
            Self::Min(least) => f.debug_tuple("Min").field(least).finish(),
            Self::Longest(most) => f.debug_tuple("Longest").field(most).finish(),
            Self::Beneath(beneath) => f.debug_tuple("Beneath").field(beneath).finish(),
            Self::Check(_) => f.write_str("Check"),
        }
    }
}

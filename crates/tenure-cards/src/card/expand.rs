//! `${VAR}` and `${VAR:default}`.

use super::Secret;
use crate::source::Span;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tenure_core::secret::{is_secret_name, is_secret_variable, passwords};

/// Where the values of `${VAR}` come from.
#[derive(Clone)]
pub struct Environ(Arc<Values>);

enum Values {
    Process,
    Given(HashMap<String, String>),
}

impl Environ {
    /// The environment of this process.
    pub fn process() -> Self {
        Self(Arc::new(Values::Process))
    }

    /// These values and no others.
    pub fn of<K: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (K, V)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(Arc::new(Values::Given(values.collect())))
    }

    /// No values at all.
    pub fn empty() -> Self {
        Self(Arc::new(Values::Given(HashMap::new())))
    }

    /// The value of `name`.
    pub fn value(&self, name: &str) -> Option<String> {
        match &*self.0 {
            Values::Process => std::env::var(name).ok(),
            Values::Given(values) => values.get(name).cloned(),
        }
    }

    /// Returns every variable with its value.
    fn all(&self) -> Vec<(String, String)> {
        match &*self.0 {
            Values::Process => std::env::vars_os()
                .map(|(name, it)| (name.to_string_lossy().into(), it.to_string_lossy().into()))
                .collect(),
            Values::Given(values) => {
                values.iter().map(|(name, it)| (name.clone(), it.clone())).collect()
            }
        }
    }

    /// Returns the values that are secrets: those of variables with the name of one, those that `names`
    /// says, and addresses with a password in them. The path of a file is none.
    pub fn secrets(&self, names: &[String]) -> Vec<String> {
        let mut secrets = Vec::new();
        for (name, value) in self.all() {
            let is_path = || Path::new(&value).is_absolute() && Path::new(&value).exists();
            let is_named = names.contains(&name);
            if is_named || is_secret_variable(&name, &value) && !is_path() {
                secrets.push(value.clone());
            }
            secrets.extend(passwords(&value).into_iter().map(str::to_owned));
        }
        secrets
    }
}

impl fmt::Debug for Environ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environ")
    }
}

/// A `${VAR}` of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expansion {
    /// The variable.
    pub name: String,
    /// Whether it was set, or has a default; one that is neither stays as it is written.
    pub is_resolved: bool,
    /// Where it is written.
    pub span: Span,
    /// Its value, if that came from the environment and is a secret: because of the variable's
    /// name, because of where it is written, or because it is an address with a password in it.
    pub(crate) secret: Option<Secret>,
    /// What kind of place it is written in.
    pub(crate) place: Place,
}

/// What a `${VAR}` stands for.
pub(crate) enum Meaning<'v> {
    /// What the environment says.
    Set(&'v str),
    /// The default that is written behind its name.
    Default,
    /// Nothing: it stays as it is written.
    Unset,
}

/// Whether the place where a variable is written makes its value a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Open,
    /// Under the name of a secret, in a field that is not meant for one.
    Named,
    /// In a field that is meant for secrets.
    Secret,
}

impl Expansion {
    pub(crate) fn new(name: &str, meaning: &Meaning<'_>, place: Place, span: Span) -> Self {
        let secret = match meaning {
            Meaning::Set(value)
                if place != Place::Open || is_secret_name(name) || !passwords(value).is_empty() =>
            {
                Some(Secret::new(*value))
            }
            _ => None,
        };
        let is_resolved = !matches!(meaning, Meaning::Unset);
        Self { name: name.to_owned(), is_resolved, span, secret, place }
    }
}

/// Expands `text`, and tells `found` of each variable and what it stands for.
pub(crate) fn expand(
    text: &str,
    environ: &Environ,
    found: impl FnMut(&str, Meaning<'_>),
) -> String {
    expand_others(text, environ, &[], found)
}

/// Expands `text` in the same way. `${name}` of those that are `kept` is somebody else's, and stays.
pub(crate) fn expand_others(
    text: &str,
    environ: &Environ,
    kept: &[String],
    mut found: impl FnMut(&str, Meaning<'_>),
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let inner = &behind[2..];
        let parsed = inner.find('}').and_then(|end| {
            let (name, default) = match inner[..end].split_once(':') {
                Some((name, default)) => (name, Some(default)),
                None => (&inner[..end], None),
            };
            is_name(name).then_some((name, default, end))
        });
        let Some((name, default, end)) = parsed else {
            out.push_str("${");
            rest = inner;
            continue;
        };
        if default.is_none() && kept.iter().any(|it| it == name) {
            out.push_str(&behind[..end + 3]);
            rest = &inner[end + 1..];
            continue;
        }
        match (environ.value(name), default) {
            (Some(value), _) => {
                found(name, Meaning::Set(&value));
                out.push_str(&value);
            }
            (None, Some(default)) => {
                found(name, Meaning::Default);
                out.push_str(default);
            }
            (None, None) => {
                found(name, Meaning::Unset);
                out.push_str(&behind[..end + 3]);
            }
        }
        rest = &inner[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Expands `text`.
pub(crate) fn expand_text(text: &str, environ: &Environ) -> String {
    expand(text, environ, |_, _| ())
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_beats_default_and_unset_stays_literal() {
        let environ = Environ::of([("A", "1"), ("EMPTY", "")]);
        for (text, expected) in [
            ("${A}", "1"),
            ("x${A}y${A}", "x1y1"),
            ("${A:2}", "1"),
            ("${B:2}", "2"),
            ("${B:}", ""),
            ("${EMPTY:2}", ""),
            ("${B}", "${B}"),
            ("${B:http://x:1}", "http://x:1"),
            ("${", "${"),
            ("${A", "${A"),
            ("${}", "${}"),
            ("${1A}", "${1A}"),
            ("$A {A} $${A}", "$A {A} $1"),
            ("é${A}é", "é1é"),
        ] {
            assert_eq!(expand(text, &environ, |_, _| ()), expected, "{text}");
        }
    }

    #[test]
    fn a_value_is_not_expanded_again() {
        let environ = Environ::of([("A", "${B}"), ("B", "no")]);
        assert_eq!(expand("${A}", &environ, |_, _| ()), "${B}");
    }
}

//! Why there is no model behind a string.

use std::fmt;

/// Where the user's own configuration is, as messages name it.
pub(super) const USER_CONFIG: &str = "your own config.toml ($XDG_CONFIG_HOME/tenure/config.toml)";

/// What kind of mistake a model string or a configuration holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// No provider is known for the name.
    UnknownModel,
    /// The string cannot be read.
    BadSpec,
    /// The provider needs a key, and there is none.
    NoKey,
    /// The file that should hold the key cannot be used.
    KeyFile,
    /// The key may not be sent to the host.
    HostNotAllowed,
    /// The address of the server is none.
    BadUrl,
    /// The address that a variable of the environment holds is none.
    BadVariable,
    /// The provider or the option is known, and not served.
    Unsupported,
    /// The program was built without the feature `providers`, and calls no model over the network.
    NotBuilt,
}

/// A string that does not lead to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderError {
    kind: ProviderErrorKind,
    message: String,
    help: String,
}

impl ProviderError {
    pub(super) fn new(
        kind: ProviderErrorKind,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { kind, message: message.into(), help: help.into() }
    }

    /// What kind of mistake it is.
    pub fn kind(&self) -> ProviderErrorKind {
        self.kind
    }

    /// What to do about it.
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ProviderError {}

/// The one of `known` that somebody who wrote `name` may have meant.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|other| (distance(&name, &other.to_ascii_lowercase()), other))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// How many letters have to be changed, added or left out to get from one to the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, to) in right.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant_and_guesses_nothing_far_away() {
        let known = ["anthropic", "openai", "groq", "sonnet"];
        assert_eq!(nearest("antropic", known), Some("anthropic"));
        assert_eq!(nearest("OpenAI", known), Some("openai"));
        assert_eq!(nearest("sonet", known), Some("sonnet"));
        assert_eq!(nearest("mistralai", known), None);
        assert_eq!(nearest("", known), None);
    }
}

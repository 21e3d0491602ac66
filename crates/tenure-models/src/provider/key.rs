//! Keys: where they come from, and how they stay out of everything that is shown.

use super::config::KeySource;
use super::error::{ProviderError, ProviderErrorKind as Kind, USER_CONFIG};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// No provider has longer keys; a longer file is something else.
const LONGEST: u64 = 16 * 1024;

/// Shorter keys are made up. To take one of them out of a text would only garble it.
const SHORTEST_SECRET: usize = 6;

/// A key that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// Keeps `key` from being shown.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }

    /// The key itself, for the header that carries it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key, wherever it stood.
    pub(super) fn scrub(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_SECRET || !text.contains(&*self.0) {
            return text.to_owned();
        }
        text.replace(&*self.0, "[key]")
    }

    /// Whether the key can stand in a header.
    pub(super) fn is_sendable(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| (0x21..=0x7e).contains(&byte))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// What messages call the place of a key.
pub(super) fn source_name(source: &KeySource) -> String {
    match source {
        KeySource::Env(name) => name.clone(),
        KeySource::File(path) => path.display().to_string(),
    }
}

/// The key from where `source` says. A variable that is not set is no error here.
pub(super) fn load(
    provider: &str,
    source: &KeySource,
    env: &(dyn Fn(&str) -> Option<String> + Send + Sync),
) -> Result<Option<ApiKey>, ProviderError> {
    let key = match source {
        KeySource::Env(name) => match env(name) {
            Some(value) if !value.trim().is_empty() => ApiKey::new(value.trim()),
            _ => return Ok(None),
        },
        KeySource::File(path) => from_file(provider, path)?,
    };
    if key.is_sendable() {
        return Ok(Some(key));
    }
    Err(ProviderError::new(
        Kind::KeyFile,
        format!(
            "the key of `{provider}` in {} has characters that no header can carry",
            source_name(source)
        ),
        "put the key there alone, on one line, without quotes",
    ))
}

fn from_file(provider: &str, path: &Path) -> Result<ApiKey, ProviderError> {
    let wrong = |what: &str| {
        ProviderError::new(
            Kind::KeyFile,
            format!("the key file {} of `{provider}` {what}", path.display()),
            format!(
                "put the key, and nothing else, into that file, or change `api_key_file` under \
                 [providers.{provider}] in {USER_CONFIG}"
            ),
        )
    };
    // A pipe or a device could hang, or never end.
    let metadata = std::fs::metadata(path).map_err(|error| wrong(&read_failed(&error)))?;
    if !metadata.is_file() {
        return Err(wrong("is not a plain file"));
    }
    if metadata.len() > LONGEST {
        return Err(wrong("is too large for a key"));
    }
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LONGEST).read_to_string(&mut text))
        .map_err(|error| wrong(&read_failed(&error)))?;
    match text.trim() {
        "" => Err(wrong("is empty")),
        key => Ok(ApiKey::new(key)),
    }
}

fn read_failed(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_neither_shown_nor_left_in_a_text() {
        let key = ApiKey::new("sk-secret-123");
        assert_eq!(format!("{key:?}"), "[redacted]");
        assert_eq!(
            key.scrub("bad key sk-secret-123, yes sk-secret-123"),
            "bad key [key], yes [key]"
        );
        assert_eq!(ApiKey::new("a").scrub("a cat"), "a cat");
    }

    #[test]
    fn only_what_a_header_can_carry_is_a_key() {
        for good in ["sk-1", "a.b_c~d"] {
            assert!(ApiKey::new(good).is_sendable(), "{good}");
        }
        for bad in ["", "two words", "two\nlines", "schlüssel", "nul\0"] {
            assert!(!ApiKey::new(bad).is_sendable(), "{bad:?}");
        }
    }
}

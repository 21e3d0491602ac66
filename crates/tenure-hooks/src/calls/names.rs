//! Tools by name, and what is said about their failures.

use crate::words::{bounded, evaluator, fits};
use serde::Serialize;
use tenure_core::hook::HookError;

/// Names, each with `*` for any number of characters and `?` for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names(Vec<String>);

impl Names {
    pub(super) fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them fits.
    pub(super) fn fit(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern, name))
    }

    /// Whether one of them fits, or there are none.
    pub(super) fn fit_or_all(&self, name: &str) -> bool {
        self.0.is_empty() || self.fit(name)
    }
}

/// A text with places to fill, as minijinja has them: `{{ error }}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words(String);

impl Words {
    /// A text that may be wrong.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A text that can be filled with `sample`; else why not.
    pub(super) fn checked(text: String, sample: &impl Serialize) -> Result<Self, String> {
        let words = Self(text);
        match words.render(sample) {
            Ok(_) => Ok(words),
            Err(error) => Err(format!("it cannot be filled: {error:#}")),
        }
    }

    pub(super) fn fill(&self, values: &impl Serialize) -> Result<String, HookError> {
        self.render(values).map_err(|error| HookError::new(format!("its text: {error:#}")))
    }

    fn render(&self, values: &impl Serialize) -> Result<String, minijinja::Error> {
        evaluator().render_str(bounded(&self.0)?, minijinja::value::Serde(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_with_stars_and_marks() {
        for (pattern, name, expected) in [
            ("search", "search", true),
            ("search", "search_files", false),
            ("search*", "search_files", true),
            ("*_files", "search_files", true),
            ("s*h_*s", "search_files", true),
            ("s*x*s", "search_files", false),
            ("?earch", "search", true),
            ("?earch", "earch", false),
            ("*", "", true),
            ("**", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "aXbXbXc", true),
        ] {
            assert_eq!(Names::new([pattern]).fit(name), expected, "{pattern} {name}");
        }
        assert!(Names::default().fit_or_all("any") && !Names::default().fit("any"));
    }

    #[test]
    fn words_are_strict() {
        let sample = serde_json::json!({ "error": "x" });
        assert!(Words::checked("{{ error }}!".to_owned(), &sample).is_ok());
        let refused = Words::checked("{{ eror }}".to_owned(), &sample).unwrap_err();
        assert!(refused.contains("undefined"), "{refused}");
        assert!(Words::checked("{{ error".to_owned(), &sample).is_err());
        assert_eq!(Words::new("<{{ error }}>").fill(&sample).unwrap(), "<x>");
    }
}

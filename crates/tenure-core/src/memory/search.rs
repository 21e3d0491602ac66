//! Looking for something in a memory.

use serde_json::Value;
use std::collections::BTreeMap;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Search {
    /// The keys that begin so, in order.
    Keys(String),
    /// What the keys and values say, best first. Words stand by themselves, whatever their case; the
    /// last one may be the beginning of a word, and `"several words"` stand together. What has all of
    /// them is found; only if nothing has, what has any of them.
    Text(String),
}

impl Search {
    /// The keys that begin with `prefix`. Every key begins with the empty one.
    pub fn keys(prefix: impl Into<String>) -> Self {
        Self::Keys(prefix.into())
    }

    /// What says these words.
    pub fn text(words: impl Into<String>) -> Self {
        Self::Text(words.into())
    }

    /// What is looked for in a text, phrase by phrase; each is one word or several that stand
    /// together. The last one may be the beginning of a word, if it is not in quotes.
    pub fn phrases(text: &str) -> Vec<Vec<String>> {
        let mut phrases = Vec::new();
        for (index, part) in text.split('"').enumerate() {
            let words = words(part);
            // Every other part is between two quotes.
            if index % 2 == 1 {
                phrases.extend((!words.is_empty()).then_some(words));
            } else {
                phrases.extend(words.into_iter().map(|word| vec![word]));
            }
        }
        phrases
    }

    /// Looks through all there is. What a memory does that has no index.
    pub fn scan(&self, values: BTreeMap<String, Value>, limit: usize) -> Vec<Found> {
        match self {
            Self::Keys(prefix) => {
                let fit = values.into_iter().filter(|(key, _)| key.starts_with(&**prefix));
                let found = fit.map(|(key, value)| Found { key, value, ..Found::default() });
                found.take(limit).collect()
            }
            Self::Text(text) => {
                let phrases = Self::phrases(text);
                let open = !text.trim_end().ends_with('"');
                let all = scanned(&values, &phrases, open);
                let most = phrases.len() as f64;
                let has_all = all.iter().any(|found| found.score >= most);
                let mut found = all;
                found.retain(|found| !has_all || found.score >= most);
                found.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
                found.truncate(limit);
                found
            }
        }
    }
}

/// Something that was found in a memory.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Where in it the words stand, marked as `[words]`. Empty in a search by key.
    pub excerpt: String,
    /// How well it fits, in the memory's own measure: more is better. 0 in a search by key.
    pub score: f64,
}

impl Found {
    /// Something found, for memories.
    pub fn new(key: impl Into<String>, value: Value) -> Self {
        Self { key: key.into(), value, ..Self::default() }
    }

    /// Where in it the words stand.
    #[must_use]
    pub fn excerpt(mut self, excerpt: impl Into<String>) -> Self {
        self.excerpt = excerpt.into();
        self
    }

    /// How well it fits.
    #[must_use]
    pub fn score(mut self, score: f64) -> Self {
        self.score = score;
        self
    }
}

/// What a value says in words: the texts in it, and the names of its fields.
pub fn text_of(value: &Value) -> String {
    fn collect(value: &Value, text: &mut String) {
        let mut add = |part: &str| {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(part);
        };
        match value {
            Value::Null => {}
            Value::Bool(it) => add(&it.to_string()),
            Value::Number(it) => add(&it.to_string()),
            Value::String(it) => add(it),
            Value::Array(items) => items.iter().for_each(|item| collect(item, text)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    if !text.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(name);
                    collect(value, text);
                }
            }
        }
    }
    let mut text = String::new();
    collect(value, &mut text);
    text
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// What has any of the phrases, and how many.
fn scanned(values: &BTreeMap<String, Value>, phrases: &[Vec<String>], open: bool) -> Vec<Found> {
    let mut all = Vec::new();
    for (key, value) in values {
        let text = format!("{key} {}", text_of(value));
        let said = words(&text);
        let mut hits = 0;
        let mut first = None;
        for (index, phrase) in phrases.iter().enumerate() {
            let begins = open && index + 1 == phrases.len();
            let at = said.windows(phrase.len()).position(|said| stands(said, phrase, begins));
            hits += usize::from(at.is_some());
            first = first.or(at.map(|at| said[at..at + phrase.len()].join(" ")));
        }
        if let Some(first) = first {
            let found = Found::new(key, value.clone()).score(hits as f64);
            all.push(found.excerpt(format!("[{first}]")));
        }
    }
    all
}

fn stands(said: &[String], phrase: &[String], begins: bool) -> bool {
    let (last, before) = match phrase.split_last() {
        Some(it) => it,
        None => return false,
    };
    let said_last = &said[before.len()];
    said[..before.len()] == *before
        && (said_last == last || begins && before.is_empty() && said_last.starts_with(&**last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values() -> BTreeMap<String, Value> {
        [
            ("city/bern", json!("A city on the Aare, with bears")),
            ("city/basel", json!({ "river": "Rhine", "motto": "A city of fairs" })),
            ("drink", json!(["black coffee", "no sugar"])),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    fn keys(search: Search, limit: usize) -> Vec<String> {
        search.scan(values(), limit).into_iter().map(|found| found.key).collect()
    }

    #[test]
    fn keys_are_found_by_how_they_begin() {
        assert_eq!(keys(Search::keys("city/"), 9), ["city/basel", "city/bern"]);
        assert_eq!(keys(Search::keys("city/"), 1), ["city/basel"]);
        assert_eq!(keys(Search::keys(""), 9).len(), 3);
        assert_eq!(keys(Search::keys("%"), 9).len(), 0);
    }

    #[test]
    fn all_words_are_wanted_and_if_nothing_has_them_any() {
        assert_eq!(keys(Search::text("CITY rhine"), 9), ["city/basel"]);
        assert_eq!(keys(Search::text("city moon"), 9), ["city/basel", "city/bern"]);
        assert_eq!(keys(Search::text("moon"), 9).len(), 0);
        assert_eq!(keys(Search::text("bea"), 9), ["city/bern"]);
        assert_eq!(keys(Search::text("bea city"), 9), ["city/basel", "city/bern"]);
        assert_eq!(keys(Search::text("\"black coffee\""), 9), ["drink"]);
        assert_eq!(keys(Search::text("\"coffee black\""), 9).len(), 0);
        assert_eq!(keys(Search::text("\"bea\""), 9).len(), 0);
        assert_eq!(keys(Search::text(" ?! "), 9).len(), 0);
    }

    #[test]
    fn what_is_between_quotes_stands_together() {
        let phrases = |text| Search::phrases(text);
        assert_eq!(phrases(r#"a "b c" d-e"#), [vec!["a"], vec!["b", "c"], vec!["d"], vec!["e"]]);
        assert_eq!(phrases(r#"a "b c"#), [vec!["a"], vec!["b", "c"]]);
        assert_eq!(phrases(r#""" ""#), Vec::<Vec<String>>::new());
    }
}

//! Types as files spell them: `str`, `optional_int`, `Optional[List[str]]`, `str | None`.

use super::FieldType;
use serde_json::Value;

/// How deeply a type may be nested in one spelling.
const DEEPEST: usize = 16;

/// The types of one word.
const WORDS: &[(&str, FieldType)] = &[
    ("str", FieldType::Str),
    ("string", FieldType::Str),
    ("int", FieldType::Int),
    ("integer", FieldType::Int),
    ("float", FieldType::Float),
    ("number", FieldType::Float),
    ("bool", FieldType::Bool),
    ("boolean", FieldType::Bool),
    ("dict", FieldType::Dict),
    ("Dict", FieldType::Dict),
    ("object", FieldType::Dict),
    ("null", FieldType::Null),
    ("none", FieldType::Null),
    ("None", FieldType::Null),
    ("any", FieldType::Any),
    ("Any", FieldType::Any),
];

/// Reads a spelling; `None` if it is none. A word that is no type is a model's name.
pub(super) fn read(text: &str) -> Option<FieldType> {
    let mut rest = Rest { text, depth: DEEPEST };
    let ty = rest.union()?;
    rest.text.trim().is_empty().then_some(ty)
}

/// What is left to read.
struct Rest<'t> {
    text: &'t str,
    depth: usize,
}

impl Rest<'_> {
    fn takes(&mut self, mark: char) -> bool {
        let rest = self.text.trim_start().strip_prefix(mark);
        if let Some(rest) = rest {
            self.text = rest;
        }
        rest.is_some()
    }

    /// `A | B`.
    fn union(&mut self) -> Option<FieldType> {
        let first = self.one()?;
        let mut variants = vec![first];
        while self.takes('|') {
            variants.push(self.one()?);
        }
        match variants.len() {
            1 => variants.pop(),
            _ => Some(FieldType::Union(variants)),
        }
    }

    /// `A` or `A[B, C]`.
    fn one(&mut self) -> Option<FieldType> {
        let text = self.text.trim_start();
        let end = text.find(|c: char| "[],|'\"".contains(c) || c.is_whitespace());
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        self.text = rest;
        let word = word.strip_prefix("typing.").unwrap_or(word);
        if word.is_empty() {
            return None;
        }
        if !self.takes('[') {
            return plain(word);
        }
        self.depth = self.depth.checked_sub(1)?;
        let ty = match word {
            "Literal" | "literal" => FieldType::Literal(self.arguments(Self::value)?),
            word => generic(word, self.arguments(Self::union)?)?,
        };
        self.depth += 1;
        Some(ty)
    }

    /// What stands between brackets, one at least.
    fn arguments<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = vec![read(self)?];
        while self.takes(',') {
            all.push(read(self)?);
        }
        self.takes(']').then_some(all)
    }

    /// A value of a literal, as Python writes it.
    fn value(&mut self) -> Option<Value> {
        let text = self.text.trim_start();
        let quote = text.chars().next()?;
        if quote == '"' || quote == '\'' {
            let (inner, rest) = text[1..].split_once(quote)?;
            self.text = rest;
            return Some(inner.into());
        }
        let end = text.find([',', ']'])?;
        let (word, rest) = text.split_at(end);
        self.text = rest;
        match word.trim() {
            "True" => Some(true.into()),
            "False" => Some(false.into()),
            "None" => Some(Value::Null),
            word => serde_json::from_str(word).ok(),
        }
    }
}

/// A type without brackets.
fn plain(word: &str) -> Option<FieldType> {
    if let Some((_, ty)) = WORDS.iter().find(|(known, _)| *known == word) {
        return Some(ty.clone());
    }
    match word {
        "list" | "List" | "array" => Some(FieldType::List(Box::new(FieldType::Any))),
        // These need more than a word.
        "literal" | "Literal" | "union" | "Union" | "Optional" | "model" => None,
        model => Some(FieldType::Model(model.to_owned())),
    }
}

/// A type with others in brackets.
fn generic(word: &str, mut inner: Vec<FieldType>) -> Option<FieldType> {
    match (word, inner.as_slice()) {
        ("Optional" | "optional", [_]) => inner.pop().map(FieldType::or_null),
        ("List" | "list", [_]) => inner.pop().map(|items| FieldType::List(Box::new(items))),
        // The keys of a JSON object are texts.
        ("Dict" | "dict", [FieldType::Str, FieldType::Any]) => Some(FieldType::Dict),
        ("Dict" | "dict", [FieldType::Str, _]) => {
            inner.pop().map(|values| FieldType::Map(Box::new(values)))
        }
        ("Union" | "union", _) => Some(FieldType::Union(inner)),
        _ => None,
    }
}

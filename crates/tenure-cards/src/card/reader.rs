//! Reading typed values out of a card's tree.
//!
//! Every method answers with a value that can be used and reports what is wrong, so that one pass
//! finds every problem of a card. A field that is `null` counts as not written.

use super::expand::{Environ, Expansion, Place, expand_others};
use super::{AgentRef, Secret};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::limit::{MAX_AGENTS, MAX_LISTED};
use crate::nearest::nearest;
use crate::source::{Key, Node, Source, Span, Value};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tenure_core::secret::is_secret_name;

/// What reading needs, and what it has found.
pub struct Reader<'a> {
    /// The file.
    pub source: &'a Arc<Source>,
    /// What is wrong with it.
    pub report: &'a mut Report,
    pub(crate) environ: &'a Environ,
    /// The variables that were taken from the environment.
    pub expansions: Vec<Expansion>,
    /// Names whose `${name}` is not the environment's: somebody else puts values there.
    pub(crate) kept: &'a [String],
    /// Whether what is being read is a secret.
    place: Place,
    /// What kind of place the name of a secret makes.
    named: Place,
}

impl<'a> Reader<'a> {
    /// Reads a file; what is wrong with it goes to `report`.
    pub fn new(source: &'a Arc<Source>, report: &'a mut Report, environ: &'a Environ) -> Self {
        let (place, named) = (Place::Open, Place::Named);
        Self { source, report, environ, expansions: Vec::new(), kept: &[], place, named }
    }
}

impl Reader<'_> {
    /// Reports a problem at `span`, and what to do about it.
    pub fn problem_help(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.report.push(Diagnostic::new(code, self.source, span, message).help(help));
    }

    /// Reports a value of the wrong kind.
    pub fn wrong_kind(&mut self, name: &str, wanted: &str, node: &Node) {
        let found = found(node);
        // A phrase such as "an entry of agents" is no name to put in quotes.
        let (shown, is_name) = match name.contains(' ') {
            true => (name.to_owned(), false),
            false => (format!("`{name}`"), true),
        };
        // Of `tools.files` only `files` is written where the value stands.
        let own = name.rsplit('.').next().unwrap_or(name);
        let key = if is_name { format!("{own}: ") } else { String::new() };
        let help = match (&node.value, wanted) {
            (Value::Int(_) | Value::Float(_) | Value::Bool(_), "text") => {
                format!("put it in quotes: `{key}\"{}\"`", node.raw)
            }
            (Value::Text(text), "true or false") if matches!(text.trim(), "true" | "false") => {
                format!("remove the quotes: `{key}{}`", text.trim())
            }
            (Value::Text(text), wanted) if wanted.contains("number") && is_number(text) => {
                format!("remove the quotes: `{key}{}`", text.trim())
            }
            (Value::Text(text), "a list of texts") => format!("write `{key}[{}]`", text.trim()),
            (_, "true or false") => format!("write `{key}true` or `{key}false`"),
            (_, "text") if own == "type" => "write for example `type: agent`".to_owned(),
            (_, "text") => format!("write one text, as in `{key}something`"),
            (_, "a whole number") if own == "schema_version" => format!("write `{key}1`"),
            (_, "a list of hooks") => {
                format!("write `{key}[{{ on: before_agent, run: file.py:function }}]`")
            }
            (_, "a whole number" | "a number") => format!("write a number, as in `{key}3`"),
            (_, "a list of texts") => format!("write `{key}[first, second]`"),
            (_, "a mapping") => format!("write `{key}{{ key: value }}`"),
            (_, wanted) => format!("write {wanted}"),
        };
        let message = format!("{shown} must be {wanted}, but is {found}");
        self.problem_help(Code::WrongKind, node.span, message, help);
    }

    /// `text` with its variables expanded.
    pub fn expanded(&mut self, text: &str, span: Span) -> String {
        let Self { environ, expansions, kept, place, .. } = self;
        expand_others(text, environ, kept, |name, meaning| {
            let found = Expansion::new(name, &meaning, *place, span);
            if !expansions.contains(&found) {
                expansions.push(found);
            }
        })
    }

    /// A tree as JSON, its texts expanded.
    pub fn json(&mut self, node: &Node) -> Json {
        match &node.value {
            Value::Text(text) => Json::String(self.expanded(text, node.span)),
            Value::List(items) => Json::Array(items.iter().map(|item| self.json(item)).collect()),
            Value::Map(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(key, node)| (key.text.clone(), self.field(key, node)))
                    .collect(),
            ),
            _ => node.to_json(),
        }
    }

    fn field(&mut self, key: &Key, node: &Node) -> Json {
        let before = self.place;
        if is_secret_name(&key.text) && before == Place::Open {
            self.place = self.named;
        }
        let value = self.json(node);
        self.place = before;
        value
    }

    /// The settings of a hook as JSON: what has the name of a secret may be one.
    pub fn settings(&mut self, node: &Node) -> Json {
        let before = std::mem::replace(&mut self.named, Place::Secret);
        let value = self.json(node);
        self.named = before;
        value
    }

    /// Reads something that is a secret: so is every variable in it.
    fn secretly<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.place, Place::Secret);
        let value = read(self);
        self.place = before;
        value
    }

    /// A text.
    pub fn text_of(&mut self, name: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) => Some(self.expanded(text, node.span)),
            _ => {
                self.wrong_kind(name, "text", node);
                None
            }
        }
    }

    /// A text that is not blank.
    pub fn words_of(&mut self, name: &str, node: &Node) -> Option<String> {
        let text = self.text_of(name, node)?;
        if text.trim().is_empty() {
            self.problem_help(
                Code::EmptyText,
                node.span,
                format!("`{name}` is empty"),
                format!("write something, or leave `{name}` out"),
            );
            return None;
        }
        Some(text)
    }

    /// The text of a field that is not blank.
    pub fn words(&mut self, map: &Node, name: &str) -> Option<String> {
        let node = present(map, name)?;
        self.words_of(name, node)
    }

    /// A truth value.
    pub fn truth(&mut self, map: &Node, name: &str) -> Option<bool> {
        let node = present(map, name)?;
        match node.value {
            Value::Bool(value) => Some(value),
            _ => {
                self.wrong_kind(name, "true or false", node);
                None
            }
        }
    }

    /// A whole number in `range`.
    pub fn whole(&mut self, map: &Node, name: &str, range: RangeInclusive<i64>) -> Option<i64> {
        let node = present(map, name)?;
        match node.value {
            Value::Int(value) if range.contains(&value) => Some(value),
            Value::Int(value) => {
                let wanted = if *range.end() == i64::from(u32::MAX) {
                    format!("{} or more", range.start())
                } else {
                    format!("between {} and {}", range.start(), range.end())
                };
                self.problem_help(
                    Code::OutOfRange,
                    node.span,
                    format!("`{name}` is {value}, but must be {wanted}"),
                    format!("give a number in that range, or leave `{name}` out"),
                );
                None
            }
            _ => {
                self.wrong_kind(name, "a whole number", node);
                None
            }
        }
    }

    /// A count: 1 or more.
    pub fn count(&mut self, map: &Node, name: &str) -> Option<u32> {
        self.whole(map, name, 1..=i64::from(u32::MAX)).and_then(|value| u32::try_from(value).ok())
    }

    /// A number.
    pub fn number(&mut self, map: &Node, name: &str) -> Option<(f64, Span)> {
        let node = present(map, name)?;
        match node.value {
            Value::Int(value) => Some((value as f64, node.span)),
            Value::Float(value) if value.is_finite() => Some((value, node.span)),
            _ => {
                self.wrong_kind(name, "a number", node);
                None
            }
        }
    }

    /// A number of seconds, more than zero.
    pub fn seconds(&mut self, map: &Node, name: &str) -> Option<std::time::Duration> {
        let (value, span) = self.number(map, name)?;
        match std::time::Duration::try_from_secs_f64(value) {
            Ok(duration) if !duration.is_zero() => Some(duration),
            _ => {
                self.problem_help(
                    Code::OutOfRange,
                    span,
                    format!("`{name}` is {value}, but must be more than 0"),
                    format!("give the number of seconds, or leave `{name}` out"),
                );
                None
            }
        }
    }

    /// One of several words.
    pub fn one_of<T: Copy>(&mut self, map: &Node, name: &str, words: &[(&str, T)]) -> Option<T> {
        let node = present(map, name)?;
        let text = self.text_of(name, node)?;
        let wanted = text.trim();
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(wanted));
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let help = match nearest(wanted, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use {}", list(&names, "or")),
            };
            self.problem_help(
                Code::NotOneOf,
                node.span,
                format!("`{name}` is `{wanted}`, but must be {}", list(&names, "or")),
                help,
            );
        }
        found.map(|(_, value)| *value)
    }

    /// A list of texts that are not blank, each with its place.
    pub fn texts(&mut self, map: &Node, name: &str) -> Option<Vec<(String, Span)>> {
        let node = present(map, name)?;
        self.texts_of(name, node)
    }

    /// The node as a list of texts that are not blank.
    pub fn texts_of(&mut self, name: &str, node: &Node) -> Option<Vec<(String, Span)>> {
        let Some(items) = node.list() else {
            self.wrong_kind(name, "a list of texts", node);
            return None;
        };
        let each = format!("an entry of {name}");
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match &item.value {
                Value::Text(text) if text.trim().is_empty() => {
                    self.problem_help(
                        Code::EmptyText,
                        item.span,
                        format!("an entry of `{name}` is empty"),
                        "write something, or remove the entry",
                    );
                }
                Value::Text(text) => {
                    let text = self.expanded(text, item.span);
                    texts.push((text.trim().to_owned(), item.span));
                }
                _ => self.wrong_kind(&each, "text", item),
            }
        }
        Some(texts)
    }

    /// A list of agents' names.
    pub(crate) fn agents(&mut self, map: &Node, field: &'static str) -> Vec<AgentRef> {
        let mut texts = self.texts(map, field).unwrap_or_default();
        if let Some((_, span)) = texts.get(MAX_AGENTS).cloned() {
            let message = format!(
                "`{field}` names {} agents, and at most {MAX_AGENTS} are read",
                texts.len()
            );
            self.problem_help(Code::TooMuch, span, message, "name fewer of them");
            texts.truncate(MAX_AGENTS);
        }
        let agent = |(name, span): (String, Span)| AgentRef { name: name.into(), field, span };
        texts.into_iter().map(agent).collect()
    }

    /// A list of agents' names that must not be empty.
    pub(crate) fn some_agents(&mut self, map: &Node, field: &'static str) -> Vec<AgentRef> {
        if let Some(node) = map.field(field)
            && node.list().is_some_and(<[Node]>::is_empty)
        {
            self.problem_help(
                Code::EmptyText,
                node.span,
                format!("`{field}` is an empty list"),
                "name at least one agent",
            );
        }
        self.agents(map, field)
    }

    /// The name of an agent.
    pub(crate) fn agent(&mut self, map: &Node, field: &'static str) -> Option<AgentRef> {
        let node = present(map, field)?;
        let name = self.words_of(field, node)?;
        Some(AgentRef { name: name.trim().into(), field, span: node.span })
    }

    /// A mapping, if the field is there.
    pub fn mapping<'n>(&mut self, map: &'n Node, name: &str) -> Option<&'n Node> {
        let node = present(map, name)?;
        if node.map().is_none() {
            self.wrong_kind(name, "a mapping", node);
            return None;
        }
        Some(node)
    }

    /// By name, lists of texts.
    pub(crate) fn filters(&mut self, map: &Node, name: &str) -> BTreeMap<String, Vec<String>> {
        let Some(node) = self.mapping(map, name) else { return BTreeMap::new() };
        let mut filters = BTreeMap::new();
        for (key, node) in node.map().unwrap_or_default() {
            let name = format!("{name}.{}", key.text);
            let texts = self.texts_of(&name, node).unwrap_or_default();
            filters.insert(key.text.clone(), texts.into_iter().map(|(text, _)| text).collect());
        }
        filters
    }

    /// A secret text.
    pub fn secret(&mut self, map: &Node, name: &str) -> Option<Secret> {
        let node = present(map, name)?;
        match &node.value {
            Value::Text(text) => {
                if !text.trim().is_empty() && !text.contains("${") {
                    let message = format!("`{name}` is written into the card itself");
                    let help = format!(
                        "whoever reads the file has the key: write `{name}: ${{VARIABLE}}`, and it \
                         comes from the environment"
                    );
                    self.hidden(Code::SecretInCard, node.span, message, help);
                }
                self.secretly(|reader| reader.words_of(name, node)).map(Secret::new)
            }
            value => {
                let message = format!("`{name}` must be text, but is {}", value.kind());
                let help = format!("put it in quotes, or better write `{name}: ${{VARIABLE}}`");
                self.hidden(Code::WrongKind, node.span, message, help);
                None
            }
        }
    }

    /// Reports a problem with a secret, which is shown neither in the message nor in the excerpt.
    fn hidden(&mut self, code: Code, span: Span, message: String, help: String) {
        let source = Arc::new(self.source.hiding(span));
        self.report.push(Diagnostic::new(code, &source, span, message).help(help));
    }

    /// By name, secret texts. Numbers and truth values are taken as they are written.
    pub fn secrets(&mut self, map: &Node, name: &str) -> BTreeMap<String, Secret> {
        let Some(node) = self.mapping(map, name) else { return BTreeMap::new() };
        let mut secrets = BTreeMap::new();
        for (key, node) in node.map().unwrap_or_default() {
            let value = match &node.value {
                Value::Text(text) => self.secretly(|reader| reader.expanded(text, node.span)),
                Value::List(_) | Value::Map(_) => {
                    self.secretly(|reader| reader.json(node)).to_string()
                }
                _ => node.raw.to_string(),
            };
            secrets.insert(key.text.clone(), Secret::new(value));
        }
        secrets
    }

    /// Reports every key of `map` that is not one of `names`.
    pub fn only(&mut self, map: &Node, of: &str, names: &[&str], code: Code) {
        for (key, _) in map.map().unwrap_or_default() {
            if !names.contains(&key.text.as_str()) && !self.report.is_full(self.source, code) {
                let help = match nearest(&key.text, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("possible are {}", list(names, "and")),
                };
                let message = format!("`{}` is not a field of {of}", key.text);
                self.problem_help(code, key.span, message, help);
            }
        }
    }
}

/// The field, if it is there and not null.
pub fn present<'n>(map: &'n Node, name: &str) -> Option<&'n Node> {
    map.field(name).filter(|node| node.value != Value::Null)
}

/// What a value is, for a message.
pub fn found(node: &Node) -> String {
    match &node.value {
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
            format!("{} (`{}`)", node.value.kind(), node.raw)
        }
        _ => node.value.kind().to_owned(),
    }
}

/// `a`, `b` or `c`.
pub fn list(names: &[&str], last: &str) -> String {
    let listed = names.iter().take(MAX_LISTED);
    let mut quoted: Vec<String> = listed.map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(MAX_LISTED) {
        0 => {}
        more => quoted.push(format!("{more} more")),
    }
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [all @ .., end] => format!("{} {last} {end}", all.join(", ")),
    }
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

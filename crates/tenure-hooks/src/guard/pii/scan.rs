//! What is found in a text, and what becomes of it.

use super::detector::{Detector, Strategy};
use super::fold::{Folded, folds, plain};
use super::leaves::{self, Quiet};
use super::marks;
use super::quick::Made;
use super::secret::{self, REACH};
use super::trace::Trace;
use regex_automata::Input;
use regex_automata::meta::Regex;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pattern of somebody's own.
#[derive(Clone, Debug)]
pub(super) struct Custom {
    pub(super) name: Arc<str>,
    pub(super) regex: Regex,
    pub(super) trace: Trace,
}

impl Custom {
    /// Why a pattern cannot be used, or the pattern.
    pub(super) fn new(name: &str, pattern: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(format!(
                "`{name}` is no name for a pattern; use small letters, digits and `_`"
            ));
        }
        if Detector::ALL.iter().any(|it| it.as_str() == name) {
            return Err(format!("`{name}` is the name of a detector; give the pattern another"));
        }
        let regex = Regex::new(pattern).map_err(|error| {
            let why = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
            format!("`{pattern}` is no regular expression: {why}")
        })?;
        if regex.is_match("") {
            return Err(format!("`{pattern}` matches where nothing is; have it match something"));
        }
        let trace = Trace::new(pattern)?;
        Ok(Self { name: name.into(), regex, trace })
    }
}

/// What looks for something.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Known(Detector),
    Own(Custom),
}

/// What is looked for, and what is done with it.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) source: Source,
    pub(super) strategy: Strategy,
}

impl Rule {
    pub(super) fn name(&self) -> &str {
        match &self.source {
            Source::Known(detector) => detector.as_str(),
            Source::Own(custom) => &custom.name,
        }
    }
}

/// Something that was found: a stretch of text, and the rule that decides about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    rule: usize,
    /// Whether the rule's own match is all of it.
    whole: bool,
}

/// All the rules.
#[derive(Clone, Debug)]
pub(super) struct Scanner {
    pub(super) rules: Vec<Rule>,
    pub(super) salt: String,
}

/// How often something was found, by name; or what is refused.
pub(super) type Counts = BTreeMap<String, usize>;

/// Something was found that must not be there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Blocked(pub(super) String);

impl Scanner {
    /// Everything in a text.
    pub(super) fn all(&self, text: &str) -> Vec<Hit> {
        self.hits(text, Folded::of(text).as_ref(), 0)
    }

    /// Everything that begins at `from` or behind it, in the text or in its plain copy. What overlaps
    /// is one: the strictest strategy counts for all of it, and of several rules with that the longest
    /// match, then the earliest.
    pub(super) fn hits(&self, text: &str, folded: Option<&Folded>, from: usize) -> Vec<Hit> {
        let mut found: Vec<Hit> = Vec::new();
        self.look(text, from, |hit| found.push(hit));
        // Not instead: what ends at a sign that nobody sees may go on in the copy, as something else.
        if let Some(folded) = folded {
            self.look(folded.text(), folded.place(from), |hit| {
                let (start, end) = (folded.start(hit.start), folded.end(hit.end));
                found.push(Hit { start, end, ..hit });
            });
        }
        found.sort_by_key(|hit| (hit.start, usize::MAX - hit.end, hit.rule));
        let mut joined: Vec<(Hit, Hit)> = Vec::new();
        for hit in found {
            match joined.last_mut() {
                Some((all, best)) if hit.start < all.end => {
                    all.end = all.end.max(hit.end);
                    let rank = |hit: &Hit| (self.rules[hit.rule].strategy, hit.end - hit.start);
                    if rank(&hit) > rank(best) {
                        *best = hit;
                    }
                }
                _ => joined.push((hit, hit)),
            }
        }
        let one = |(all, best): (Hit, Hit)| {
            let whole = (all.start, all.end) == (best.start, best.end);
            Hit { rule: best.rule, whole, ..all }
        };
        joined.into_iter().map(one).collect()
    }

    /// Every match of every rule that begins at `from` or behind it.
    fn look(&self, text: &str, from: usize, mut found: impl FnMut(Hit)) {
        // What tells that something begins at `from` may stand before it.
        let made = Made::of(&text.as_bytes()[from.saturating_sub(REACH)..]);
        for (rule, Rule { source, .. }) in self.rules.iter().enumerate() {
            let mut take = |start, end| found(Hit { start, end, rule, whole: true });
            match source {
                Source::Known(detector) if !made.may_have(*detector) => {}
                Source::Known(detector) => detector.find(text, from, &mut take),
                Source::Own(custom) => {
                    let input = Input::new(text).span(from..text.len());
                    let matches = custom.regex.find_iter(input);
                    matches.filter(|it| !it.is_empty()).for_each(|it| take(it.start(), it.end()));
                }
            }
        }
    }

    /// The rule that decides about a hit.
    pub(super) fn rule(&self, hit: &Hit) -> &Rule {
        &self.rules[hit.rule]
    }

    /// What stands in the place of a hit.
    pub(super) fn replaced(&self, text: &str, hit: &Hit) -> String {
        let value = &text[hit.start..hit.end];
        let rule = self.rule(hit);
        match (rule.strategy, &rule.source) {
            (Strategy::Mask, Source::Known(detector)) if hit.whole => detector.mask(&plain(value)),
            (Strategy::Mask, _) => "****".to_owned(),
            (Strategy::Hash, _) => self.hashed(rule.name(), value),
            (Strategy::Redact | Strategy::Block, _) => {
                format!("[REDACTED_{}]", rule.name().to_ascii_uppercase())
            }
        }
    }

    /// The same for the same value, in whatever form it is written.
    fn hashed(&self, name: &str, value: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.salt.as_bytes());
        hash.update([0]);
        hash.update(plain(value).as_bytes());
        let hash: String = hash.finalize().iter().take(6).map(|it| format!("{it:02x}")).collect();
        format!("<{name}_hash:{hash}>")
    }

    /// The text as it may go on; `None` if that is as it is.
    pub(super) fn clean(&self, text: &str, counts: &mut Counts) -> Result<Option<String>, Blocked> {
        if let Some(found) = self.unmarked(text) {
            for rule in found.rules {
                if rule.strategy == Strategy::Block {
                    return Err(Blocked(rule.name().to_owned()));
                }
                *counts.entry(rule.name().to_owned()).or_default() += 1;
            }
            // Whoever wrote the marks, what they stand for is looked at like any other text; but once,
            // since marks may be written within marks.
            return Ok(Some(self.cleaned(&found.text, counts)?.unwrap_or(found.text)));
        }
        self.cleaned(text, counts)
    }

    fn cleaned(&self, text: &str, counts: &mut Counts) -> Result<Option<String>, Blocked> {
        let hits = self.all(text);
        if hits.is_empty() {
            return Ok(None);
        }
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for hit in &hits {
            let rule = self.rule(hit);
            if rule.strategy == Strategy::Block {
                return Err(Blocked(rule.name().to_owned()));
            }
            *counts.entry(rule.name().to_owned()).or_default() += 1;
            clean.push_str(&text[done..hit.start]);
            clean.push_str(&self.replaced(text, hit));
            done = hit.end;
        }
        clean.push_str(&text[done..]);
        Ok(Some(clean))
    }

    /// Cleans every text in a value, also names. Says whether anything changed.
    pub(super) fn clean_value(
        &self,
        value: &mut Value,
        counts: &mut Counts,
    ) -> Result<bool, Blocked> {
        match value {
            Value::String(text) => {
                let clean = self.clean(text, counts)?;
                let changed = clean.is_some();
                if let Some(clean) = clean {
                    *text = clean;
                }
                Ok(changed)
            }
            // A number has no words around it: what is found is all of it.
            Value::Number(number) => {
                let clean = self.clean(&number.to_string(), counts)?;
                let changed = clean.is_some();
                if let Some(clean) = clean {
                    *value = Value::String(clean);
                }
                Ok(changed)
            }
            Value::Array(items) => {
                let mut changed = false;
                for item in items {
                    changed |= self.clean_value(item, counts)?;
                }
                Ok(changed)
            }
            Value::Object(fields) => self.clean_fields(fields, counts),
            Value::Null | Value::Bool(_) => Ok(false),
        }
    }

    fn clean_fields(
        &self,
        fields: &mut Map<String, Value>,
        counts: &mut Counts,
    ) -> Result<bool, Blocked> {
        let mut changed = false;
        let mut renamed = Vec::new();
        for (name, value) in fields.iter_mut() {
            if let Some(clean) = self.clean(name, counts)? {
                renamed.push((name.clone(), clean));
            }
            // A password is known by the name that it has.
            if let Value::String(text) = value
                && secret::is_secret_name(plain(name).as_bytes())
                && let Some(clean) = self.clean_password(text, counts)?
            {
                *text = clean;
                changed = true;
            }
            changed |= self.clean_value(value, counts)?;
        }
        changed |= !renamed.is_empty();
        for (name, clean) in renamed {
            if let Some(value) = fields.remove(&name) {
                fields.insert(clean, value);
            }
        }
        Ok(changed)
    }

    /// What stands in the place of a value that is a password by its name.
    fn clean_password(&self, text: &str, counts: &mut Counts) -> Result<Option<String>, Blocked> {
        let is_it = |rule: &Rule| matches!(rule.source, Source::Known(Detector::Password));
        let Some(rule) = self.rules.iter().position(is_it) else { return Ok(None) };
        let is_secret = |text: &str| secret::is_secret_value(text.as_bytes());
        if !is_secret(text) && !is_secret(&plain(text)) {
            return Ok(None);
        }
        let hit = Hit { start: 0, end: text.len(), rule, whole: true };
        if self.rules[rule].strategy == Strategy::Block {
            return Err(Blocked(self.rules[rule].name().to_owned()));
        }
        *counts.entry(self.rules[rule].name().to_owned()).or_default() += 1;
        Ok(Some(self.replaced(text, &hit)))
    }

    /// Cleans the arguments of a call as a model writes them: JSON, or something that is none.
    pub(super) fn clean_json(
        &self,
        text: &str,
        counts: &mut Counts,
    ) -> Result<Option<String>, Blocked> {
        if leaves::all_quiet(text, self) {
            return Ok(None);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(mut value) => {
                let changed = self.clean_value(&mut value, counts)?;
                Ok(changed.then(|| value.to_string()))
            }
            Err(_) => self.clean(text, counts),
        }
    }
}

impl Quiet for Scanner {
    fn is_quiet(&self, text: &str) -> bool {
        if marks::has_any(text) {
            return false;
        }
        let made = Made::of(text.as_bytes());
        self.rules.iter().all(|rule| match &rule.source {
            Source::Known(detector) => !made.may_have(*detector),
            Source::Own(_) => false,
        }) && !folds(text)
    }

    fn is_quiet_name(&self, name: &str) -> bool {
        self.is_quiet(name) && !secret::is_secret_name(name.as_bytes())
    }
}

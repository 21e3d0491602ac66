//! What `safety` takes by `with`.

use super::{Injection, OnUnsafe, Safety};
use crate::ready::{About, Makings, ModelName, Options, Pattern, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use tenure_core::hook::{IntoRegistration, Registration};

/// What `safety` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::guard) struct SafetyOptions {
    /// Words that must not be said, by category. They are found whole, in any case.
    words: BTreeMap<String, Vec<String>>,
    /// Patterns that must not be said, by category.
    patterns: BTreeMap<String, Vec<Pattern>>,
    /// A model that judges what the lists let through. An answer of it that is not clearly a yes
    /// is a no.
    model: Option<ModelName>,
    /// What the judge is told. How it has to answer is added.
    prompt: Option<String>,
    /// What the judge has to look for.
    categories: Vec<String>,
    /// What follows: `deny` ends the turn as denied, `replace` says `replacement` instead, `retry`
    /// has the model answer once more, and denies if that is no better.
    on_unsafe: OnUnsafe,
    /// What is said instead.
    replacement: Option<String>,
    /// Whether what enters the agent is judged, too.
    input: bool,
    /// Whether what the model says is judged, and the arguments of its calls.
    output: bool,
    /// What is done with a tool result that has something in it that looks like orders to the model
    /// (`ignore previous instructions`): `flag` says so in front of it, `block` withholds it.
    injection: Option<Injection>,
    /// More patterns of such orders.
    injection_patterns: Vec<Pattern>,
}

impl Default for SafetyOptions {
    fn default() -> Self {
        Self {
            words: BTreeMap::new(),
            patterns: BTreeMap::new(),
            model: None,
            prompt: None,
            categories: Vec::new(),
            on_unsafe: OnUnsafe::default(),
            replacement: None,
            input: false,
            output: true,
            injection: None,
            injection_patterns: Vec::new(),
        }
    }
}

impl Options for SafetyOptions {
    const ABOUT: About = About {
        name: "safety",
        summary: "Judges what the model says by lists and by a model, and finds orders in results.",
        covers: &["UC-4.2"],
        peers: &[],
        example: r#"{ "words": { "weapons": ["pipe bomb"] }, "injection": "flag" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let words = self.words.iter().filter(|(_, words)| words.is_empty());
        let patterns = self.patterns.iter().filter(|(_, patterns)| patterns.is_empty());
        let empty = words.map(|(category, _)| ("words", category));
        let mut empty = empty.chain(patterns.map(|(category, _)| ("patterns", category)));
        let judges = self.model.is_some() || !self.words.is_empty() || !self.patterns.is_empty();
        if !judges && self.injection.is_none() {
            let message =
                "give it something to judge by: `words`, `patterns`, `model` or `injection`";
            return Err(Refusal::new("", message));
        }
        if judges && !self.input && !self.output {
            let message = "what there is to judge by is held against nothing; set `input` or \
                           `output` to true";
            return Err(Refusal::new("output", message));
        }
        if self.input && !judges {
            let message = "there is nothing to judge it by; give `words`, `patterns` or a `model`";
            return Err(Refusal::new("input", message));
        }
        if let Some((field, category)) = empty.next() {
            let message = "it names nothing; leave it out, or say what must not be said";
            return Err(Refusal::new(format!("{field}.{category}"), message));
        }
        let mut safety =
            Safety::new().on_unsafe(self.on_unsafe).input(self.input).output(self.output);
        for (category, words) in self.words {
            for (at, words) in words.iter().enumerate() {
                if words.trim().is_empty() {
                    let field = format!("words.{category}[{at}]");
                    return Err(Refusal::new(field, "this is empty; name a word"));
                }
                safety = safety.words(&category, [words]);
            }
        }
        for (category, patterns) in self.patterns {
            for pattern in patterns {
                safety.lists.add_pattern(&category, pattern.regex);
            }
        }
        match self.model {
            Some(name) => {
                let model = makings.model(&name.0).map_err(|why| Refusal::new("model", why))?;
                if makings.own_model() == Some(name.0.as_str()) {
                    let message = format!("`{}` would judge what it has said itself", name.0);
                    makings.warn("model", message);
                }
                safety = safety.judge(model).categories(self.categories);
                if let Some(prompt) = self.prompt {
                    safety = safety.prompt(prompt);
                }
            }
            None if self.prompt.is_some() => {
                return Err(Refusal::new("prompt", "it is told to a judge; name a `model`"));
            }
            None if !self.categories.is_empty() => {
                return Err(Refusal::new("categories", "a judge looks for them; name a `model`"));
            }
            None => {}
        }
        match (self.replacement, self.on_unsafe) {
            (Some(text), OnUnsafe::Replace) => safety = safety.replacement(text),
            (Some(_), _) => {
                let message = "it is only said where `on_unsafe` is `replace`";
                return Err(Refusal::new("replacement", message));
            }
            (None, _) => {}
        }
        if self.injection.is_none() && !self.injection_patterns.is_empty() {
            let message = "say what is done with what they find: set `injection`";
            return Err(Refusal::new("injection_patterns", message));
        }
        safety.injection = self.injection;
        safety.orders = self.injection_patterns.into_iter().map(|pattern| pattern.regex).collect();
        Ok(safety.into_registration())
    }
}

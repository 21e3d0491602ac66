//! The record of one run, put in order for the checks.

use crate::crash::subject::{Entry, Recorded};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::RunId;
use tenure_core::step::StepKey;

/// What names a step, whatever its input: path, kind, name, ordinal.
pub(super) type Place = (String, String, String, u32);

pub(super) struct Step<'a> {
    pub(super) seq: u64,
    pub(super) key: &'a StepKey,
    pub(super) id: String,
    pub(super) value: &'a Value,
}

impl Step<'_> {
    pub(super) fn place(&self) -> Place {
        place(self.key)
    }

    /// Whether it belongs to the instance of one life, of which other runs have others.
    pub(super) fn is_of_instance(&self) -> bool {
        is_instance(&self.key.path)
    }
}

pub(super) fn place(key: &StepKey) -> Place {
    (key.path.to_string(), key.kind.to_string(), key.name.to_string(), key.ordinal)
}

/// The place of an instance is `@name#life`, perhaps within another place.
pub(super) fn is_instance(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|last| last.starts_with('@'))
}

#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) seq: u64,
    pub(super) outcome: &'a str,
    pub(super) reason: Option<&'a str>,
}

#[derive(Default)]
pub(super) struct View<'a> {
    pub(super) steps: Vec<Step<'a>>,
    /// The scopes that began, and of which kind they are.
    pub(super) began: BTreeMap<&'a str, &'a str>,
    pub(super) ended: BTreeMap<&'a str, Vec<Ended<'a>>>,
    /// Where each life of the run begins after the first.
    lives: Vec<u64>,
}

impl<'a> View<'a> {
    pub(super) fn of(run: RunId, recorded: &'a Recorded) -> Self {
        let mut view = Self::default();
        for Entry { seq, of, step, scope, data } in &recorded.entries {
            let scope = scope.as_deref().unwrap_or_default();
            match (of.as_str(), step) {
                ("step.recorded", Some(key)) => {
                    view.steps.push(Step { seq: *seq, key, id: key.id(run), value: data });
                }
                ("scope.began", _) => {
                    view.began.insert(scope, data["kind"].as_str().unwrap_or_default());
                }
                ("scope.ended", _) => view.ended.entry(scope).or_default().push(Ended {
                    seq: *seq,
                    outcome: data["outcome"].as_str().unwrap_or_default(),
                    reason: data["reason"].as_str(),
                }),
                ("run.resumed", _) => view.lives.push(*seq),
                _ => {}
            }
        }
        view
    }

    /// In which life of the run a row was written.
    pub(super) fn life_at(&self, seq: u64) -> usize {
        1 + self.lives.iter().filter(|began| **began <= seq).count()
    }

    /// The ids of the steps that are on record.
    pub(super) fn ids(&self) -> BTreeSet<&str> {
        self.steps.iter().map(|step| step.id.as_str()).collect()
    }

    /// Whether the begin is on record whose end has this id.
    pub(super) fn has_begin_of(&self, end: &str) -> bool {
        let Some(end) = self.steps.iter().find(|step| step.id == end) else { return false };
        let begin = end.key.kind.replace("after_", "before_");
        let mut steps = self.steps.iter().map(|step| step.key);
        steps.any(|key| *key.kind == begin && key.path == end.key.path && key.name == end.key.name)
    }

    /// The steps that every run of the scenario takes, by place.
    pub(super) fn common(&self, except: &BTreeSet<&str>) -> BTreeMap<Place, &Step<'a>> {
        let common = |step: &&Step<'_>| !step.is_of_instance() && !except.contains(&*step.id);
        self.steps.iter().filter(common).map(|step| (step.place(), step)).collect()
    }
}

/// What a step came to, without what may be recorded with one step or with its neighbour, and
/// without what every body gives anew.
pub(super) fn value_of(step: &Step<'_>) -> Value {
    const BESIDE: [&str; 6] = ["value", "variables", "removed", "state", "memory", "read"];
    let value = match step.value {
        Value::Object(fields)
            if fields.contains_key("value")
                && fields.keys().all(|key| BESIDE.contains(&key.as_str())) =>
        {
            &fields["value"]
        }
        value => value,
    };
    masked(value)
}

fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) if is_mark(text) => "mark".into(),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), masked(value))).collect()
        }
        value => value.clone(),
    }
}

fn is_mark(text: &str) -> bool {
    text.starts_with("mark-")
}

/// The marks in a value.
pub(super) fn marks<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) if is_mark(text) => {
            found.insert(text);
        }
        Value::Array(items) => items.iter().for_each(|item| marks(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| marks(item, found)),
        _ => {}
    }
}

/// A value in one line.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

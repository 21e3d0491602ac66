//! Whether a value is what a model says.

use super::FieldType;
use super::schema::Models;
use crate::variables::shown;
use serde_json::{Map, Value};

/// How deep an answer is looked at.
const DEEPEST: usize = 64;
/// The most that is said of one answer.
const MOST: usize = 5;

/// Checks a value, and puts in the defaults of what it leaves out. The error says everything that is
/// wrong with it, in words for the model.
pub(super) fn complete(models: &Models, model: &str, value: Value) -> Result<Value, String> {
    let mut walk = Walk { models, wrong: Vec::new() };
    let ty = FieldType::Model(model.to_owned());
    let value = walk.typed("", &ty, value, 0);
    if walk.wrong.is_empty() {
        return Ok(value);
    }
    let more = walk.wrong.len().saturating_sub(MOST);
    walk.wrong.truncate(MOST);
    let mut said = walk.wrong.join("; ");
    if more > 0 {
        said.push_str(&format!("; and {more} more"));
    }
    Err(said)
}

pub(super) fn check(models: &Models, ty: &FieldType, value: &Value) -> Result<(), String> {
    let mut walk = Walk { models, wrong: Vec::new() };
    walk.typed("", ty, value.clone(), 0);
    match walk.wrong.into_iter().next() {
        Some(wrong) => Err(wrong),
        None => Ok(()),
    }
}

struct Walk<'m> {
    models: &'m Models,
    wrong: Vec<String>,
}

impl Walk<'_> {
    fn say(&mut self, at: &str, what: impl AsRef<str>) {
        let what = what.as_ref();
        self.wrong.push(match at {
            "" => format!("the answer {what}"),
            at => format!("`{at}` {what}"),
        });
    }

    fn typed(&mut self, at: &str, ty: &FieldType, value: Value, depth: usize) -> Value {
        if depth > DEEPEST {
            self.say(at, "is nested too deeply");
            return value;
        }
        match (ty, value) {
            (FieldType::List(items), Value::Array(list)) => {
                let list = list.into_iter().enumerate();
                let typed =
                    |(index, item)| self.typed(&format!("{at}[{index}]"), items, item, depth + 1);
                list.map(typed).collect()
            }
            (FieldType::Map(values), Value::Object(fields)) => {
                let typed = |(key, value): (String, Value)| {
                    let value = self.typed(&below(at, &key), values, value, depth + 1);
                    (key, value)
                };
                Value::Object(fields.into_iter().map(typed).collect())
            }
            (FieldType::Model(name), Value::Object(fields)) => {
                Value::Object(self.object(at, name, fields, depth))
            }
            (FieldType::Union(variants), value) => self.variant(at, variants, value, depth),
            (FieldType::Literal(values), value) => {
                if !values.contains(&value) {
                    let values: Vec<_> = values.iter().map(Value::to_string).collect();
                    let values = values.join(" or ");
                    self.say(at, format!("must be {values}, but is {}", shown(&value)));
                }
                value
            }
            (ty, value) => {
                if !is_of(ty, &value) {
                    self.say(at, format!("must be {}, but is {}", words(ty), shown(&value)));
                }
                value
            }
        }
    }

    fn object(
        &mut self,
        at: &str,
        name: &str,
        mut fields: Map<String, Value>,
        depth: usize,
    ) -> Map<String, Value> {
        let Some(model) = self.models.get(name) else { return fields };
        let below = |name: &str| below(at, name);
        let mut complete = Map::new();
        for field in &model.fields {
            let place = below(&field.name);
            let Some(value) = fields.remove(&field.name) else {
                if model.requires(field) {
                    self.say(&place, format!("is missing; it must be {}", words(&field.ty)));
                } else if let Some(default) = &field.default {
                    complete.insert(field.name.clone(), default.clone());
                }
                continue;
            };
            // What is not required may be said to be nothing.
            if value.is_null() && !model.requires(field) && !is_of(&field.ty, &value) {
                complete.insert(field.name.clone(), field.default.clone().unwrap_or_default());
                continue;
            }
            let allowed = &field.allowed_values;
            if !allowed.is_empty() && !allowed.contains(&value) {
                let allowed: Vec<_> = allowed.iter().map(Value::to_string).collect();
                let allowed = allowed.join(" or ");
                self.say(&place, format!("must be {allowed}, but is {}", shown(&value)));
                continue;
            }
            let value = self.typed(&place, &field.ty, value, depth + 1);
            complete.insert(field.name.clone(), value);
        }
        for unknown in fields.keys() {
            let known: Vec<_> = model.fields.iter().map(|it| format!("`{}`", it.name)).collect();
            let known = known.join(", ");
            self.say(&below(unknown), format!("is unknown; the fields of {name} are {known}"));
        }
        complete
    }

    /// Of several variants, the first that it is; else the one whose shape it has says best what is
    /// wrong with it.
    fn variant(&mut self, at: &str, variants: &[FieldType], value: Value, depth: usize) -> Value {
        let mut best: Option<Vec<String>> = None;
        for variant in variants {
            let mut walk = Walk { models: self.models, wrong: Vec::new() };
            let typed = walk.typed(at, variant, value.clone(), depth + 1);
            if walk.wrong.is_empty() {
                return typed;
            }
            if is_of(variant, &value)
                && best.as_ref().is_none_or(|best| walk.wrong.len() < best.len())
            {
                best = Some(walk.wrong);
            }
        }
        match best {
            Some(wrong) => self.wrong.extend(wrong),
            None => {
                let all: Vec<_> = variants.iter().map(words).collect();
                self.say(at, format!("must be {}, but is {}", all.join(" or "), shown(&value)));
            }
        }
        value
    }
}

/// The place of a field, from the place of what it is in.
fn below(at: &str, name: &str) -> String {
    match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    }
}

/// Whether a value has the shape of a type; what is in it is not looked at.
fn is_of(ty: &FieldType, value: &Value) -> bool {
    match ty {
        FieldType::Any => true,
        FieldType::Str => value.is_string(),
        FieldType::Int => {
            // A number is whole however it is written.
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        FieldType::Float => value.is_number(),
        FieldType::Bool => value.is_boolean(),
        FieldType::Null => value.is_null(),
        FieldType::List(_) => value.is_array(),
        FieldType::Dict | FieldType::Map(_) | FieldType::Model(_) => value.is_object(),
        FieldType::Literal(values) => values.contains(value),
        FieldType::Union(variants) => variants.iter().any(|it| is_of(it, value)),
    }
}

fn words(ty: &FieldType) -> String {
    match ty {
        FieldType::Any => "anything".to_owned(),
        FieldType::Str => "a text".to_owned(),
        FieldType::Int => "a whole number".to_owned(),
        FieldType::Float => "a number".to_owned(),
        FieldType::Bool => "true or false".to_owned(),
        FieldType::Null => "null".to_owned(),
        FieldType::Dict | FieldType::Map(_) => "an object".to_owned(),
        FieldType::List(_) => "a list".to_owned(),
        FieldType::Model(name) => format!("an object ({name})"),
        FieldType::Literal(values) => {
            values.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ")
        }
        FieldType::Union(variants) => variants.iter().map(words).collect::<Vec<_>>().join(" or "),
    }
}

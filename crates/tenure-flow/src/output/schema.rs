//! Models as JSON Schema, and what can be wrong with them.

use super::{FieldSpec, FieldType, ModelSpec, OutputsSpec};
use crate::variables::Problem;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The models by name.
pub(super) type Models = BTreeMap<String, ModelSpec>;

impl ModelSpec {
    /// Whether an answer has to have a field: what the field itself says, else what the model says,
    /// else whether it has no default.
    pub fn requires(&self, field: &FieldSpec) -> bool {
        field.required.unwrap_or_else(|| match &self.required {
            Some(required) => required.contains(&field.name),
            None => field.default.is_none(),
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<&FieldSpec> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// The schema of a model, with those that it is made of beside it.
pub(super) fn schema(models: &Models, root: &ModelSpec) -> Value {
    let mut schema = object(root);
    let mut needed = BTreeSet::new();
    reach(models, root, &mut needed);
    if !needed.is_empty() {
        let parts = needed
            .iter()
            .filter_map(|name| Some((name.clone(), Value::Object(object(models.get(name)?)))));
        schema.insert("$defs".to_owned(), Value::Object(parts.collect()));
    }
    Value::Object(schema)
}

/// The models that fields of a model name, and those of theirs.
fn reach(models: &Models, model: &ModelSpec, found: &mut BTreeSet<String>) {
    for field in &model.fields {
        named(&field.ty, &mut |name| {
            if found.insert(name.to_owned())
                && let Some(model) = models.get(name)
            {
                reach(models, model, found);
            }
        });
    }
}

fn named(ty: &FieldType, tell: &mut impl FnMut(&str)) {
    match ty {
        FieldType::Model(name) => tell(name),
        FieldType::List(inner) | FieldType::Map(inner) => named(inner, tell),
        FieldType::Union(variants) => variants.iter().for_each(|it| named(it, tell)),
        _ => {}
    }
}

fn object(model: &ModelSpec) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("title".to_owned(), json!(model.name));
    if let Some(description) = &model.description {
        schema.insert("description".to_owned(), json!(description));
    }
    schema.insert("type".to_owned(), json!("object"));
    let fields = model.fields.iter().map(|field| (field.name.clone(), property(field)));
    schema.insert("properties".to_owned(), Value::Object(fields.collect()));
    let required = model.fields.iter().filter(|field| model.requires(field));
    let required: Vec<_> = required.map(|field| field.name.as_str()).collect();
    schema.insert("required".to_owned(), json!(required));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

fn property(field: &FieldSpec) -> Value {
    let mut schema = typed(&field.ty);
    if let Value::Object(schema) = &mut schema {
        if !field.allowed_values.is_empty() {
            schema.insert("enum".to_owned(), json!(field.allowed_values));
        }
        if let Some(description) = &field.description {
            schema.insert("description".to_owned(), json!(description));
        }
        if let Some(default) = &field.default {
            schema.insert("default".to_owned(), default.clone());
        }
    }
    schema
}

fn typed(ty: &FieldType) -> Value {
    match ty {
        FieldType::Str => json!({ "type": "string" }),
        FieldType::Int => json!({ "type": "integer" }),
        FieldType::Float => json!({ "type": "number" }),
        FieldType::Bool => json!({ "type": "boolean" }),
        FieldType::Dict => json!({ "type": "object", "additionalProperties": true }),
        FieldType::Map(values) => {
            json!({ "type": "object", "additionalProperties": typed(values) })
        }
        FieldType::Null => json!({ "type": "null" }),
        FieldType::Any => json!({}),
        FieldType::List(items) => json!({ "type": "array", "items": typed(items) }),
        FieldType::Literal(values) => match values.iter().all(Value::is_string) {
            true => json!({ "type": "string", "enum": values }),
            false => json!({ "enum": values }),
        },
        FieldType::Union(variants) => {
            json!({ "anyOf": variants.iter().map(typed).collect::<Vec<_>>() })
        }
        FieldType::Model(name) => json!({ "$ref": format!("#/$defs/{name}") }),
    }
}

/// Everything that is wrong with the models and the registry. Agents that the registry names are the
/// loader's to check. The name of a problem is the model's, or the agent's.
pub fn check(spec: &OutputsSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut models = Models::new();
    for model in &spec.models {
        if FieldType::is_name(&model.name) {
            let message = format!("a model cannot be called `{}`, which is a type", model.name);
            problems.push(Problem::new(&model.name, "name", message, "call it something else"));
        }
        if models.insert(model.name.clone(), model.clone()).is_some() {
            let message = format!("the model `{}` is there twice", model.name);
            problems.push(Problem::new(&model.name, "name", message, "leave one of them out"));
        }
    }
    for model in &spec.models {
        check_model(model, &models, &mut problems);
    }
    if problems.is_empty() {
        check_ends(&models, &mut problems);
    }
    for (agent, model) in &spec.registry {
        if let Some(model) = model.as_ref().filter(|model| !models.contains_key(*model)) {
            let message = format!("agent `{agent}` answers with `{model}`, which is no model");
            problems.push(Problem::new(agent, "registry", message, near(model, &models)));
        }
    }
    problems
}

fn near(name: &str, models: &Models) -> String {
    let known: Vec<_> = models.keys().map(String::as_str).collect();
    let all = known.iter().chain(FieldType::names()).copied();
    match tenure_cards::nearest(name, all) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is no model".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    }
}

fn check_model(model: &ModelSpec, models: &Models, problems: &mut Vec<Problem>) {
    let name = &model.name;
    let mut wrong = |field: &'static str, message: String, help: String| {
        problems.push(Problem::new(name, field, message, help));
    };
    if model.fields.is_empty() {
        let message = format!("the model `{name}` has no fields");
        wrong("fields", message, "give it one at least".to_owned());
    }
    for (at, field) in model.fields.iter().enumerate() {
        let place = format!("`{name}.{}`", field.name);
        if model.fields[..at].iter().any(|earlier| earlier.name == field.name) {
            let message = format!("the field {place} is there twice");
            wrong("fields", message, "leave one of them out".to_owned());
        }
        named(&field.ty, &mut |other| {
            if !models.contains_key(other) {
                let message = format!("{place} is of the type `{other}`, which there is not");
                wrong("fields", message, near(other, models));
            }
        });
        if let Some(what) = empty(&field.ty) {
            let message = format!("{place} is {what}");
            let help = "literal takes `values`, union takes `variants`, one of each at least";
            wrong("fields", message, help.to_owned());
        }
        let fits = |value: &Value| super::value::check(models, &field.ty, value).is_ok();
        for value in field.default.iter().filter(|it| !it.is_null() && !fits(it)) {
            let message = format!("the default of {place} is {value}, which is not of its type");
            wrong("fields", message, "give it a default of its type".to_owned());
        }
        for value in field.allowed_values.iter().filter(|it| !fits(it)) {
            let message = format!("{place} allows {value}, which is not of its type");
            wrong("fields", message, "allow values of its type only".to_owned());
        }
    }
    for required in model.required.iter().flatten() {
        if model.field(required).is_none() {
            let message = format!("`{required}` is required of `{name}`, but is no field of it");
            let known = model.fields.iter().map(|field| field.name.as_str());
            let help = match tenure_cards::nearest(required, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "leave it out".to_owned(),
            };
            wrong("required", message, help);
        }
    }
}

fn empty(ty: &FieldType) -> Option<&'static str> {
    match ty {
        FieldType::Literal(values) if values.is_empty() => Some("a literal without values"),
        FieldType::Union(variants) if variants.is_empty() => Some("a union without variants"),
        FieldType::Union(variants) => variants.iter().find_map(empty),
        FieldType::List(inner) | FieldType::Map(inner) => empty(inner),
        _ => None,
    }
}

/// Finds models whose answers would have to be endless.
fn check_ends(models: &Models, problems: &mut Vec<Problem>) {
    fn ends(ty: &FieldType, known: &BTreeSet<&str>) -> bool {
        match ty {
            FieldType::Model(name) => known.contains(name.as_str()),
            FieldType::Union(variants) => variants.iter().any(|it| ends(it, known)),
            _ => true,
        }
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    loop {
        let before = known.len();
        for model in models.values() {
            let mut needed = model.fields.iter().filter(|field| model.requires(field));
            if needed.all(|field| ends(&field.ty, &known)) {
                known.insert(&model.name);
            }
        }
        if known.len() == before {
            break;
        }
    }
    for name in models.keys().filter(|name| !known.contains(name.as_str())) {
        let message = format!("an answer of the model `{name}` would never end: it needs itself");
        let help = "make the field a list or a union with null, or say required: false";
        problems.push(Problem::new(name, "fields", message, help));
    }
}

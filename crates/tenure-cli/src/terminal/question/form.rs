//! Input that has a form: a schema of plain fields is asked for field by field.

use super::super::style::{BOLD, DIM, WARN, paint};
use super::super::text::{clean_line, exact};
use super::person::Person;
use serde_json::{Map, Value};
use tenure_core::ask::{Misfit, check};

/// A form with more fields than these is not filled in by hand.
const MOST_FIELDS: usize = 40;

/// One field of a form.
#[derive(Debug, PartialEq)]
pub(super) struct Field {
    name: String,
    title: String,
    schema: Value,
    kind: Kind,
    is_required: bool,
}

/// What is typed into a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Number,
    YesOrNo,
    /// One of the choices.
    One,
    /// Any of the choices.
    Several,
}

/// What came of a form.
#[derive(Debug, PartialEq)]
pub(super) enum Filled {
    Value(Value),
    /// They do not want to fill it in, and why.
    Declined(String),
    /// They left.
    Left,
}

/// The fields of a schema, if it is a flat object: every property a plain value.
pub(super) fn fields_of(schema: &Value) -> Option<Vec<Field>> {
    let properties = schema.get("properties")?.as_object()?;
    let is_object = schema.get("type").is_none_or(|kind| kind == "object");
    if !is_object || properties.is_empty() || properties.len() > MOST_FIELDS {
        return None;
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
    let field = |(name, schema): (&String, &Value)| Field::new(name, schema, is_required(name));
    properties.iter().map(field).collect()
}

impl Field {
    /// The field that a schema describes, if it is a plain value.
    pub(super) fn new(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("array") if !choices(schema.get("items")?).is_empty() => Kind::Several,
            _ if !choices(schema).is_empty() => Kind::One,
            Some("string") => Kind::Text,
            Some("integer" | "number") => Kind::Number,
            Some("boolean") => Kind::YesOrNo,
            _ => return None,
        };
        let title = schema.get("title").and_then(Value::as_str).unwrap_or(name);
        let (name, schema) = (name.to_owned(), schema.clone());
        Some(Self { name, title: clean_line(title), schema, kind, is_required })
    }

    fn choices(&self) -> Vec<(Value, String)> {
        match self.kind {
            Kind::Several => self.schema.get("items").map(choices).unwrap_or_default(),
            _ => choices(&self.schema),
        }
    }

    fn default(&self) -> Option<&Value> {
        self.schema.get("default").filter(|value| check(&self.schema, value).is_ok())
    }

    /// What the field is about, and what is typed behind it.
    fn ask(&self) -> String {
        let mut text = String::new();
        let about = self.schema.get("description").and_then(Value::as_str);
        if let Some(about) = about {
            text.push_str(&format!("  {}\n", paint(DIM, clean_line(about))));
        }
        for (at, (_, label)) in self.choices().iter().enumerate() {
            text.push_str(&format!("    {}  {}\n", paint(BOLD, at + 1), exact(label)));
        }
        let how = match self.kind {
            Kind::YesOrNo => " (y/n)",
            Kind::Several => " (numbers, separated by commas)",
            Kind::One => " (a number)",
            Kind::Number | Kind::Text => "",
        };
        let otherwise = match self.default() {
            Some(value) if matches!(self.kind, Kind::One | Kind::Several) => {
                format!(" [{}]", self.named(value))
            }
            Some(Value::String(text)) => format!(" [{}]", exact(text)),
            Some(Value::Bool(yes)) => format!(" [{}]", if *yes { "y" } else { "n" }),
            Some(value) => format!(" [{}]", exact(&value.to_string())),
            None if self.is_required => String::new(),
            None => " (Enter leaves it out)".to_owned(),
        };
        let (title, rest) = (paint(BOLD, &self.title), format!("{how}{otherwise}"));
        text.push_str(&format!("  {title}{}: ", paint(DIM, rest)));
        text
    }

    /// A value that was chosen, as the choices show it: `1 Bern`.
    fn named(&self, value: &Value) -> String {
        let choices = self.choices();
        let one = |value: &Value| match choices.iter().position(|(it, _)| it == value) {
            Some(at) => format!("{} {}", at + 1, exact(&choices[at].1)),
            None => exact(&value.to_string()),
        };
        match (self.kind, value) {
            (Kind::Several, Value::Array(values)) if values.is_empty() => "none".to_owned(),
            (Kind::Several, Value::Array(values)) => {
                values.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            _ => one(value),
        }
    }

    /// What was typed, as a value; `None` if it is left out.
    fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let trimmed = typed.trim();
        if trimmed.is_empty() {
            return match self.default() {
                Some(value) => Ok(Some(value.clone())),
                None if self.is_required => Err("this needs an answer".to_owned()),
                None => Ok(None),
            };
        }
        let value = match self.kind {
            Kind::Text => Value::from(typed),
            Kind::Number => match serde_json::from_str::<Value>(trimmed) {
                Ok(value) if value.is_number() => value,
                _ => return Err(format!("`{}` is not a number", clean_line(trimmed))),
            },
            Kind::YesOrNo => match trimmed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Value::Bool(true),
                "n" | "no" | "false" => Value::Bool(false),
                _ => return Err("please answer y or n".to_owned()),
            },
            Kind::One => self.chosen(trimmed)?,
            Kind::Several => {
                let chosen = trimmed.split(',').map(str::trim).filter(|it| !it.is_empty());
                chosen.map(|it| self.chosen(it)).collect::<Result<Vec<_>, _>>()?.into()
            }
        };
        check(&self.schema, &value).map_err(|misfit| misfit.to_string())?;
        Ok(Some(value))
    }

    /// A choice by its number, else by its name.
    fn chosen(&self, typed: &str) -> Result<Value, String> {
        let choices = self.choices();
        let number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let by_number = number.and_then(|at| choices.get(at));
        let by_name = || choices.iter().find(|(_, label)| label == typed);
        match by_number.or_else(by_name) {
            Some((value, _)) => Ok(value.clone()),
            None => Err(format!("please answer a number from 1 to {}", choices.len())),
        }
    }
}

/// What a schema lets one choose from, with the names that people read.
fn choices(schema: &Value) -> Vec<(Value, String)> {
    let label = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names = schema.get("enumNames").and_then(Value::as_array);
        let named = |at: usize| names?.get(at)?.as_str().map(str::to_owned);
        let choice = |(at, value): (usize, &Value)| {
            (value.clone(), named(at).unwrap_or_else(|| label(value)))
        };
        return values.iter().enumerate().map(choice).collect();
    }
    let options = ["oneOf", "anyOf"].into_iter().find_map(|name| schema.get(name)?.as_array());
    let titled = options.into_iter().flatten().map(|option| {
        let value = option.get("const")?;
        let title = option.get("title").and_then(Value::as_str).map(str::to_owned);
        Some((value.clone(), title.unwrap_or_else(|| label(value))))
    });
    // One that is no constant makes it something else than a choice.
    titled.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// What declines a question that is not a choice.
const DECLINE: &str = "/reject";
pub(super) const HOW_TO_DECLINE: &str = "  (/reject declines)\n";

/// The reason, if what was typed declines.
pub(super) fn declined(typed: &str) -> Option<String> {
    let rest = typed.trim().strip_prefix(DECLINE)?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    Some(super::reason(rest))
}

/// Asks for one value until it is one.
pub(super) async fn ask_for<P: Person>(field: &Field, person: &mut P) -> Filled {
    loop {
        person.say(&field.ask());
        let Some(typed) = person.line().await else { return Filled::Left };
        if let Some(reason) = declined(&typed) {
            return Filled::Declined(reason);
        }
        match field.read(&typed) {
            Ok(Some(value)) => return Filled::Value(value),
            Ok(None) => return Filled::Value(Value::Null),
            Err(why) => person.say(&format!("{}\n", paint(WARN, format_args!("  {why}")))),
        }
    }
}

/// Asks for each field, and for all of them again if they do not fit together.
pub(super) async fn fill<P: Person>(fields: &[Field], schema: &Value, person: &mut P) -> Filled {
    loop {
        let mut object = Map::new();
        for field in fields {
            match ask_for(field, person).await {
                Filled::Value(Value::Null) => {}
                Filled::Value(value) => {
                    object.insert(field.name.clone(), value);
                }
                ended => return ended,
            }
        }
        let object = Value::Object(object);
        match check(schema, &object) {
            Ok(()) => return Filled::Value(object),
            Err(misfit) => complain(person, &misfit),
        }
    }
}

/// Asks for a line that fits, where a form cannot be made of the schema.
pub(super) async fn one_line<P: Person>(schema: Option<&Value>, person: &mut P) -> Filled {
    loop {
        person.say(&format!("  {} ", paint(BOLD, "your answer:")));
        let Some(typed) = person.line().await else { return Filled::Left };
        if let Some(reason) = declined(&typed) {
            return Filled::Declined(reason);
        }
        if typed.trim().is_empty() {
            match schema.and_then(|schema| schema.get("default")) {
                Some(default) => return Filled::Value(default.clone()),
                None => person.say("  this needs an answer\n"),
            }
            continue;
        }
        match schema.map_or(Ok(()), |schema| tenure_core::ask::check_text(schema, &typed)) {
            Ok(()) => return Filled::Value(Value::from(typed)),
            Err(misfit) => complain(person, &misfit),
        }
    }
}

fn complain<P: Person>(person: &mut P, misfit: &Misfit) {
    let said = clean_line(&misfit.to_string());
    person.say(&format!("{}\n", paint(WARN, format_args!("  {said}"))));
}

//! Whether arguments are what a tool's schema says, in words that a model can read, and how they are
//! written to a worker.
//!
//! It knows what the schema of a Python function has: types, `properties`, `required`,
//! `additionalProperties`, `items`, `prefixItems`, `enum`, `anyOf` and `$ref` to `$defs`. What it
//! does not know takes anything.

use crate::reply::found;
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;
use tenure_core::tool::LongIntegers;

/// The most references that lead to one another without a type between them.
const REFERENCES: usize = 16;

/// A place in the arguments.
#[derive(Clone, Copy)]
enum Place<'a> {
    Arguments,
    Key(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments => Ok(()),
            Self::Key(Self::Arguments, key) => f.write_str(key),
            Self::Key(outer, key) => write!(f, "{outer}.{key}"),
            Self::Item(outer, at) => write!(f, "{outer}[{at}]"),
        }
    }
}

/// Checks the arguments of a call and gives their JSON where it is another than that of the value:
/// where 64 bits do not hold a number of `text`, which is what the model wrote, and where a number is
/// written as one of another type than the schema has. The error says what is wrong with the first
/// argument that is.
pub(super) fn checked(
    schema: &Value,
    arguments: &Value,
    text: &str,
) -> Result<Option<String>, String> {
    let reader = Reader { definitions: schema.get("$defs"), restyled: Cell::new(false) };
    reader.check_at(Place::Arguments, schema, arguments)?;
    let long = LongIntegers::of(text);
    if long.is_none() && !reader.restyled.get() {
        return Ok(None);
    }
    let mut json = String::with_capacity(text.len());
    reader.write(schema, arguments, long.as_ref(), &mut json);
    Ok(Some(json))
}

/// A schema that is read beside a value.
struct Reader<'s> {
    definitions: Option<&'s Value>,
    /// Whether a number is of another type than the schema has.
    restyled: Cell<bool>,
}

/// The type of number that a schema has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numeral {
    Integer,
    Float,
    Either,
}

impl<'s> Reader<'s> {
    /// The schema that a reference leads to, or the schema itself.
    fn meant(&self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..REFERENCES {
            let Some(name) = schema.get("$ref").and_then(Value::as_str) else { break };
            let name = name.strip_prefix("#/$defs/").unwrap_or_default();
            match self.definitions.and_then(|all| all.get(name)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }

    fn check_at(&self, place: Place<'_>, schema: &'s Value, value: &Value) -> Result<(), String> {
        // A default is good, whatever its type: the function itself has it.
        if schema.get("default") == Some(value) {
            return Ok(());
        }
        let schema = self.meant(schema);
        if let Some(Value::Array(any)) = schema.get("anyOf") {
            if let Value::Number(number) = value {
                self.see(schema, number);
            }
            let restyled = self.restyled.get();
            // Of several, the one whose type it has says best what is wrong with it.
            let mut of_its_type =
                any.iter().filter(|it| has_type(self.meant(it), value)).peekable();
            if of_its_type.peek().is_none() {
                return Err(self.wrong(place, schema, value));
            }
            let tried: Vec<_> = of_its_type.map(|it| self.check_at(place, it, value)).collect();
            // A number is of the type of all that it may be, not of each.
            self.restyled.set(restyled || !value.is_number() && self.restyled.get());
            if tried.iter().any(Result::is_ok) {
                return Ok(());
            }
            return tried.into_iter().next().unwrap_or(Ok(()));
        }
        let is_listed =
            schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value));
        if !is_listed || !has_type(schema, value) {
            return Err(self.wrong(place, schema, value));
        }
        match value {
            Value::Object(object) => self.check_object(place, schema, object),
            Value::Array(list) => self.check_list(place, schema, list),
            Value::Number(number) => {
                self.see(schema, number);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Remembers a number that has to be written as one of another type.
    fn see(&self, schema: &'s Value, number: &Number) {
        let other = match self.numeral(schema) {
            Numeral::Integer => number.is_f64(),
            Numeral::Float => !number.is_f64(),
            Numeral::Either => false,
        };
        if other {
            self.restyled.set(true);
        }
    }

    fn numeral(&self, schema: &'s Value) -> Numeral {
        let schema = self.meant(schema);
        match schema.get("type").and_then(Value::as_str) {
            Some("integer") => return Numeral::Integer,
            Some("number") => return Numeral::Float,
            _ => {}
        }
        let any = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        let mut others = any.filter(|it| self.meant(it).get("type") != Some(&"null".into()));
        match (others.next(), others.next()) {
            (Some(one), None) => self.numeral(one),
            _ => Numeral::Either,
        }
    }

    /// Writes a value as JSON, each number as one of the type that the schema has.
    fn write(
        &self,
        schema: &'s Value,
        value: &Value,
        long: Option<&LongIntegers<'_>>,
        json: &mut String,
    ) {
        let schema = self.chosen(schema, value);
        match value {
            Value::Number(number) => {
                let digits = long.and_then(|long| long.digits(number));
                json.push_str(&match (self.numeral(schema), digits, number.as_f64()) {
                    (Numeral::Float, _, Some(float)) => Value::from(float).to_string(),
                    (_, Some(digits), _) => digits.to_owned(),
                    (Numeral::Integer, None, Some(whole)) if number.is_f64() => {
                        format!("{whole:.0}")
                    }
                    _ => number.to_string(),
                });
            }
            Value::Object(fields) => {
                json.push('{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    json.push_str(if at == 0 { "" } else { "," });
                    json.push_str(&Value::from(key.as_str()).to_string());
                    json.push(':');
                    let schema = of_key(schema, key).unwrap_or(&Value::Null);
                    self.write(schema, value, long.and_then(|long| long.key(key)), json);
                }
                json.push('}');
            }
            Value::Array(items) => {
                json.push('[');
                for (at, item) in items.iter().enumerate() {
                    json.push_str(if at == 0 { "" } else { "," });
                    let schema = of_item(schema, at).unwrap_or(&Value::Null);
                    self.write(schema, item, long.and_then(|long| long.item(at)), json);
                }
                json.push(']');
            }
            other => json.push_str(&other.to_string()),
        }
    }

    /// Of several schemas, the first that the value fits; for a number it is all of them.
    fn chosen(&self, schema: &'s Value, value: &Value) -> &'s Value {
        let schema = self.meant(schema);
        let any = schema.get("anyOf").and_then(Value::as_array).filter(|_| !value.is_number());
        let fits = |it: &&Value| self.check_at(Place::Arguments, it, value).is_ok();
        any.and_then(|any| any.iter().find(fits)).map_or(schema, |it| self.chosen(it, value))
    }

    fn check_object(
        &self,
        place: Place<'_>,
        schema: &'s Value,
        object: &Map<String, Value>,
    ) -> Result<(), String> {
        for key in names(schema.get("required")) {
            if !object.contains_key(key) {
                let must = of_key(schema, key).map(|it| self.expected(it));
                let must = must.filter(|it| !it.is_empty());
                let must = must.map(|must| format!("; it must be {must}")).unwrap_or_default();
                return Err(format!("argument `{}` is missing{must}", Place::Key(&place, key)));
            }
        }
        for (key, value) in object {
            let at = Place::Key(&place, key);
            match of_key(schema, key) {
                Some(Value::Bool(false)) => {
                    let properties = schema.get("properties").and_then(Value::as_object);
                    let known: Vec<_> = properties
                        .into_iter()
                        .flat_map(Map::keys)
                        .map(|it| format!("`{it}`"))
                        .collect();
                    let known = match known.is_empty() {
                        true => "there are none".to_owned(),
                        false => format!("there are {}", known.join(", ")),
                    };
                    return Err(format!("argument `{at}` is unknown; {known}"));
                }
                Some(schema) => self.check_at(at, schema, value)?,
                None => {}
            }
        }
        Ok(())
    }

    fn check_list(
        &self,
        place: Place<'_>,
        schema: &'s Value,
        list: &[Value],
    ) -> Result<(), String> {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let size = list.len() as u64;
        if bound("minItems").is_some_and(|least| size < least)
            || bound("maxItems").is_some_and(|most| size > most)
        {
            let of = match (bound("minItems"), bound("maxItems")) {
                (Some(least), Some(most)) if least == most => format!("{least}"),
                (Some(least), Some(most)) => format!("{least} to {most}"),
                (Some(least), None) => format!("at least {least}"),
                (None, most) => format!("at most {}", most.unwrap_or_default()),
            };
            return Err(format!("argument `{place}` must be a list of {of}, but is one of {size}"));
        }
        for (at, value) in list.iter().enumerate() {
            if let Some(schema) = of_item(schema, at) {
                self.check_at(Place::Item(&place, at), schema, value)?;
            }
        }
        Ok(())
    }

    fn wrong(&self, place: Place<'_>, schema: &'s Value, value: &Value) -> String {
        let (must, is) = (self.expected(schema), found(value));
        match place {
            Place::Arguments => format!("the arguments must be {must}, but are {is}"),
            place => format!("argument `{place}` must be {must}, but is {is}"),
        }
    }

    /// What a schema takes, in words; empty if it takes anything.
    fn expected(&self, schema: &'s Value) -> String {
        let schema = self.meant(schema);
        if let Some(Value::Array(any)) = schema.get("anyOf") {
            let mut words: Vec<_> = any.iter().map(|it| self.expected(it)).collect();
            words.dedup();
            return words.join(" or ");
        }
        if let Some(Value::Array(all)) = schema.get("enum") {
            return all.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
        }
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let words = match (text("type"), text("format")) {
            (Some("null"), _) => "null",
            (Some("boolean"), _) => "true or false",
            (Some("string"), Some("date")) => "a date such as 2026-01-31",
            (Some("string"), Some("date-time")) => "a date and time such as 2026-01-31T09:30:00Z",
            (Some("string"), Some("time")) => "a time such as 09:30:00",
            (Some("string"), Some("duration")) => "a duration such as P1DT2H30M",
            (Some("string"), Some("uuid")) => "a UUID",
            (Some("string"), Some("path")) => "a path",
            (Some("string"), _) => "a text",
            (Some("number"), _) => "a number",
            (Some("integer"), _) => "an integer",
            (Some("array"), _) => "a list",
            (Some("object"), _) => "an object",
            _ => "",
        };
        words.to_owned()
    }
}

/// The schema of a key of an object.
fn of_key<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let own = schema.get("properties").and_then(|all| all.get(key));
    own.or_else(|| schema.get("additionalProperties"))
}

/// The schema of an item of a list.
fn of_item(schema: &Value, at: usize) -> Option<&Value> {
    let own = schema.get("prefixItems").and_then(|first| first.get(at));
    own.or_else(|| schema.get("items"))
}

fn has_type(schema: &Value, value: &Value) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => {
            // A number is whole however it is written.
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    }
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests;

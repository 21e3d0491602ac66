//! Defaults, as JSON says them.

use super::super::files::Parsed;
use super::name::Meaning;
use super::{DEPTH, Types};
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::{Expr, Number, UnaryOp};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A literal as JSON, if it is one that JSON has.
pub(in super::super) fn literal(expr: &Expr) -> Option<Value> {
    literal_at(expr, DEPTH)
}

fn literal_at(expr: &Expr, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let all = |items: &[Expr]| -> Option<Value> {
        items
            .iter()
            .map(|item| literal_at(item, depth))
            .collect::<Option<Vec<_>>>()
            .map(Value::from)
    };
    match expr {
        Expr::NoneLiteral(_) => Some(Value::Null),
        Expr::BooleanLiteral(it) => Some(it.value.into()),
        Expr::StringLiteral(it) => Some(it.value.to_str().into()),
        Expr::NumberLiteral(it) => match &it.value {
            Number::Int(int) => int.as_i64().map(Value::from),
            Number::Float(float) => serde_json::Number::from_f64(*float).map(Value::Number),
            Number::Complex { .. } => None,
        },
        Expr::UnaryOp(it) if it.op == UnaryOp::USub => match literal_at(&it.operand, depth)? {
            Value::Number(number) => match number.as_i64() {
                Some(int) => Some((-int).into()),
                None => serde_json::Number::from_f64(-number.as_f64()?).map(Value::Number),
            },
            _ => None,
        },
        Expr::List(it) => all(&it.elts),
        Expr::Tuple(it) => all(&it.elts),
        Expr::Set(it) => all(&it.elts),
        Expr::Dict(it) => {
            let mut map = Map::new();
            for item in &it.items {
                let Expr::StringLiteral(key) = item.key.as_ref()? else { return None };
                map.insert(key.value.to_str().to_owned(), literal_at(&item.value, depth)?);
            }
            Some(Value::Object(map))
        }
        _ => None,
    }
}

impl Types<'_> {
    /// A default as a model would write it; `None` if only running the file would show it.
    pub(in super::super) fn default(&mut self, file: &Arc<Parsed>, expr: &Expr) -> Option<Value> {
        match expr {
            Expr::BytesLiteral(it) => {
                let bytes: Vec<u8> = it.value.bytes().collect();
                String::from_utf8(bytes).ok().map(Value::from)
            }
            Expr::Attribute(_) => self.member_of(file, expr),
            Expr::Call(call) => match self.meaning(file, &call.func) {
                Meaning::Library(path) => made(&path, &call.arguments),
                _ => None,
            },
            other => literal(other),
        }
    }
}

/// What a call with literals makes, in the form in which it would be given.
fn made(path: &str, arguments: &ast::Arguments) -> Option<Value> {
    let given: Option<Vec<Value>> = arguments.args.iter().map(literal).collect();
    let given = given?;
    let number = |at: usize| given.get(at).map_or(Some(0), Value::as_u64);
    let text = || given.first().and_then(Value::as_str);
    if path == "datetime.timedelta" && given.is_empty() {
        return duration(arguments).map(Value::from);
    }
    if !arguments.keywords.is_empty() {
        return None;
    }
    Some(match (path, given.len()) {
        ("decimal.Decimal" | "uuid.UUID", 1) => text()?.into(),
        ("decimal.Decimal", _) => return None,
        (path, 1) if path.starts_with("pathlib.") => text()?.into(),
        ("datetime.date", 3) => {
            format!("{:04}-{:02}-{:02}", number(0)?, number(1)?, number(2)?).into()
        }
        ("datetime.datetime", 3..=6) => format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            number(0)?,
            number(1)?,
            number(2)?,
            number(3)?,
            number(4)?,
            number(5)?
        )
        .into(),
        ("datetime.time", 1..=3) => {
            format!("{:02}:{:02}:{:02}", number(0)?, number(1)?, number(2)?).into()
        }
        ("builtins.set" | "builtins.frozenset" | "builtins.tuple" | "builtins.list", 0) => {
            Value::Array(Vec::new())
        }
        ("builtins.set" | "builtins.frozenset" | "builtins.tuple" | "builtins.list", 1) => {
            given.into_iter().next().filter(Value::is_array)?
        }
        ("builtins.dict", 0) => Value::Object(Map::new()),
        _ => return None,
    })
}

/// `timedelta(days=1, hours=2)` as ISO 8601 has it.
fn duration(arguments: &ast::Arguments) -> Option<String> {
    let units =
        [("weeks", 604_800), ("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)];
    let mut seconds = 0u64;
    for keyword in &arguments.keywords {
        let (_, unit) = units
            .iter()
            .find(|(name, _)| keyword.arg.as_ref().is_some_and(|it| it.as_str() == *name))?;
        seconds = seconds.checked_add(literal(&keyword.value)?.as_u64()?.checked_mul(*unit)?)?;
    }
    let part = |amount: u64, letter: char| match amount {
        0 => String::new(),
        amount => format!("{amount}{letter}"),
    };
    let days = part(seconds / 86_400, 'D');
    let (hours, minutes) = (part(seconds / 3_600 % 24, 'H'), part(seconds / 60 % 60, 'M'));
    let clock = format!("{hours}{minutes}{}", part(seconds % 60, 'S'));
    Some(match (days.is_empty(), clock.is_empty()) {
        (true, true) => "PT0S".to_owned(),
        (_, true) => format!("P{days}"),
        _ => format!("P{days}T{clock}"),
    })
}

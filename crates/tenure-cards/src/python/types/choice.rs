//! Enumerations and literals.

use super::super::files::Parsed;
use super::class::Lineage;
use super::name::Meaning;
use super::shape::enumeration;
use super::{Annotation, Types, known, literal};
use rustpython_ruff_python_ast::{Expr, Stmt};
use serde_json::{Value, json};
use std::sync::Arc;

/// A member of an enumeration: its name, and what JSON says for its value if that can be known.
type Member = (String, Option<Value>);

impl Types<'_> {
    /// The schema of an enumeration: the values of its members. Where one has a value that JSON does
    /// not have, or that only running the file would show, it is their names.
    pub(super) fn enumeration(&self, lineage: &Lineage) -> Value {
        if lineage.has("enum.Flag") || lineage.has("enum.IntFlag") {
            return json!({ "type": "integer" });
        }
        let told = members(lineage).into_iter().map(|(name, value)| (Value::from(name), value));
        let (names, values): (Vec<_>, Vec<_>) = told.unzip();
        let values = values.into_iter().collect::<Option<Vec<_>>>();
        let mut told = values.unwrap_or(names);
        told.dedup();
        enumeration(told)
    }

    /// What JSON says for the member of an enumeration, as `Size.BIG`.
    pub(super) fn member_of(&mut self, file: &Arc<Parsed>, expr: &Expr) -> Option<Value> {
        let Expr::Attribute(it) = expr else { return None };
        let Meaning::Class(file, class) = self.meaning(file, &it.value) else { return None };
        let lineage = self.lineage(&file, &class);
        let members = lineage.is_enum().then(|| members(&lineage))?;
        let told = members.iter().all(|(_, value)| value.is_some());
        let (name, value) = members.into_iter().find(|(name, _)| it.attr == *name)?;
        if told { value } else { Some(name.into()) }
    }

    /// The schema of `Literal["a", 3, Size.BIG]`.
    pub(super) fn literal_of(&mut self, at: Annotation<'_>, choices: &[&Expr]) -> Value {
        let told: Option<Vec<_>> =
            choices.iter().map(|it| literal(it).or_else(|| self.member_of(at.file, it))).collect();
        told.map_or(json!({}), enumeration)
    }
}

fn members(lineage: &Lineage) -> Vec<Member> {
    // A value is not what is assigned if the class makes it.
    let makes = ["__new__", "_generate_next_value_"].iter().any(|it| lineage.defines(it));
    let mixed = lineage.has("builtins.str");
    let text = lineage.has("enum.StrEnum");
    let mut members: Vec<Member> = Vec::new();
    let mut count = 0;
    for statement in lineage.statements() {
        let (target, value) = match statement {
            Stmt::Assign(it) => match it.targets.as_slice() {
                [Expr::Name(name)] => (name, &*it.value),
                _ => continue,
            },
            Stmt::AnnAssign(it) => match (&*it.target, &it.value) {
                (Expr::Name(name), Some(value)) => (name, &**value),
                _ => continue,
            },
            _ => continue,
        };
        let name = target.id.as_str();
        if name.starts_with('_') || matches!(value, Expr::Lambda(_)) {
            continue;
        }
        let is_auto = matches!(value, Expr::Call(call)
            if super::super::module::last_name(&call.func) == Some("auto"));
        let told = match literal(value) {
            _ if makes => None,
            Some(value) if value.is_object() || value.is_array() => None,
            Some(value) => {
                count = value.as_i64().unwrap_or(count);
                Some(value)
            }
            None if is_auto && text => Some(name.to_lowercase().into()),
            None if is_auto && !mixed => {
                count += 1;
                Some(count.into())
            }
            None => None,
        };
        // Another name for a member is none of its own.
        let is_alias = matches!(value, Expr::Name(other)
            if members.iter().any(|(name, _)| other.id == *name));
        let is_twin = told.is_some() && members.iter().any(|(_, value)| *value == told);
        if !is_alias && !is_twin {
            members.push((name.to_owned(), told));
        }
    }
    members
}

/// Whether a path is one of the enumerations that others are made of.
pub(super) fn is_enum(path: &str) -> bool {
    path.strip_prefix("enum.").is_some_and(|_| {
        matches!(
            known::short(path),
            "Enum" | "IntEnum" | "StrEnum" | "Flag" | "IntFlag" | "ReprEnum"
        )
    })
}

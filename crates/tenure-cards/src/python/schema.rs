//! The JSON Schema that an annotation stands for.
//!
//! What is not known becomes `{}`, which takes anything: a wrong guess would refuse good arguments.

use super::module::{Binding, Module};
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::{Expr, Number, Operator, Stmt, UnaryOp};
use rustpython_ruff_python_parser::parse_expression;
use serde_json::{Map, Value, json};

/// How deeply annotations may refer to each other.
const DEPTH: usize = 12;

/// An annotation's schema and the description that `Annotated` gives.
pub(super) fn annotation(expr: &Expr, module: &Module) -> (Value, Option<String>) {
    let mut description = None;
    let schema = Reader { module }.schema(expr, DEPTH, &mut description);
    (schema, description)
}

/// A literal as JSON, if it is one that JSON has.
pub(super) fn literal(expr: &Expr) -> Option<Value> {
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

struct Reader<'a> {
    module: &'a Module,
}

impl Reader<'_> {
    fn schema(&self, expr: &Expr, depth: usize, description: &mut Option<String>) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return json!({}) };
        match expr {
            Expr::NoneLiteral(_) => json!({ "type": "null" }),
            Expr::Name(name) => self.named(name.id.as_str(), depth),
            Expr::Attribute(attribute) => plain(attribute.attr.as_str()).unwrap_or(json!({})),
            Expr::StringLiteral(text) => match parse_expression(text.value.to_str()) {
                Ok(parsed) if text.value.to_str().len() < 500 => {
                    self.schema(&parsed.syntax().body, depth, description)
                }
                _ => json!({}),
            },
            Expr::BinOp(it) if it.op == Operator::BitOr => {
                let mut ignored = None;
                any_of([
                    self.schema(&it.left, depth, &mut ignored),
                    self.schema(&it.right, depth, &mut ignored),
                ])
            }
            Expr::Subscript(it) => self.subscript(it, depth, description),
            _ => json!({}),
        }
    }

    fn named(&self, name: &str, depth: usize) -> Value {
        if let Some(schema) = plain(name) {
            return schema;
        }
        match self.module.binding(name) {
            Some(Binding::Class(class)) => self.class(class, depth),
            Some(Binding::Value(value)) => self.schema(value, depth, &mut None),
            _ => json!({}),
        }
    }

    fn subscript(
        &self,
        it: &ast::ExprSubscript,
        depth: usize,
        description: &mut Option<String>,
    ) -> Value {
        let base = match &*it.value {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return json!({}),
        };
        let arguments: Vec<&Expr> = match &*it.slice {
            Expr::Tuple(tuple) => tuple.elts.iter().collect(),
            one => vec![one],
        };
        let inner = |at: usize| match arguments.get(at) {
            Some(argument) => self.schema(argument, depth, &mut None),
            None => json!({}),
        };
        match base {
            "list" | "List" | "Sequence" | "Iterable" | "Collection" | "MutableSequence" => {
                json!({ "type": "array", "items": inner(0) })
            }
            "set" | "Set" | "frozenset" | "FrozenSet" | "AbstractSet" => {
                json!({ "type": "array", "items": inner(0), "uniqueItems": true })
            }
            "tuple" | "Tuple" => match arguments.as_slice() {
                [_, Expr::EllipsisLiteral(_)] => json!({ "type": "array", "items": inner(0) }),
                all => {
                    let items: Vec<Value> = (0..all.len()).map(inner).collect();
                    json!({ "type": "array", "prefixItems": items,
                            "minItems": all.len(), "maxItems": all.len() })
                }
            },
            "dict" | "Dict" | "Mapping" | "MutableMapping" => {
                json!({ "type": "object", "additionalProperties": inner(1) })
            }
            "Optional" => any_of([inner(0), json!({ "type": "null" })]),
            "Union" => any_of((0..arguments.len()).map(inner)),
            "Literal" => enumeration(arguments.iter().filter_map(|it| literal(it)).collect()),
            "Annotated" => {
                *description = arguments.iter().skip(1).find_map(|note| said(note));
                inner(0)
            }
            "Final" | "Required" | "NotRequired" | "ReadOnly" => inner(0),
            _ => json!({}),
        }
    }

    /// A TypedDict, a dataclass, a model or an enumeration of the same file.
    fn class(&self, class: &ast::StmtClassDef, depth: usize) -> Value {
        let bases: Vec<&str> = class
            .arguments
            .iter()
            .flat_map(|arguments| arguments.args.iter())
            .filter_map(last_name)
            .collect();
        if bases.iter().any(|base| matches!(*base, "Enum" | "StrEnum" | "IntEnum")) {
            let values = class.body.iter().filter_map(|statement| match statement {
                Stmt::Assign(assign) => literal(&assign.value),
                _ => None,
            });
            return enumeration(values.collect());
        }
        let is_typed_dict = bases.contains(&"TypedDict");
        let is_model = bases.contains(&"BaseModel");
        let is_dataclass = class.decorator_list.iter().any(|decorator| {
            let called = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            last_name(called) == Some("dataclass")
        });
        if !(is_typed_dict || is_model || is_dataclass) {
            return json!({});
        }
        let partial = class.arguments.iter().flat_map(|it| it.keywords.iter()).any(|keyword| {
            keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == "total")
                && matches!(&keyword.value, Expr::BooleanLiteral(it) if !it.value)
        });
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for statement in &class.body {
            let Stmt::AnnAssign(field) = statement else { continue };
            let Expr::Name(name) = &*field.target else { continue };
            let mut description = None;
            let mut schema = self.schema(&field.annotation, depth, &mut description);
            if let (Some(said), Value::Object(map)) = (description, &mut schema) {
                map.insert("description".into(), said.into());
            }
            let optional = matches!(&*field.annotation, Expr::Subscript(it)
                if last_name(&it.value) == Some("NotRequired"));
            if field.value.is_none() && !partial && !optional {
                required.push(Value::from(name.id.as_str()));
            }
            properties.insert(name.id.to_string(), schema);
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if let (false, Value::Object(map)) = (required.is_empty(), &mut schema) {
            map.insert("required".into(), required.into());
        }
        schema
    }
}

fn plain(name: &str) -> Option<Value> {
    Some(match name {
        "str" | "Path" | "datetime" | "date" | "UUID" => json!({ "type": "string" }),
        "int" => json!({ "type": "integer" }),
        "float" => json!({ "type": "number" }),
        "bool" => json!({ "type": "boolean" }),
        "None" | "NoneType" => json!({ "type": "null" }),
        "list" | "List" | "tuple" | "Tuple" | "Sequence" => json!({ "type": "array" }),
        "set" | "Set" | "frozenset" => json!({ "type": "array", "uniqueItems": true }),
        "dict" | "Dict" | "Mapping" => json!({ "type": "object" }),
        "Any" | "object" => json!({}),
        _ => return None,
    })
}

/// What an argument of `Annotated` says: a text, or `Field(description="...")`.
fn said(note: &Expr) -> Option<String> {
    match note {
        Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
        Expr::Call(call) => call.arguments.keywords.iter().find_map(|keyword| {
            let is_description =
                keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == "description");
            match &keyword.value {
                Expr::StringLiteral(text) if is_description => Some(text.value.to_str().to_owned()),
                _ => None,
            }
        }),
        _ => None,
    }
}

fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Subscript(it) => last_name(&it.value),
        _ => None,
    }
}

fn any_of(schemas: impl IntoIterator<Item = Value>) -> Value {
    let mut flat: Vec<Value> = Vec::new();
    for mut schema in schemas {
        let inner = match schema.get_mut("anyOf") {
            Some(Value::Array(inner)) => std::mem::take(inner),
            _ => vec![schema],
        };
        for each in inner {
            if !flat.contains(&each) {
                flat.push(each);
            }
        }
    }
    match flat.len() {
        // `{}` takes anything, so the others add nothing.
        _ if flat.iter().any(|schema| schema == &json!({})) => json!({}),
        1 => flat.remove(0),
        _ => json!({ "anyOf": flat }),
    }
}

fn enumeration(values: Vec<Value>) -> Value {
    let of = |is: fn(&Value) -> bool, name: &str| {
        values.iter().all(is).then(|| json!({ "type": name, "enum": values }))
    };
    if values.is_empty() {
        return json!({});
    }
    of(Value::is_string, "string")
        .or_else(|| of(Value::is_boolean, "boolean"))
        .or_else(|| of(Value::is_i64, "integer"))
        .unwrap_or_else(|| json!({ "enum": values }))
}

//! Classes with fields: dataclasses, named tuples, typed dicts and models.

use super::super::docstring;
use super::super::module::variables;
use super::class::{Ancestor, Lineage};
use super::name::Meaning;
use super::shape::{constrain, description, keyword};
use super::{Annotation, Need, Types, known};
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::{Expr, Stmt};
use serde_json::{Map, Value, json};

/// How a class has fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Dataclass,
    NamedTuple,
    TypedDict,
    /// A model of pydantic.
    Model,
}

impl RecordKind {
    pub(super) fn of(lineage: &Lineage) -> Option<Self> {
        let models = ["pydantic.BaseModel", "pydantic.v1.BaseModel", "sqlmodel.SQLModel"];
        if models.iter().any(|path| lineage.has(path)) {
            return Some(Self::Model);
        }
        if lineage.has("typing.TypedDict") {
            return Some(Self::TypedDict);
        }
        if lineage.has("typing.NamedTuple") {
            return Some(Self::NamedTuple);
        }
        lineage.classes.iter().any(|it| it.is_dataclass).then_some(Self::Dataclass)
    }

    /// Whether an object must not have other fields.
    fn is_closed(self, lineage: &Lineage) -> bool {
        match self {
            Self::Dataclass | Self::NamedTuple => true,
            Self::TypedDict => false,
            Self::Model => {
                let extra = config(lineage, "extra");
                matches!(extra, Some(Expr::StringLiteral(it)) if it.value.to_str() == "forbid")
            }
        }
    }
}

/// A field as a class says it.
struct Field<'c> {
    name: &'c str,
    annotation: &'c Expr,
    value: Option<&'c Expr>,
}

/// The place of a field among the others, and whether it has to be there.
struct Standing {
    key: String,
    is_required: bool,
}

impl Types<'_> {
    /// The schema of a class with fields.
    pub(super) fn record(&mut self, lineage: &Lineage, kind: RecordKind, depth: usize) -> Value {
        if kind == RecordKind::Model && config(lineage, "alias_generator").is_some() {
            return json!({ "type": "object" });
        }
        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        let mut docs = docstring::Docstring::default();
        for ancestor in &lineage.classes {
            let Some(class) = ancestor.definition() else { continue };
            if kind == RecordKind::Dataclass && !ancestor.is_dataclass {
                continue;
            }
            self.variables.extend(variables(class.type_params.as_deref()));
            docs = docstring::read(docstring_of(&class.body).unwrap_or_default());
            for field in fields(&class.body, kind) {
                let Some(standing) = self.standing(ancestor, class, kind, &field) else { continue };
                let of = format!("`{}.{}`", ancestor.name, field.name);
                let at = Annotation::new(&ancestor.file, &of);
                let need = if standing.is_required { Need::Required } else { Need::Optional };
                let mut said = self.read_within(at, field.annotation, need, depth);
                if said.is_left_out {
                    continue;
                }
                let noted = field.value.and_then(description).filter(|_| is_call(field.value));
                let said_of = said.description.or(noted);
                let said_of = said_of.or_else(|| docs.parameters.get(field.name).cloned());
                if let Some(value) = field.value {
                    constrain(&mut said.schema, value);
                }
                let default = self.default_of(ancestor, kind, &field);
                if let Value::Object(map) = &mut said.schema {
                    map.extend(said_of.map(|said| ("description".to_owned(), said.into())));
                    map.extend(default.map(|default| ("default".to_owned(), default)));
                }
                required.retain(|it| *it != standing.key);
                if standing.is_required {
                    required.push(standing.key.as_str().into());
                }
                properties.insert(standing.key, said.schema);
            }
        }
        let mut schema = json!({ "type": "object" });
        if let Value::Object(map) = &mut schema {
            if !docs.summary.is_empty() {
                map.insert("description".into(), docs.summary.into());
            }
            map.insert("properties".into(), properties.into());
            if !required.is_empty() {
                map.insert("required".into(), required.into());
            }
            if kind.is_closed(lineage) {
                map.insert("additionalProperties".into(), false.into());
            }
        }
        schema
    }

    /// How a field stands; `None` if no object has it.
    fn standing(
        &mut self,
        ancestor: &Ancestor,
        class: &ast::StmtClassDef,
        kind: RecordKind,
        field: &Field<'_>,
    ) -> Option<Standing> {
        let wrapper = self.wrapper(ancestor, field.annotation);
        if matches!(wrapper.as_deref(), Some("ClassVar" | "KW_ONLY")) {
            return None;
        }
        let mut key = field.name.to_owned();
        let mut is_required = field.value.is_none();
        if let (RecordKind::Dataclass | RecordKind::Model, Some(Expr::Call(call))) =
            (kind, field.value)
            && let Meaning::Library(path) = self.meaning(&ancestor.file, &call.func)
            && matches!(known::short(&path), "field" | "Field")
        {
            if is_false(keyword(call, "init")) {
                return None;
            }
            let given = match call.arguments.args.first() {
                Some(Expr::EllipsisLiteral(_)) => false,
                first => first.is_some() && kind == RecordKind::Model,
            };
            let named = ["default", "default_factory"].iter().any(|it| keyword(call, it).is_some());
            is_required = !given && !named;
            let alias = keyword(call, "validation_alias").or_else(|| keyword(call, "alias"));
            match alias {
                Some(Expr::StringLiteral(alias)) => key = alias.value.to_str().to_owned(),
                Some(_) => return None,
                None => {}
            }
        }
        if kind == RecordKind::TypedDict {
            let mut keywords = class.arguments.iter().flat_map(|it| it.keywords.iter());
            let total = keywords.find(|it| it.arg.as_ref().is_some_and(|it| it == "total"));
            is_required = match wrapper.as_deref() {
                Some("Required") => true,
                Some("NotRequired") => false,
                _ => !is_false(total.map(|it| &it.value)),
            };
        }
        Some(Standing { key, is_required })
    }

    /// What an annotation is wrapped in: `NotRequired[...]`, `ClassVar`.
    fn wrapper(&mut self, ancestor: &Ancestor, annotation: &Expr) -> Option<String> {
        let text = match annotation {
            // As a text it is seldom more than a name before a bracket.
            Expr::StringLiteral(text) => {
                let (name, _) = text.value.to_str().split_once('[')?;
                return Some(known::short(name).to_owned());
            }
            other => other,
        };
        match self.meaning(&ancestor.file, text) {
            Meaning::Library(path) => Some(known::short(&path).to_owned()),
            _ => None,
        }
    }

    fn default_of(
        &mut self,
        ancestor: &Ancestor,
        kind: RecordKind,
        field: &Field<'_>,
    ) -> Option<Value> {
        let value = match field.value? {
            Expr::Call(call) if matches!(kind, RecordKind::Dataclass | RecordKind::Model) => {
                let first = call.arguments.args.first().filter(|_| kind == RecordKind::Model);
                keyword(call, "default").or(first).or(field.value)?
            }
            value => value,
        };
        self.default(&ancestor.file, value)
    }
}

fn fields(body: &[Stmt], kind: RecordKind) -> impl Iterator<Item = Field<'_>> {
    body.iter().filter_map(move |statement| {
        let Stmt::AnnAssign(it) = statement else { return None };
        let Expr::Name(name) = &*it.target else { return None };
        let name = name.id.as_str();
        let hidden = kind == RecordKind::Model && (name.starts_with('_') || name == "model_config");
        let field = Field { name, annotation: &it.annotation, value: it.value.as_deref() };
        (!hidden).then_some(field)
    })
}

fn is_call(value: Option<&Expr>) -> bool {
    matches!(value, Some(Expr::Call(_)))
}

fn is_false(value: Option<&Expr>) -> bool {
    matches!(value, Some(Expr::BooleanLiteral(it)) if !it.value)
}

fn docstring_of(body: &[Stmt]) -> Option<&str> {
    match body.first() {
        Some(Stmt::Expr(first)) => match &*first.value {
            Expr::StringLiteral(text) => Some(text.value.to_str()),
            _ => None,
        },
        _ => None,
    }
}

/// What the configuration of a model says: `model_config = ConfigDict(extra="forbid")`, or a class
/// `Config` in it.
fn config<'l>(lineage: &'l Lineage, name: &str) -> Option<&'l Expr> {
    let is_named = |target: &Expr, name: &str| matches!(target, Expr::Name(it) if it.id == name);
    lineage.statements().find_map(|statement| match statement {
        Stmt::Assign(it) if is_named(it.targets.first()?, "model_config") => match &*it.value {
            Expr::Call(call) => keyword(call, name),
            Expr::Dict(dict) => dict.items.iter().find_map(|item| match item.key.as_ref()? {
                Expr::StringLiteral(key) if key.value.to_str() == name => Some(&item.value),
                _ => None,
            }),
            _ => None,
        },
        Stmt::ClassDef(class) if class.name.id == "Config" => {
            class.body.iter().find_map(|inner| match inner {
                Stmt::Assign(it) if is_named(it.targets.first()?, name) => Some(&*it.value),
                _ => None,
            })
        }
        _ => None,
    })
}

//! The JSON Schema that an annotation stands for.
//!
//! What cannot be known without running something becomes `{}`, which takes anything: a wrong guess
//! would refuse good arguments, and a worker knows what an annotation is. What is known to have no
//! JSON, or to name nothing, is reported.

mod choice;
mod class;
mod default;
mod known;
mod name;
mod record;
mod shape;

pub(super) use default::literal;

use super::files::{Parsed, PythonFiles};
use super::module::span;
use crate::diagnostic::{Code, Diagnostic, Report, Severity};
use crate::source::Span;
use class::ClassKey;
use name::Meaning;
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::{Expr, Operator};
use rustpython_ruff_python_parser::parse_expression;
use serde_json::{Map, Value, json};
use shape::any_of;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// How deeply annotations may refer to each other.
const DEPTH: usize = 24;
/// How many classes the schema of a tool may hold. One that holds more takes anything there.
const CLASSES: usize = 200;
/// The longest text that is read as an annotation.
const LONGEST: usize = 500;

/// Reads the annotations of one tool.
pub(super) struct Types<'a> {
    pub(super) files: &'a mut PythonFiles,
    /// The folder that everything read lies beneath.
    pub(super) root: &'a Path,
    pub(super) report: &'a mut Report,
    /// The name of the tool, for messages.
    tool: &'a str,
    /// The schemas of classes that hold themselves, by name.
    definitions: Map<String, Value>,
    /// The classes that are being read, and whether they were met again meanwhile.
    open: Vec<(ClassKey, Option<String>)>,
    /// The names of the definitions, by class.
    defined: HashMap<ClassKey, String>,
    classes: usize,
    /// The type variables that are known where the annotation stands.
    variables: Vec<String>,
    /// How grave it is if what is being read cannot be given.
    severity: Severity,
    /// How much could not be given so far.
    refused: usize,
}

/// The annotation of one parameter or field.
#[derive(Clone, Copy)]
pub(super) struct Annotation<'a> {
    /// The file that it is in.
    pub(super) file: &'a Arc<Parsed>,
    /// What is annotated, for messages: `` `due` `` or `` `Item.due` ``.
    pub(super) of: &'a str,
    /// Where it stands, if it is inside a text.
    within: Option<Span>,
}

impl<'a> Annotation<'a> {
    pub(super) fn new(file: &'a Arc<Parsed>, of: &'a str) -> Self {
        Self { file, of, within: None }
    }

    /// The place of a name, or of the text that it is in.
    fn span(&self, expr: &Expr) -> Span {
        self.within.unwrap_or_else(|| match expr {
            Expr::Name(it) => span(it.range),
            Expr::Attribute(it) => span(it.range),
            Expr::StringLiteral(it) => span(it.range),
            _ => Span::at(0),
        })
    }
}

/// What an annotation says.
#[derive(Debug)]
pub(super) struct Said {
    /// The schema; `{}` if it takes anything.
    pub(super) schema: Value,
    /// The description that `Annotated` gives.
    pub(super) description: Option<String>,
    /// Whether a model is not told of it: it cannot be given, and need not be.
    pub(super) is_left_out: bool,
}

impl Default for Said {
    fn default() -> Self {
        Self { schema: json!({}), description: None, is_left_out: false }
    }
}

/// Whether something has to be given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    /// It has a default.
    Optional,
}

impl Need {
    pub(super) fn with_default<T>(default: Option<T>) -> Self {
        if default.is_some() { Self::Optional } else { Self::Required }
    }
}

impl<'a> Types<'a> {
    pub(super) fn new(
        (files, root): (&'a mut PythonFiles, &'a Path),
        report: &'a mut Report,
        tool: &'a str,
        variables: &[String],
    ) -> Self {
        Self {
            files,
            root,
            report,
            tool,
            definitions: Map::new(),
            open: Vec::new(),
            defined: HashMap::new(),
            classes: 0,
            variables: variables.to_vec(),
            severity: Severity::Error,
            refused: 0,
        }
    }

    /// The schemas of classes that hold themselves, by name.
    pub(super) fn into_definitions(self) -> Map<String, Value> {
        self.definitions
    }

    /// What the annotation of a parameter says.
    pub(super) fn read(&mut self, at: Annotation<'_>, expr: &Expr, need: Need) -> Said {
        self.read_within(at, expr, need, DEPTH)
    }

    /// The same for a field, as deep as `depth`.
    fn read_within(&mut self, at: Annotation<'_>, expr: &Expr, need: Need, depth: usize) -> Said {
        let (severity, refused) = (self.severity, self.refused);
        if need == Need::Optional {
            self.severity = Severity::Warning;
        }
        let mut description = None;
        let schema = self.schema(at, expr, depth, &mut description);
        let is_left_out = need == Need::Optional && self.refused > refused;
        self.severity = severity;
        if is_left_out {
            self.refused = refused;
        }
        Said { schema, description, is_left_out }
    }

    fn schema(
        &mut self,
        at: Annotation<'_>,
        expr: &Expr,
        depth: usize,
        description: &mut Option<String>,
    ) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return json!({}) };
        match expr {
            Expr::NoneLiteral(_) => json!({ "type": "null" }),
            Expr::Name(_) | Expr::Attribute(_) => {
                let meaning = self.meaning(at.file, expr);
                self.meant(at, expr, meaning, depth)
            }
            Expr::StringLiteral(text) => match parse_expression(text.value.to_str()) {
                Ok(parsed) if text.value.to_str().len() < LONGEST => {
                    let at = Annotation { within: Some(at.span(expr)), ..at };
                    self.schema(at, &parsed.syntax().body, depth, description)
                }
                _ => json!({}),
            },
            Expr::BinOp(it) if it.op == Operator::BitOr => any_of([
                self.schema(at, &it.left, depth, &mut None),
                self.schema(at, &it.right, depth, &mut None),
            ]),
            Expr::Subscript(it) => self.subscript(at, it, depth, description),
            Expr::Call(call) => self.made(at, call, depth),
            _ => json!({}),
        }
    }

    /// The schema of what a name means.
    fn meant(&mut self, at: Annotation<'_>, expr: &Expr, meaning: Meaning, depth: usize) -> Value {
        match meaning {
            Meaning::Library(path) => match known::schema(&path) {
                Some(schema) => schema,
                None if known::is_impossible(&path) => self.impossible(at, expr, &path),
                None => json!({}),
            },
            Meaning::Class(file, name) => self.class(at, expr, (file, name), depth),
            Meaning::Value(file, name) => match file.value(&name) {
                // An alias may stand for something that is no type; that is seen where it is used.
                Some(value) => {
                    let within = at.within.or(Some(at.span(expr)));
                    let shared = Arc::ptr_eq(&file, at.file);
                    let at = Annotation { file: &file, within: within.filter(|_| shared), ..at };
                    self.schema(at, value, depth, &mut None)
                }
                None => json!({}),
            },
            Meaning::Function(name) => {
                let what = format!("`{name}` is a function, and no type");
                self.refuse(at, expr, Code::ToolAnnotation, what, HELP_TYPE.to_owned());
                json!({})
            }
            Meaning::ForCheckers(name) => {
                let what = format!("`{name}` is imported for type checkers only");
                let help = format!("move the import of `{name}` out of `if TYPE_CHECKING:`");
                self.refuse(at, expr, Code::AnnotationUnresolved, what, help);
                json!({})
            }
            Meaning::Nothing { name, help } => {
                let what = format!("there is no `{name}`");
                self.refuse(at, expr, Code::AnnotationUnresolved, what, help);
                json!({})
            }
            Meaning::Module(_) | Meaning::Unknown => json!({}),
        }
    }

    fn subscript(
        &mut self,
        at: Annotation<'_>,
        it: &ast::ExprSubscript,
        depth: usize,
        description: &mut Option<String>,
    ) -> Value {
        let arguments: Vec<&Expr> = match &*it.slice {
            Expr::Tuple(tuple) => tuple.elts.iter().collect(),
            one => vec![one],
        };
        let meaning = self.meaning(at.file, &it.value);
        let path = match &meaning {
            Meaning::Library(path) => path.as_str(),
            _ => return self.meant(at, &it.value, meaning, depth),
        };
        let short = known::short(path);
        let inner = |types: &mut Self, place: usize| match arguments.get(place) {
            Some(argument) => types.schema(at, argument, depth, &mut None),
            None => json!({}),
        };
        match short {
            "Optional" => any_of([inner(self, 0), json!({ "type": "null" })]),
            "Union" => any_of((0..arguments.len()).map(|place| inner(self, place))),
            "Literal" => self.literal_of(at, &arguments),
            "Annotated" => {
                let mut schema = inner(self, 0);
                for note in arguments.iter().skip(1) {
                    *description = description.take().or_else(|| shape::description(note));
                    shape::constrain(&mut schema, note);
                }
                schema
            }
            "Final" | "Required" | "NotRequired" | "ReadOnly" | "InitVar" => inner(self, 0),
            "tuple" | "Tuple" => match arguments.as_slice() {
                [_, Expr::EllipsisLiteral(_)] => {
                    json!({ "type": "array", "items": inner(self, 0) })
                }
                [] => json!({ "type": "array", "maxItems": 0 }),
                all => {
                    let count = all.len();
                    let items: Vec<Value> = (0..count).map(|place| inner(self, place)).collect();
                    json!({ "type": "array", "prefixItems": items,
                            "minItems": count, "maxItems": count })
                }
            },
            _ => match known::schema(path) {
                Some(mut schema) => {
                    if let Some(map) = schema.as_object_mut() {
                        match map.get("type").and_then(Value::as_str) {
                            Some("array") => map.insert("items".into(), inner(self, 0)),
                            Some("object") => {
                                map.insert("additionalProperties".into(), inner(self, 1))
                            }
                            _ => None,
                        };
                    }
                    schema
                }
                None => {
                    let path = path.to_owned();
                    self.meant(at, &it.value, Meaning::Library(path), depth)
                }
            },
        }
    }

    /// What a call makes that stands where a type does: `NewType("Id", int)`.
    fn made(&mut self, at: Annotation<'_>, call: &ast::ExprCall, depth: usize) -> Value {
        match (self.meaning(at.file, &call.func), &*call.arguments.args) {
            (Meaning::Library(path), [_, inner]) if known::short(&path) == "NewType" => {
                self.schema(at, inner, depth, &mut None)
            }
            _ => json!({}),
        }
    }

    fn impossible(&mut self, at: Annotation<'_>, expr: &Expr, name: &str) -> Value {
        let what = format!("no JSON becomes a `{name}`");
        self.refuse(at, expr, Code::ToolAnnotation, what, HELP_TYPE.to_owned());
        json!({})
    }

    fn refuse(&mut self, at: Annotation<'_>, expr: &Expr, code: Code, what: String, help: String) {
        let message = format!("{} of the tool `{}` cannot be given: {what}", at.of, self.tool);
        let span = at.file.placed(at.span(expr));
        let help = match self.severity {
            Severity::Error => help,
            Severity::Warning => {
                format!("a model is not told of it, and its default counts; or {help}")
            }
        };
        self.refused += 1;
        let found = Diagnostic::new(code, &at.file.source, span, message).help(help);
        self.report.push(found.severity(self.severity));
    }
}

const HELP_TYPE: &str = "take what a model can write, such as a text, a number, a date, an Enum or a \
                         dataclass, and make the rest of it in the function; what hooks left is in \
                         `context_variables`";

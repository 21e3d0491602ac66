//! What a workflow declares of the answers of its agents, as data.

use serde_json::Value;
use std::collections::BTreeMap;

/// A model: the form of an answer, or of a part of it. Always an object.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelSpec {
    /// Its name.
    pub name: String,
    /// What it is, as the model reads it.
    pub description: Option<String>,
    /// The fields that have to be there. If it is `None`, those that neither say
    /// `required: false` nor have a default.
    pub required: Option<Vec<String>>,
    /// Its fields, in the order of the file.
    pub fields: Vec<FieldSpec>,
}

impl ModelSpec {
    /// A model of these fields.
    pub fn new(name: impl Into<String>, fields: Vec<FieldSpec>) -> Self {
        Self { name: name.into(), description: None, required: None, fields }
    }
}

/// A field of a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FieldSpec {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub ty: FieldType,
    /// What it is, as the model reads it.
    pub description: Option<String>,
    /// The value it has if the answer leaves it out.
    pub default: Option<Value>,
    /// Whether it has to be there, if the field itself says so.
    pub required: Option<bool>,
    /// The values that it can have, if the file lists them.
    pub allowed_values: Vec<Value>,
}

impl FieldSpec {
    /// A field of this type.
    pub fn new(name: impl Into<String>, ty: FieldType) -> Self {
        Self {
            name: name.into(),
            ty,
            description: None,
            default: None,
            required: None,
            allowed_values: Vec::new(),
        }
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldType {
    /// `str`.
    Str,
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `bool`.
    Bool,
    /// `dict`: any object.
    Dict,
    /// `null`, as a variant of a union.
    Null,
    /// Anything; `any`.
    Any,
    /// `list`, with what is in it.
    List(Box<FieldType>),
    /// `literal`: one of these values.
    Literal(Vec<Value>),
    /// `union`: one of these.
    Union(Vec<FieldType>),
    /// The model of this name.
    Model(String),
}

impl FieldType {
    /// The type that a file names so in one word; a name that is none is a model's. `list` is a list
    /// of anything; `literal` and `union` need more than a word and are `None`.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "str" | "string" => Self::Str,
            "int" | "integer" => Self::Int,
            "float" | "number" => Self::Float,
            "bool" | "boolean" => Self::Bool,
            "dict" | "object" => Self::Dict,
            "null" | "none" | "None" => Self::Null,
            "any" | "Any" => Self::Any,
            "list" | "array" => Self::List(Box::new(Self::Any)),
            "literal" | "union" | "" => return None,
            model => Self::Model(model.to_owned()),
        })
    }

    /// The words that are no model's name.
    pub fn names() -> &'static [&'static str] {
        &["str", "int", "float", "bool", "dict", "list", "literal", "union", "null", "any"]
    }
}

/// Everything that a workflow's structured outputs say.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OutputsSpec {
    /// The models, in the order of the file.
    pub models: Vec<ModelSpec>,
    /// The model that each agent answers with; `None` is said for those that answer in words.
    pub registry: BTreeMap<String, Option<String>>,
}

impl OutputsSpec {
    /// These models, for these agents.
    pub fn new(models: Vec<ModelSpec>, registry: BTreeMap<String, Option<String>>) -> Self {
        Self { models, registry }
    }
}

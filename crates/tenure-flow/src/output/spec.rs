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
    /// `Dict[str, X]`: an object whose values are all of one type.
    Map(Box<FieldType>),
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
    /// The type that a file spells so, in the words of files and in those of Python: `str`,
    /// `List[str]`, `Optional[int]`, `Dict[str, Any]`, `str | None`. A word that is no type is a
    /// model's name; `list` is a list of anything. `None` is what cannot be read, and `literal`,
    /// `union` and `model`, which need more than a word.
    pub fn parse(text: &str) -> Option<Self> {
        super::spelling::read(text)
    }

    /// Whether a name is a type's, and so no model's.
    pub fn is_name(name: &str) -> bool {
        let is_type = |ty| !matches!(ty, Self::Model(_));
        Self::names().contains(&name) || Self::parse(name).is_some_and(is_type)
    }

    /// The names of the types, as files spell them first.
    pub fn names() -> &'static [&'static str] {
        &["str", "int", "float", "bool", "dict", "list", "literal", "union", "null", "any", "model"]
    }

    /// The same, or null.
    #[must_use]
    pub fn or_null(self) -> Self {
        match self {
            Self::Union(mut variants) => {
                if !variants.contains(&Self::Null) {
                    variants.push(Self::Null);
                }
                Self::Union(variants)
            }
            ty => Self::Union(vec![ty, Self::Null]),
        }
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

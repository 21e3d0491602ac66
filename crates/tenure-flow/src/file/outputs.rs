//! The file `structured_outputs`.

use super::part::{Folder, Part, meant, unknown_fields};
use super::team::Team;
use crate::output::{FieldSpec, FieldType, ModelSpec, OutputsSpec};
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Reader, nearest, present};
use tenure_cards::source::{Key, Node, Span, Value};

const MODEL: &[&str] = &["type", "description", "required", "fields"];
const FIELD: &[&str] = &[
    "type",
    "items",
    "values",
    "variants",
    "allowed_values",
    "default",
    "required",
    "description",
];
/// How deeply a type may be nested in its own field.
const DEEPEST: usize = 16;

/// The names of the models.
struct Models<'p> {
    names: Vec<&'p str>,
}

/// Reads the file: the models, and which agent answers with which.
pub(super) fn read(folder: &mut Folder<'_, '_>, part: &Part, team: &Team) -> OutputsSpec {
    let tree = &part.tree;
    let (models, registry) = folder.entry(&part.source, "", |scope| {
        let reader = &mut *scope.reader;
        let inner = match present(tree, "structured_outputs") {
            Some(inner) => {
                unknown_fields(reader, tree, "the file", &["structured_outputs", "registry"]);
                inner
            }
            None => tree,
        };
        if inner.map().is_none() {
            reader.wrong_kind("structured_outputs", "a mapping", inner);
            return (None, None);
        }
        unknown_fields(reader, inner, "structured_outputs", &["models", "registry"]);
        let outer = tree.field("registry").filter(|_| !std::ptr::eq(inner, tree));
        let registry = match (inner.field("registry"), outer) {
            (Some(_), Some(second)) => {
                let message = "there are two registries";
                reader.problem_help(Code::Contradiction, second.span, message, "make them one");
                None
            }
            (one, two) => one.or(two).filter(|node| node.value != Value::Null),
        };
        (reader.mapping(inner, "models"), registry)
    });
    let entries = models.and_then(Node::map).unwrap_or_default();
    let known = Models { names: entries.iter().map(|(key, _)| key.text.as_str()).collect() };
    let mut spec = OutputsSpec::default();
    for (key, node) in entries {
        let label = format!("models.{}", key.text);
        let errors = folder.report.errors();
        let model =
            folder.entry(&part.source, &label, |scope| model(key, node, &known, scope.reader));
        spec.models.extend(model.filter(|_| folder.report.errors() == errors));
    }
    let Some(registry) = registry else { return spec };
    folder.entry(&part.source, "registry", |scope| {
        let reader = &mut *scope.reader;
        let Some(entries) = registry.map() else {
            reader.wrong_kind("registry", "a mapping of agents to models", registry);
            return;
        };
        for (key, node) in entries {
            let agent = team.agent(key.text.trim(), key.span, "`registry`", reader);
            let model = match &node.value {
                Value::Null => Some(None),
                _ => reader.words_of(&key.text, node).and_then(|name| {
                    known.model(name.trim(), node.span, "`registry`", reader).map(Some)
                }),
            };
            if let (Some(agent), Some(model)) = (agent, model) {
                spec.registry.insert(agent.to_string(), model);
            }
        }
    });
    spec
}

impl Models<'_> {
    /// The model of this name; that there is none is reported.
    fn model(&self, name: &str, span: Span, who: &str, reader: &mut Reader<'_>) -> Option<String> {
        if self.names.contains(&name) {
            return Some(name.to_owned());
        }
        let message = format!("{who} names the model `{name}`, which is not there");
        let help = meant(name, &self.names, "model");
        reader.problem_help(Code::UnknownOutput, span, message, help);
        None
    }
}

fn model(key: &Key, node: &Node, known: &Models<'_>, reader: &mut Reader<'_>) -> Option<ModelSpec> {
    if node.map().is_none() {
        reader.wrong_kind(&format!("the model {}", key.text), "a mapping with `fields`", node);
        return None;
    }
    if FieldType::names().contains(&key.text.as_str()) {
        let message = format!("a model cannot have the name `{}`, which is a type", key.text);
        reader.problem_help(Code::BadOutput, key.span, message, "choose another");
    }
    unknown_fields(reader, node, "a model", MODEL);
    reader.one_of(node, "type", &[("model", ())]);
    let mut fields: Vec<FieldSpec> = Vec::new();
    match reader.mapping(node, "fields") {
        Some(map) => {
            for (name, field) in map.map().unwrap_or_default() {
                fields.extend(self::field(name, field, known, reader));
            }
        }
        None if present(node, "fields").is_none() => {
            let message = format!("the model `{}` has no `fields`", key.text);
            reader.problem_help(Code::MissingField, key.span, message, "add `fields`");
        }
        None => {}
    }
    let mut model = ModelSpec::new(&key.text, fields);
    model.description = reader.words(node, "description").map(|it| it.trim().to_owned());
    model.required = reader.texts(node, "required").map(|names| {
        for (name, span) in &names {
            let all = node.field("fields").and_then(Node::map).unwrap_or_default();
            if !all.iter().any(|(field, _)| field.text == *name) {
                let fields: Vec<&str> = all.iter().map(|(field, _)| field.text.as_str()).collect();
                let message = format!("`required` names `{name}`, which is no field of this model");
                let help = meant(name, &fields, "field");
                reader.problem_help(Code::BadOutput, *span, message, help);
            }
        }
        names.into_iter().map(|(name, _)| name).collect()
    });
    Some(model)
}

fn field(key: &Key, node: &Node, known: &Models<'_>, reader: &mut Reader<'_>) -> Option<FieldSpec> {
    let ty = type_of(node, key.span, known, reader, DEEPEST)?;
    let mut field = FieldSpec::new(&key.text, ty);
    if node.map().is_some() {
        field.description = reader.words(node, "description").map(|it| it.trim().to_owned());
        field.default = node.field("default").map(Node::to_json);
        field.required = reader.truth(node, "required");
        if let Some(place) = present(node, "allowed_values") {
            match place.list() {
                Some(values) => field.allowed_values = values.iter().map(Node::to_json).collect(),
                None => reader.wrong_kind("allowed_values", "a list", place),
            }
        }
    }
    Some(field)
}

/// The type of a field: a mapping with `type`, or its name alone.
fn type_of(
    node: &Node,
    span: Span,
    known: &Models<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
) -> Option<FieldType> {
    let Some(depth) = depth.checked_sub(1) else {
        let message = "this type is nested too deeply";
        reader.problem_help(Code::BadOutput, node.span, message, "make a model of its inside");
        return None;
    };
    let (name, place) = match &node.value {
        Value::Text(text) => (text.trim().to_owned(), node.span),
        Value::Null => ("null".to_owned(), node.span),
        Value::Map(_) => {
            unknown_fields(reader, node, "a field", FIELD);
            let Some(place) = node.field("type") else {
                let message = "this field has no `type`";
                reader.problem_help(Code::MissingField, span, message, "add `type`");
                return None;
            };
            match &place.value {
                Value::Null => ("null".to_owned(), place.span),
                _ => (reader.words_of("type", place)?.trim().to_owned(), place.span),
            }
        }
        _ => {
            reader.wrong_kind("a type", "a name or a mapping with `type`", node);
            return None;
        }
    };
    for (field, of) in [("items", "list"), ("values", "literal"), ("variants", "union")] {
        if let Some((key, _)) = present(node, field).and_then(|_| node.entry(field))
            && name != of
            && !(of == "list" && matches!(name.as_str(), "array" | "optional_list"))
        {
            let message = format!("`{field}` is said of a {of}, and this is `{name}`");
            reader.problem_help(
                Code::Contradiction,
                key.span,
                message,
                format!("remove `{field}`"),
            );
        }
    }
    match name.as_str() {
        "list" | "array" => Some(match present(node, "items") {
            Some(items) => {
                let inner = type_of(items, items.span, known, reader, depth)?;
                FieldType::List(Box::new(inner))
            }
            None => FieldType::List(Box::new(FieldType::Any)),
        }),
        "optional_list" => {
            let inner = match present(node, "items") {
                Some(items) => type_of(items, items.span, known, reader, depth)?,
                None => FieldType::Any,
            };
            Some(FieldType::Union(vec![FieldType::List(Box::new(inner)), FieldType::Null]))
        }
        "literal" => {
            let values = present(node, "values").or(present(node, "allowed_values"));
            match values.and_then(Node::list) {
                Some(values) if !values.is_empty() => {
                    Some(FieldType::Literal(values.iter().map(Node::to_json).collect()))
                }
                _ => {
                    let message = "a literal has no `values`";
                    reader.problem_help(Code::BadOutput, place, message, "list them in `values`");
                    None
                }
            }
        }
        "union" => match present(node, "variants").and_then(Node::list) {
            Some(variants) if !variants.is_empty() => {
                let mut found = Vec::new();
                for variant in variants {
                    found.push(type_of(variant, variant.span, known, reader, depth)?);
                }
                Some(FieldType::Union(found))
            }
            _ => {
                let message = "a union has no `variants`";
                reader.problem_help(Code::BadOutput, place, message, "list them in `variants`");
                None
            }
        },
        _ => match FieldType::parse(&name)? {
            FieldType::Model(model) if !known.names.contains(&model.as_str()) => {
                let all = known.names.iter().copied().chain(FieldType::names().iter().copied());
                let help = match nearest(&model, all) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "a type is str, int, float, bool, dict, list, literal, union, or the \
                             name of a model"
                        .to_owned(),
                };
                let message = format!("`{model}` is neither a type nor a model");
                reader.problem_help(Code::UnknownOutput, place, message, help);
                None
            }
            ty => Some(ty),
        },
    }
}

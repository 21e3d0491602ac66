//! The file `structured_outputs`.

use super::part::{Folder, Part, meant, named_entries, unknown_fields};
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
    "fields",
    "allowed_values",
    "enum",
    "default",
    "required",
    "description",
];
/// Fields that say more of a type, and the types that they say it of.
const PARTS: &[(&str, &str)] =
    &[("items", "list"), ("values", "literal"), ("variants", "union"), ("fields", "model")];
/// How deeply a type may be nested in its own field.
const DEEPEST: usize = 16;

/// The models: by name, and those that stand where they are used.
struct Models<'p> {
    names: Vec<&'p str>,
    inline: Vec<ModelSpec>,
}

/// Where a type is written.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The name that a model has that stands here.
    label: &'p str,
    span: Span,
    /// How much deeper types may be nested.
    depth: usize,
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
    let entries: Vec<_> = models.into_iter().flat_map(named_entries).collect();
    let names = entries.iter().map(|(key, _)| key.text.as_str()).collect();
    let mut known = Models { names, inline: Vec::new() };
    let mut spec = OutputsSpec::default();
    for (key, node) in entries {
        let label = format!("models.{}", key.text);
        let errors = folder.report.errors();
        let model = folder.entry(&part.source, &label, |scope| {
            if FieldType::is_name(&key.text) {
                let message =
                    format!("a model cannot have the name `{}`, which is a type", key.text);
                scope.reader.problem_help(Code::BadOutput, key.span, message, "choose another");
            }
            let place = Place { label: &key.text, span: key.span, depth: DEEPEST };
            model(node, place, &mut known, scope.reader)
        });
        spec.models.extend(model.filter(|_| folder.report.errors() == errors));
    }
    spec.models.append(&mut known.inline);
    let Some(registry) = registry else { return spec };
    folder.entry(&part.source, "registry", |scope| {
        let reader = &mut *scope.reader;
        if registry.map().is_none() {
            reader.wrong_kind("registry", "a mapping of agents to models", registry);
        }
        for (key, node) in named_entries(registry) {
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

    /// Whether every model that a type names is there; the first that is not is reported.
    fn has_all(&self, ty: &FieldType, span: Span, reader: &mut Reader<'_>) -> bool {
        let missing = match ty {
            FieldType::List(inner) | FieldType::Map(inner) => {
                return self.has_all(inner, span, reader);
            }
            FieldType::Union(all) => return all.iter().all(|it| self.has_all(it, span, reader)),
            FieldType::Model(name) if !self.names.contains(&name.as_str()) => name,
            _ => return true,
        };
        let all = self.names.iter().copied().chain(FieldType::names().iter().copied());
        let help = match nearest(missing, all) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "a type is str, int, float, bool, dict, list, literal, union, or the name of a \
                     model"
                    .to_owned()
            }
        };
        let message = format!("`{missing}` is neither a type nor a model");
        reader.problem_help(Code::UnknownOutput, span, message, help);
        false
    }
}

fn model(
    node: &Node,
    place: Place<'_>,
    known: &mut Models<'_>,
    reader: &mut Reader<'_>,
) -> Option<ModelSpec> {
    let name = place.label;
    if node.map().is_none() {
        reader.wrong_kind(&format!("the model {name}"), "a mapping with `fields`", node);
        return None;
    }
    unknown_fields(reader, node, "a model", MODEL);
    reader.one_of(node, "type", &[("model", ())]);
    let fields = reader.mapping(node, "fields");
    if present(node, "fields").is_none() {
        let message = format!("the model `{name}` has no `fields`");
        reader.problem_help(Code::MissingField, place.span, message, "add `fields`");
    }
    let entries: Vec<_> = fields.into_iter().flat_map(named_entries).collect();
    let mut model = ModelSpec::new(name, Vec::new());
    for (key, node) in &entries {
        model.fields.extend(field(key, node, place, known, reader));
    }
    model.description = reader.words(node, "description").map(|it| it.trim().to_owned());
    model.required = reader.texts(node, "required").map(|names| {
        for (name, span) in &names {
            if !entries.iter().any(|(field, _)| field.text == *name) {
                let fields: Vec<_> = entries.iter().map(|(field, _)| field.text.as_str()).collect();
                let message = format!("`required` names `{name}`, which is no field of this model");
                let help = meant(name, &fields, "field");
                reader.problem_help(Code::BadOutput, *span, message, help);
            }
        }
        names.into_iter().map(|(name, _)| name).collect()
    });
    Some(model)
}

fn field(
    key: &Key,
    node: &Node,
    of: Place<'_>,
    known: &mut Models<'_>,
    reader: &mut Reader<'_>,
) -> Option<FieldSpec> {
    let label = format!("{}_{}", of.label, key.text);
    let place = Place { label: &label, span: key.span, depth: of.depth };
    let ty = type_of(node, place, known, reader)?;
    let is_optional = spelled(node).is_some_and(|(name, _)| {
        ["optional_", "Optional[", "typing.Optional["].iter().any(|it| name.starts_with(it))
    });
    let mut field = FieldSpec::new(&key.text, ty);
    if node.map().is_some() {
        field.description = reader.words(node, "description").map(|it| it.trim().to_owned());
        field.default = node.field("default").map(Node::to_json);
        field.required = reader.truth(node, "required");
        field.allowed_values = allowed(node, reader);
    }
    if is_optional && field.default.is_none() && field.required != Some(true) {
        field.default = Some(serde_json::Value::Null);
    }
    Some(field)
}

/// `allowed_values`, or `enum` as JSON Schema has it.
fn allowed(node: &Node, reader: &mut Reader<'_>) -> Vec<serde_json::Value> {
    let said: Vec<_> = ["allowed_values", "enum"]
        .into_iter()
        .filter_map(|name| Some((name, present(node, name)?)))
        .collect();
    if let [_, (_, second)] = *said {
        let message = "`enum` is another name of `allowed_values`, and both are here";
        reader.problem_help(Code::Contradiction, second.span, message, "remove one of them");
    }
    let Some((name, place)) = said.first() else { return Vec::new() };
    if place.list().is_none() {
        reader.wrong_kind(name, "a list", place);
    }
    place.list().unwrap_or_default().iter().map(Node::to_json).collect()
}

/// The type as it is spelled, and where: beside `type` in a mapping, or alone.
fn spelled(node: &Node) -> Option<(String, Span)> {
    let place = if node.map().is_some() { node.field("type")? } else { node };
    match &place.value {
        Value::Text(text) => Some((text.trim().to_owned(), place.span)),
        Value::Null => Some(("null".to_owned(), place.span)),
        _ => None,
    }
}

/// The type of a field: a mapping with `type`, or its name alone.
fn type_of(
    node: &Node,
    place: Place<'_>,
    known: &mut Models<'_>,
    reader: &mut Reader<'_>,
) -> Option<FieldType> {
    let Some(depth) = place.depth.checked_sub(1) else {
        let message = "this type is nested too deeply";
        reader.problem_help(Code::BadOutput, node.span, message, "make a model of its inside");
        return None;
    };
    if node.map().is_some() {
        unknown_fields(reader, node, "a field", FIELD);
    }
    let Some((name, span)) = spelled(node) else {
        match node.field("type") {
            Some(place) => reader.wrong_kind("type", "the name of a type", place),
            None if node.map().is_some() => {
                let message = "this field has no `type`";
                reader.problem_help(Code::MissingField, place.span, message, "add `type`");
            }
            None => reader.wrong_kind("a type", "a name or a mapping with `type`", node),
        }
        return None;
    };
    let place = Place { span, depth, ..place };
    let ty = named(&name, node, place, known, reader);
    beside(node, &name, ty.as_ref(), reader);
    ty
}

/// Fields that say more of another type than this one.
fn beside(node: &Node, name: &str, ty: Option<&FieldType>, reader: &mut Reader<'_>) {
    let plain = name.strip_prefix("optional_").unwrap_or(name);
    let variants = present(node, "variants").and_then(Node::list).unwrap_or_default();
    let names: Vec<_> =
        variants.iter().filter_map(Node::text).map(str::trim).chain([plain]).collect();
    for (field, of) in PARTS {
        let Some((key, _)) = present(node, field).and_then(|_| node.entry(field)) else { continue };
        let is_list = |ty: &FieldType| matches!(ty, FieldType::List(_));
        let is_of = match ty {
            _ if names.contains(of) => true,
            Some(FieldType::Union(variants)) if *of == "list" => variants.iter().any(is_list),
            Some(ty) => *of == "list" && is_list(ty),
            // What is wrong with the type itself is reported already.
            None => true,
        };
        if !is_of {
            let message = format!("`{field}` is said of a {of}, and this is `{name}`");
            let help = format!("remove `{field}`");
            reader.problem_help(Code::Contradiction, key.span, message, help);
        }
    }
}

/// The type of this name. `node` is the mapping that says more of it, if there is one.
fn named(
    name: &str,
    node: &Node,
    place: Place<'_>,
    known: &mut Models<'_>,
    reader: &mut Reader<'_>,
) -> Option<FieldType> {
    if let Some(inner) = name.strip_prefix("optional_").filter(|_| !known.names.contains(&name)) {
        return named(inner, node, place, known, reader).map(FieldType::or_null);
    }
    match name {
        "literal" => {
            let values = present(node, "values").or(present(node, "allowed_values"));
            match values.and_then(Node::list) {
                Some(values) if !values.is_empty() => {
                    Some(FieldType::Literal(values.iter().map(Node::to_json).collect()))
                }
                _ => {
                    let message = "a literal has no `values`";
                    let help = "list them in `values`";
                    reader.problem_help(Code::BadOutput, place.span, message, help);
                    None
                }
            }
        }
        "union" => union(node, place, known, reader),
        "model" => {
            let inline = inline(node, place, known, reader)?;
            let name = inline.name.clone();
            known.inline.push(inline);
            Some(FieldType::Model(name))
        }
        "" => {
            let help = "write str, int, float, bool, dict, list, or the name of a model";
            reader.problem_help(Code::BadOutput, place.span, "a type is empty", help);
            None
        }
        name => {
            let Some(ty) = FieldType::parse(name) else {
                let message = format!("`{name}` cannot be read as a type");
                let help = "write a type as in `str`, `Optional[int]`, `List[str]`, \
                            `Dict[str, Any]`, `str | None`, or the name of a model";
                reader.problem_help(Code::BadOutput, place.span, message, help);
                return None;
            };
            if !known.has_all(&ty, place.span, reader) {
                return None;
            }
            match (present(node, "items"), ty) {
                (Some(items), FieldType::List(inner)) if *inner == FieldType::Any => {
                    let place = Place { span: items.span, ..place };
                    Some(FieldType::List(Box::new(type_of(items, place, known, reader)?)))
                }
                (_, ty) => Some(ty),
            }
        }
    }
}

fn union(
    node: &Node,
    place: Place<'_>,
    known: &mut Models<'_>,
    reader: &mut Reader<'_>,
) -> Option<FieldType> {
    let variants = present(node, "variants").and_then(Node::list).unwrap_or_default();
    if variants.is_empty() {
        let help = "list them in `variants`";
        reader.problem_help(Code::BadOutput, place.span, "a union has no `variants`", help);
        return None;
    }
    let mut found = Vec::new();
    for variant in variants {
        // A variant that needs `values` or `items` has them beside the union's own name.
        let outer = variant.text().map(str::trim).filter(|it| matches!(*it, "literal" | "list"));
        let place = Place { span: variant.span, ..place };
        found.push(match outer {
            Some(name) => named(name, node, place, known, reader)?,
            None => type_of(variant, place, known, reader)?,
        });
    }
    Some(FieldType::Union(found))
}

/// A model that stands where it is used.
fn inline(
    node: &Node,
    place: Place<'_>,
    known: &mut Models<'_>,
    reader: &mut Reader<'_>,
) -> Option<ModelSpec> {
    if present(node, "fields").is_none() {
        let message = "a type `model` has no `fields`";
        let help = "add `fields`, or write the name of a model as the type";
        reader.problem_help(Code::MissingField, place.span, message, help);
        return None;
    }
    let is_taken = |name: &str| {
        known.names.contains(&name) || known.inline.iter().any(|model| model.name == name)
    };
    let numbered = (2..).map(|number| format!("{}_{number}", place.label));
    let mut names = std::iter::once(place.label.to_owned()).chain(numbered);
    let label = names.find(|name| !is_taken(name))?;
    let mut inline = ModelSpec::new(&label, Vec::new());
    let place = Place { label: &label, ..place };
    for (key, field) in reader.mapping(node, "fields").into_iter().flat_map(named_entries) {
        inline.fields.extend(self::field(key, field, place, known, reader));
    }
    inline.description = reader.words(node, "description").map(|it| it.trim().to_owned());
    Some(inline)
}

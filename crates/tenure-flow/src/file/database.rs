//! Variables that a database has: references, documents, and where computed values are written.

use super::part::unknown_fields;
use super::source::{default, list, words};
use super::variables::kind;
use crate::variables::{
    DataEntity, DataReference, EntityField, Index, PersistTo, Refresh, Source, WriteStrategy,
};
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Origin, Reader, nearest, present};
use tenure_cards::source::{Node, Value};

const REFRESH: &[(&str, Refresh)] =
    &[("once", Refresh::Once), ("per_phase", Refresh::PerPhase), ("on_demand", Refresh::OnDemand)];
const WRITE: &[(&str, WriteStrategy)] = &[
    ("immediate", WriteStrategy::Immediate),
    ("on_phase_transition", WriteStrategy::OnPhaseTransition),
    ("on_workflow_end", WriteStrategy::OnWorkflowEnd),
];
/// Older files say which database it is; here it is the project's own.
fn database_kind(reader: &mut Reader<'_>, node: &Node) {
    let Some(place) = present(node, "db_type") else { return };
    if place.text().is_some_and(|it| it.trim().eq_ignore_ascii_case("sqlite")) {
        return;
    }
    let message = "`db_type` means nothing here";
    let help = "databases are those that the project has; the one there is by default is SQLite";
    let span = node.entry("db_type").map_or(place.span, |(key, _)| key.span);
    reader.problem_help(Code::MeaninglessField, span, message, help);
}

/// The database that a mapping names in `database_name`, which the project has to have.
pub(super) fn database(node: &Node, reader: &mut Reader<'_>, origin: &Origin<'_>) -> String {
    let name = words(reader, node, "database_name").unwrap_or_default();
    let databases = &origin.project.config.databases;
    // What the project would have is not known if its file cannot be read.
    let is_whole = !origin.project.report().has_errors();
    if let Some(place) = present(node, "database_name")
        && is_whole
        && !name.is_empty()
        && !databases.contains_key(&name)
    {
        let key = match name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            true => name.clone(),
            false => format!("{name:?}"),
        };
        let help = match nearest(&name, databases.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "add to {}: [databases.{key}] and, below it, path = \"data.sqlite\", the file that \
                 holds it",
                tenure_cards::project::CONFIG_FILE
            ),
        };
        let message = format!("the database `{name}` is not declared in this project");
        reader.problem_help(Code::UnknownDatabase, place.span, message, help);
    }
    name
}

/// A reference, whose fields may stand beside others.
pub(super) fn reference(
    node: &Node,
    others: &[&str],
    reader: &mut Reader<'_>,
    origin: &Origin<'_>,
) -> Source {
    let fields = [
        "db_type",
        "database_name",
        "collection",
        "query_template",
        "fields",
        "refresh_strategy",
        "default",
        "search_by",
        "field",
    ];
    let fields: Vec<&str> = fields.iter().chain(others).copied().collect();
    unknown_fields(reader, node, "a source of type data_reference", &fields);
    database_kind(reader, node);
    let database = database(node, reader, origin);
    let collection = words(reader, node, "collection").unwrap_or_default();
    let mut reference = DataReference::new(database, collection);
    if let Some(query) = reader.mapping(node, "query_template")
        && let serde_json::Value::Object(fields) = query.to_json()
    {
        reference.query_template = fields;
    }
    // The older form: one field, found by what the chat is.
    if let Some(search) = words(reader, node, "search_by") {
        let template = format!("{{{{runtime.{search}}}}}");
        reference.query_template.insert(search, template.into());
    }
    reference.fields = list(reader, node, "fields");
    reference.fields.extend(words(reader, node, "field"));
    reference.refresh = reader.one_of(node, "refresh_strategy", REFRESH).unwrap_or_default();
    reference.default = default(node);
    Source::DataReference(reference)
}

/// A document that a chat writes.
pub(super) fn entity(node: &Node, reader: &mut Reader<'_>, origin: &Origin<'_>) -> Source {
    database_kind(reader, node);
    let database = database(node, reader, origin);
    let collection = words(reader, node, "collection").unwrap_or_default();
    let mut entity = DataEntity::new(database, collection);
    if let Some(search) = words(reader, node, "search_by") {
        entity.search_by = search;
    }
    entity.write = reader.one_of(node, "write_strategy", WRITE).unwrap_or_default();
    if let Some(schema) = reader.mapping(node, "schema") {
        for (key, field) in schema.map().unwrap_or_default() {
            let (kind, required) = match &field.value {
                Value::Map(_) => {
                    unknown_fields(reader, field, "a field", &["type", "required", "description"]);
                    (kind(field, "type", reader), reader.truth(field, "required"))
                }
                _ => (kind(schema, &key.text, reader), None),
            };
            let (kind, required) = (kind.unwrap_or_default(), required.unwrap_or(false));
            entity.schema.push(EntityField::new(&key.text, kind, required));
        }
    }
    let indexes = present(node, "indexes");
    if let Some(place) = indexes.filter(|it| it.list().is_none()) {
        reader.wrong_kind("indexes", "a list", place);
    }
    for index in indexes.and_then(Node::list).unwrap_or_default() {
        match &index.value {
            Value::Text(text) => entity.indexes.push(Index::new(vec![text.clone()], false)),
            Value::Map(_) => {
                unknown_fields(reader, index, "an index", &["fields", "unique"]);
                let unique = reader.truth(index, "unique").unwrap_or(false);
                entity.indexes.push(Index::new(list(reader, index, "fields"), unique));
            }
            _ => reader.wrong_kind("an entry of indexes", "a field or a mapping", index),
        }
    }
    Source::DataEntity(entity)
}

/// Where a computed value is written.
pub(super) fn persist_to(
    reader: &mut Reader<'_>,
    node: &Node,
    origin: &Origin<'_>,
) -> Option<PersistTo> {
    let place = reader.mapping(node, "persist_to")?;
    unknown_fields(reader, place, "`persist_to`", &["database_name", "collection", "search_by"]);
    let database = database(place, reader, origin);
    let mut to = PersistTo::new(database, words(reader, place, "collection").unwrap_or_default());
    if let Some(search) = words(reader, place, "search_by") {
        to.search_by = search;
    }
    Some(to)
}

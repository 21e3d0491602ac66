//! What the platform says of the project, under the names that published workflows know it by.

use super::database::Query;
use super::{Definition, File, FileFormat, Kind, Session, Source, Variables};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tenure_cards::card::Environ;
use tenure_core::Error;

/// The older name of `app_id`.
pub(super) const ENTERPRISE_ID: &str = "enterprise_id";
/// The names of what files of the project say.
const OVERVIEWS: [&str; 2] = ["concept_overview", "schema_overview"];
/// Says that chats get the overviews of files.
const CONTEXT_AWARE: &str = "CONTEXT_AWARE";
/// Says that chats get to know a database, which one, and how much of it is described.
const INCLUDE_SCHEMA: &str = "CONTEXT_INCLUDE_SCHEMA";
const SCHEMA_DATABASE: &str = "CONTEXT_SCHEMA_DB";
const SCHEMA_LENGTH: &str = "CONTEXT_SCHEMA_TRUNCATE_CHARS";
/// The characters of an overview, unless the environment says otherwise.
const LENGTH: usize = 4000;

/// A variable that the platform provides, unless the workflow declares its own of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provided {
    /// `enterprise_id`: the older name of `app_id`.
    EnterpriseId,
    /// `concept_overview`: the text of the project's file.
    ConceptOverview,
    /// `schema_overview`: the text of the project's file, or else a description of the database.
    SchemaOverview,
    /// `database_schema_available`: whether the database is described.
    SchemaAvailable,
    /// `database_schema_db`: the name of the database that is described.
    SchemaDatabase,
    /// `collections_first_docs_full`: the first document of each of its collections.
    FirstDocuments,
}

/// The names and types of what is provided, and what agents read of it.
const ALL: [(Provided, &str, Kind, &str); 6] = [
    (Provided::EnterpriseId, ENTERPRISE_ID, Kind::Str, "The app that the chat belongs to"),
    (Provided::ConceptOverview, OVERVIEWS[0], Kind::Str, "What the project is about"),
    (Provided::SchemaOverview, OVERVIEWS[1], Kind::Str, "The collections of the database"),
    (
        Provided::SchemaAvailable,
        "database_schema_available",
        Kind::Bool,
        "Whether the database is described",
    ),
    (Provided::SchemaDatabase, "database_schema_db", Kind::Str, "The database that is described"),
    (
        Provided::FirstDocuments,
        "collections_first_docs_full",
        Kind::Dict,
        "The first document of each collection",
    ),
];

impl Provided {
    /// The definitions of all of them.
    pub fn definitions() -> impl Iterator<Item = Definition> {
        ALL.into_iter().map(|(provided, name, kind, description)| {
            Definition::new(name, kind, Source::Provided(provided)).described(description)
        })
    }
}

/// Which database chats get to know, and whether they do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedSchema {
    /// Whether they do also if `CONTEXT_INCLUDE_SCHEMA` is not set.
    pub is_included: bool,
    /// The database, if `CONTEXT_SCHEMA_DB` is not set. None means the only one that there is.
    pub database: Option<String>,
}

impl DescribedSchema {
    /// The database of these that chats get to know; none if they do not.
    pub(crate) fn database_of<'d>(
        &self,
        environ: &Environ,
        mut databases: impl Iterator<Item = &'d String>,
    ) -> Option<String> {
        if !self.is_included && !is_switched_on(environ, INCLUDE_SCHEMA) {
            return None;
        }
        let said = environ.value(SCHEMA_DATABASE).filter(|it| !it.trim().is_empty());
        let only = databases.next().filter(|_| databases.next().is_none());
        said.or_else(|| self.database.clone()).or_else(|| only.cloned())
    }
}

fn is_switched_on(environ: &Environ, variable: &str) -> bool {
    let said = environ.value(variable);
    said.is_some_and(|said| Kind::Bool.read(&said) == Ok(Value::Bool(true)))
}

impl Variables {
    /// The files that chats get the overviews from, if they get them.
    pub(super) fn overview_files(&self) -> Vec<(String, Kind, File)> {
        if !self.aware && !is_switched_on(&self.environ, CONTEXT_AWARE) {
            return Vec::new();
        }
        let named = OVERVIEWS.iter().zip(&self.overviews);
        let files = named.filter_map(|(name, path)| Some((*name, path.as_ref()?)));
        let own = files.filter(|(name, _)| self.is_provided(name));
        own.map(|(name, path)| (name.to_owned(), Kind::Str, File::new(path, FileFormat::Text)))
            .collect()
    }

    /// Whether a variable is none of the workflow's own.
    fn is_provided(&self, name: &str) -> bool {
        self.get(name).is_none_or(|it| matches!(it.source, Source::Provided(_)))
    }

    /// Whether the platform sets the variable of this name, which the workflow does not declare.
    pub(super) fn is_of_platform(&self, name: &str) -> bool {
        let overview = OVERVIEWS.iter().position(|it| *it == name);
        let has_file = overview.is_some_and(|at| self.overviews[at].is_some());
        let is_known = || ALL[1..].iter().any(|(_, known, _, _)| *known == name);
        self.get(name).is_none() && (has_file || is_known() && self.described_database().is_some())
    }

    /// The database that chats get to know; none if they do not.
    fn described_database(&self) -> Option<String> {
        self.described.database_of(&self.environ, self.databases.keys())
    }
}

impl Session {
    /// Reads what the platform provides. What is mentioned nowhere is there only if there is
    /// something to say.
    pub(super) async fn load_provided(
        &self,
        values: &mut BTreeMap<String, Value>,
    ) -> Result<(), Error> {
        let variables = &self.variables;
        let name = variables.described_database();
        let described = match &name {
            Some(name) => Some(self.describe(name).await?),
            None => None,
        };
        for (provided, key, _, _) in ALL {
            if !variables.is_provided(key) || values.get(key).is_some_and(|it| !it.is_null()) {
                continue;
            }
            let value = match (provided, &described) {
                (Provided::EnterpriseId, _) => json!(self.keys.app_id),
                (Provided::SchemaAvailable, described) => described.is_some().into(),
                (Provided::SchemaDatabase, Some(_)) => json!(name),
                (Provided::SchemaOverview, Some((overview, _))) => json!(overview),
                (Provided::FirstDocuments, Some((_, first))) => Value::Object(first.clone()),
                _ => Value::Null,
            };
            let is_said = described.is_some() && provided != Provided::EnterpriseId;
            if variables.get(key).is_some() || is_said && !value.is_null() {
                values.insert(key.to_owned(), value);
            }
        }
        Ok(())
    }

    /// A description of a database, and the first document of each of its collections.
    async fn describe(&self, name: &str) -> Result<(String, Map<String, Value>), Error> {
        let database = self.database(OVERVIEWS[1], name)?;
        let wrong = |error| Error::orchestration(format!("`{}`: {error}", OVERVIEWS[1]));
        let collections = self.within(database.collections()).await.map_err(wrong)?;
        let mut overview = format!("DATABASE: {name}\nTOTAL COLLECTIONS: {}\n", collections.len());
        let mut first = Map::new();
        for collection in collections {
            let found = self.within(database.find(&collection, &Query::new(), 1)).await;
            let Some(mut document) = found.map_err(wrong)?.into_iter().next() else {
                first.insert(collection, json!({ "_note": "empty_collection" }));
                continue;
            };
            document.retain(|field, _| field != "_id");
            let of_app = ["app_id", ENTERPRISE_ID].iter().any(|it| document.contains_key(*it));
            let mark = if of_app { " [app-specific]" } else { "" };
            overview += &format!("\n{}{mark}:\n  Fields:\n", collection.to_uppercase());
            for (field, value) in &document {
                overview += &format!("    - {field}: {}\n", type_name(value));
            }
            first.insert(collection, Value::Object(document));
        }
        Ok((self.shortened(overview), first))
    }

    fn shortened(&self, overview: String) -> String {
        let said = self.variables.environ.value(SCHEMA_LENGTH);
        let most = said.and_then(|it| it.trim().parse().ok()).unwrap_or(LENGTH);
        let Some((end, _)) = overview.char_indices().nth(most) else { return overview };
        let left = overview[end..].chars().count();
        format!("{}... [truncated {left} chars]", &overview[..end])
    }
}

/// The name that Python has for the type of a value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(_) => "dict",
    }
}

//! `[databases]` and `[context]` of `tenure.toml`.

use super::config::ContextSettings;
use super::confine::{ConfineError, confine, plain};
use super::reader::{Settings, span};
use crate::diagnostic::Code;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

pub(super) const DATABASES: &str = "databases";
pub(super) const CONTEXT: &str = "context";

const FROM: &str = "the path starts from the folder of tenure.toml and stays beneath it";

/// The file of each database. `folder` is the project's, resolved.
pub(super) fn read(
    reader: &mut Settings<'_>,
    root: &DeTable<'_>,
    folder: &Path,
) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    let Some(databases) = reader.table(root, DATABASES) else { return files };
    for key in databases.keys() {
        let name = key.get_ref().as_ref();
        let Some(database) = reader.table_in(databases, DATABASES, name) else { continue };
        reader.only(database, &format!("[databases.{name}]"), &["path"]);
        let setting = format!("databases.{name}.path");
        match reader.text(database, &setting, "path") {
            Some((text, at)) => match database_file(folder, &text) {
                Ok(file) => {
                    files.insert(name.to_owned(), file);
                }
                Err(what) => {
                    let message = format!("`{setting}` names `{text}`, which {what}");
                    reader.problem(Code::BadSetting, at, message, FROM);
                }
            },
            None if database.contains_key("path") => {}
            None => {
                let message = format!("the database `{name}` has no file");
                let help = "add path = \"data/name.sqlite\"";
                reader.problem(Code::BadSetting, span(key), message, help);
            }
        }
    }
    files
}

/// Where a database is. It is made when it is first used, so its folder is what has to be there.
fn database_file(root: &Path, text: &str) -> Result<PathBuf, String> {
    match confine(root, root, Path::new(text)) {
        Ok(found) if found.is_file() => return Ok(found),
        Ok(_) => return Err("is not a file".to_owned()),
        Err(ConfineError::Missing) => {}
        Err(error) => return Err(error.to_string()),
    }
    let full = plain(&root.join(text));
    let (Some(folder), Some(name)) = (full.parent(), full.file_name()) else {
        return Err("is not a file".to_owned());
    };
    // A link to a file that is not there would make the file wherever it leads.
    if full.is_symlink() {
        return Err("is a link to nothing".to_owned());
    }
    match confine(root, root, folder) {
        Ok(folder) if folder.is_dir() => Ok(folder.join(name)),
        Ok(_) => Err("is in no folder".to_owned()),
        Err(ConfineError::Missing) => Err("is in a folder that is not there".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What workflows get to know of the project.
pub(super) fn read_context(
    reader: &mut Settings<'_>,
    root: &DeTable<'_>,
    folder: &Path,
) -> ContextSettings {
    let mut settings = ContextSettings::default();
    let Some(context) = reader.table(root, CONTEXT) else { return settings };
    let known =
        ["aware", "concept_overview", "schema_overview", "include_schema", "schema_database"];
    reader.only(context, "[context]", &known);
    let mut truth =
        |key: &str| match context.get(key).map(|found| (found, found.get_ref().as_bool())) {
            None => false,
            Some((_, Some(truth))) => truth,
            Some((found, None)) => {
                reader.wrong(&format!("context.{key}"), "true or false", found);
                false
            }
        };
    settings.aware = truth("aware");
    settings.include_schema = truth("include_schema");
    settings.schema_database = schema_database(reader, root, context);
    settings.concept_overview = overview(reader, context, "concept_overview", folder);
    settings.schema_overview = overview(reader, context, "schema_overview", folder);
    settings
}

/// The database that chats get to know: one that is declared.
fn schema_database(
    reader: &mut Settings<'_>,
    root: &DeTable<'_>,
    context: &DeTable<'_>,
) -> Option<String> {
    let (name, at) = reader.text(context, "context.schema_database", "schema_database")?;
    let databases = root.get(DATABASES).and_then(|it| it.get_ref().as_table());
    if databases.is_some_and(|it| it.contains_key(name.as_str())) {
        return Some(name);
    }
    let message = format!("`context.schema_database` names `{name}`, which is no database");
    let help = format!("declare it: [databases.{name}] with its path");
    reader.problem(Code::BadSetting, at, message, &help);
    None
}

fn overview(
    reader: &mut Settings<'_>,
    context: &DeTable<'_>,
    key: &str,
    folder: &Path,
) -> Option<PathBuf> {
    let name = format!("context.{key}");
    let (text, at) = reader.text(context, &name, key)?;
    let found = match confine(folder, folder, Path::new(&text)) {
        Ok(file) if file.is_file() => return Some(file),
        Ok(_) => "is not a file".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("`{name}` names `{text}`, which {found}");
    reader.problem(Code::BadSetting, at, message, FROM);
    None
}

#[cfg(test)]
mod tests {
    use crate::project::Project;

    fn project(text: &str) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("data")).expect("a folder");
        std::fs::write(folder.path().join("concept.md"), "the concept").expect("a file");
        std::fs::write(folder.path().join("tenure.toml"), text).expect("a file");
        let project = Project::find(folder.path());
        (folder, project)
    }

    #[test]
    fn databases_and_overviews_are_files_beneath_the_project() {
        let (_folder, project) = project(
            "[databases.shop]\npath = \"data/shop.sqlite\"\n[context]\naware = true\n\
             concept_overview = \"concept.md\"\ninclude_schema = true\nschema_database = \"shop\"\n",
        );
        assert!(project.report().is_empty(), "{:?}", project.report());
        assert_eq!(project.config.databases["shop"], project.root.join("data/shop.sqlite"));
        assert!(project.config.context.aware);
        let overview = project.config.context.concept_overview.as_deref();
        assert_eq!(overview, Some(&*project.root.join("concept.md")));
        assert!(project.config.context.include_schema);
        assert_eq!(project.config.context.schema_database.as_deref(), Some("shop"));
    }

    #[test]
    fn what_is_wrong_with_them_is_said_where_it_stands() {
        let (_folder, project) = project(
            "[databases.a]\npath = \"../a.sqlite\"\n[databases.b]\n[databases.c]\n\
             path = \"gone/c.sqlite\"\nkind = \"x\"\n[databases.d]\npath = \"data\"\n\
             [context]\naware = \"yes\"\nschema_overview = \"gone.md\"\nschema = 1\n\
             schema_database = \"x\"\n",
        );
        let said: Vec<_> = project
            .report()
            .iter()
            .map(|it| {
                format!("{}: {}", it.source.line_col(it.span.start as usize).line, it.message)
            })
            .collect();
        assert_eq!(
            said,
            [
                "2: `databases.a.path` names `../a.sqlite`, which is outside of the project",
                "3: the database `b` has no file",
                "5: `databases.c.path` names `gone/c.sqlite`, which is in a folder that is not \
                 there",
                "6: `kind` is not a setting of [databases.c]",
                "8: `databases.d.path` names `data`, which is not a file",
                "10: `context.aware` must be true or false, but is of type string",
                "11: `context.schema_overview` names `gone.md`, which is not there",
                "12: `schema` is not a setting of [context]",
                "13: `context.schema_database` names `x`, which is no database",
            ]
        );
        assert!(project.config.databases.is_empty());
    }
}

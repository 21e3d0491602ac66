//! A database of documents in one SQLite file.
//!
//! A collection is a table of two columns: `id`, which numbers the documents, and `document`, which
//! is their JSON. So the file can be read with any tool that knows SQLite's `json_extract`.

use super::database::{Database, DatabaseError, Document, Query};
use super::{Index, shown};
use async_trait::async_trait;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params_from_iter};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long another program may hold the file.
const BUSY: Duration = Duration::from_secs(5);

/// A database in a file, which is made when it is first used. Clones are the same database.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl Sqlite {
    /// The database in this file. Nothing is opened yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let inner = Inner { path: path.into(), connection: Mutex::new(None) };
        Self { inner: Arc::new(inner) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Does something with the file, on a thread where that may take its time. Whoever waits for it
    /// may go away; what was begun is done.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let inner = self.inner.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut held = inner.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = match &mut *held {
                Some(connection) => connection,
                None => held.insert(open(&inner.path)?),
            };
            work(connection)
        });
        let file = self.inner.path.file_name().unwrap_or_default().to_string_lossy();
        match done.await {
            Ok(result) => {
                result.map_err(|error| DatabaseError::new(format!("database `{file}`: {error}")))
            }
            Err(_) => Err(DatabaseError::new(format!("database `{file}`: its thread is gone"))),
        }
    }
}

fn open(path: &Path) -> Result<Connection, rusqlite::Error> {
    // A file name that begins with `file:` is a name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    Ok(connection)
}

#[async_trait]
impl Database for Sqlite {
    async fn find(
        &self,
        collection: &str,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Document>, DatabaseError> {
        let (table, clause) = (table(collection)?, Clause::of(query)?);
        let collection = collection.to_owned();
        let texts: Vec<String> = self
            .with(move |connection| {
                if !exists(connection, &collection)? {
                    return Ok(Vec::new());
                }
                let sql = format!(
                    "SELECT document FROM {table} WHERE {} ORDER BY id LIMIT {}",
                    clause.sql,
                    i64::try_from(limit).unwrap_or(i64::MAX)
                );
                let mut statement = connection.prepare(&sql)?;
                let rows =
                    statement.query_map(params_from_iter(clause.values), |row| row.get(0))?;
                rows.collect::<Result<Vec<String>, _>>()
            })
            .await?;
        texts.iter().map(|text| document(text)).collect()
    }

    async fn insert(&self, collection: &str, document: &Document) -> Result<(), DatabaseError> {
        let (table, text) = (table(collection)?, text(document));
        self.with(move |connection| {
            make(connection, &table)?;
            connection.execute(&format!("INSERT INTO {table} (document) VALUES (?1)"), [text])?;
            Ok(())
        })
        .await
    }

    async fn update(
        &self,
        collection: &str,
        query: &Query,
        fields: &Document,
    ) -> Result<usize, DatabaseError> {
        let (table, clause, fields) = (table(collection)?, Clause::of(query)?, fields.clone());
        let collection = collection.to_owned();
        self.with(move |connection| {
            if !exists(connection, &collection)? {
                return Ok(0);
            }
            // `json_set` and not `json_patch`: a field that is null is set, and not taken away.
            let mut sql = "document".to_owned();
            let mut values = clause.values;
            for (name, value) in &fields {
                values.push(Sql::Text(value.to_string()));
                let at = values.len();
                sql = format!("json_set({sql}, {}, json(?{at}))", literal(&path(name)));
            }
            let sql = format!("UPDATE {table} SET document = {sql} WHERE {}", clause.sql);
            connection.execute(&sql, params_from_iter(values))
        })
        .await
    }

    async fn put(
        &self,
        collection: &str,
        query: &Query,
        document: &Document,
    ) -> Result<(), DatabaseError> {
        let (table, clause, text) = (table(collection)?, Clause::of(query)?, text(document));
        self.with(move |connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            make(&transaction, &table)?;
            let sql = format!("SELECT id FROM {table} WHERE {} ORDER BY id LIMIT 1", clause.sql);
            let found: Option<i64> = transaction
                .query_row(&sql, params_from_iter(clause.values), |row| row.get(0))
                .optional()?;
            match found {
                Some(id) => transaction.execute(
                    &format!("UPDATE {table} SET document = ?1 WHERE id = ?2"),
                    (text, id),
                )?,
                None => transaction
                    .execute(&format!("INSERT INTO {table} (document) VALUES (?1)"), [text])?,
            };
            transaction.commit()
        })
        .await
    }

    async fn collections(&self) -> Result<Vec<String>, DatabaseError> {
        self.with(|connection| {
            let sql = "SELECT tables.name FROM sqlite_schema AS tables \
                       JOIN pragma_table_info(tables.name) AS columns \
                       WHERE tables.type = 'table' AND columns.name = 'document' ORDER BY 1";
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect::<Result<Vec<String>, _>>()
        })
        .await
    }

    async fn index(&self, collection: &str, index: &Index) -> Result<(), DatabaseError> {
        let table = table(collection)?;
        let columns: Vec<_> = index.fields.iter().map(|field| extract(field)).collect();
        let name = quoted(&format!("{collection}:{}", index.fields.join(",")))?;
        let unique = if index.unique { "UNIQUE " } else { "" };
        let sql = format!(
            "CREATE {unique}INDEX IF NOT EXISTS {name} ON {table} ({})",
            columns.join(", ")
        );
        self.with(move |connection| {
            make(connection, &table)?;
            connection.execute(&sql, []).map(drop)
        })
        .await
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sqlite").field(&self.inner.path).finish()
    }
}

/// What a query is in SQL.
struct Clause {
    sql: String,
    values: Vec<Sql>,
}

impl Clause {
    fn of(query: &Query) -> Result<Self, DatabaseError> {
        let (mut parts, mut values) = (Vec::new(), Vec::new());
        for (field, value) in query.fields() {
            let value = match value {
                Value::Null => Sql::Null,
                Value::String(text) => Sql::Text(text.clone()),
                // SQLite has no truth of its own; JSON's comes out as 1 and 0.
                Value::Bool(it) => Sql::Integer((*it).into()),
                Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(whole), _) => Sql::Integer(whole),
                    (None, Some(real)) => Sql::Real(real),
                    (None, None) => Sql::Text(number.to_string()),
                },
                parts => {
                    let shown = shown(parts);
                    return Err(DatabaseError::new(format!(
                        "`{field}` cannot be compared with {shown}; compare with a plain value"
                    )));
                }
            };
            values.push(value);
            parts.push(format!("{} IS ?{}", extract(field), values.len()));
        }
        let sql = if parts.is_empty() { "1".to_owned() } else { parts.join(" AND ") };
        Ok(Self { sql, values })
    }
}

fn extract(field: &str) -> String {
    format!("json_extract(document, {})", literal(&path(field)))
}

/// The path of a dotted field, each part quoted.
fn path(field: &str) -> String {
    let parts = field.split('.').map(|part| format!(".\"{}\"", part.replace('"', "\\\"")));
    format!("${}", parts.collect::<String>())
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn quoted(name: &str) -> Result<String, DatabaseError> {
    match name.contains('\0') {
        true => Err(DatabaseError::new("a name has a zero in it")),
        false => Ok(format!("\"{}\"", name.replace('"', "\"\""))),
    }
}

fn table(collection: &str) -> Result<String, DatabaseError> {
    let is_own = collection.get(..7).is_some_and(|it| it.eq_ignore_ascii_case("sqlite_"));
    if collection.is_empty() || is_own {
        return Err(DatabaseError::new(format!("`{collection}` cannot be a collection's name")));
    }
    quoted(collection)
}

fn exists(connection: &Connection, collection: &str) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 \
               COLLATE NOCASE";
    Ok(connection.query_row(sql, [collection], |_| Ok(())).optional()?.is_some())
}

fn make(connection: &Connection, table: &str) -> Result<(), rusqlite::Error> {
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {table} \
         (id INTEGER PRIMARY KEY, document TEXT NOT NULL CHECK (json_valid(document)))"
    );
    connection.execute(&sql, []).map(drop)
}

fn text(document: &Document) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

fn document(text: &str) -> Result<Document, DatabaseError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(document)) => Ok(document),
        _ => Err(DatabaseError::new(format!("a document is no object: {}", shown(&text.into())))),
    }
}

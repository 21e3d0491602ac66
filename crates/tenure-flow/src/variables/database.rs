//! What a workflow needs of a database: documents in collections.

use super::Index;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt;

/// A document: an object.
pub type Document = Map<String, Value>;

/// The fields that a document has to have, and with which values. A field of a field is written
/// `outer.inner`; null is also the value of a field that is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    fields: Vec<(String, Value)>,
}

impl Query {
    /// Every document.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those that have this value in this field.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.push((field.into(), value.into()));
        self
    }

    /// The fields and their values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields.iter().map(|(field, value)| (field.as_str(), value))
    }
}

/// Why a database could not do what it was asked.
#[derive(Debug)]
pub struct DatabaseError {
    message: String,
}

impl DatabaseError {
    /// What went wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DatabaseError {}

/// A database of documents. [`Sqlite`](super::Sqlite) is the one that comes along.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// The documents that a query finds, the oldest first, at most `limit` of them. A collection
    /// that is not there has none.
    async fn find(
        &self,
        collection: &str,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Document>, DatabaseError>;

    /// Adds a document.
    async fn insert(&self, collection: &str, document: &Document) -> Result<(), DatabaseError>;

    /// Sets these fields of every document that a query finds, and says how many those are.
    async fn update(
        &self,
        collection: &str,
        query: &Query,
        fields: &Document,
    ) -> Result<usize, DatabaseError>;

    /// Puts a document in the place of the first that a query finds, or adds it if there is none.
    /// Nobody else comes in between.
    async fn put(
        &self,
        collection: &str,
        query: &Query,
        document: &Document,
    ) -> Result<(), DatabaseError>;

    /// Makes an index, if it is not there yet.
    async fn index(&self, collection: &str, index: &Index) -> Result<(), DatabaseError>;

    /// The names of the collections, for chats that get to know the database.
    async fn collections(&self) -> Result<Vec<String>, DatabaseError> {
        Err(DatabaseError::new("the database does not say which collections it has"))
    }
}

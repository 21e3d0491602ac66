//! Reading what is kept apart: long texts and lists of messages, each checked against its hash.

use super::list::{self, Base, Part};
use super::pack::{Kind, Parts, references, unpack};
use super::sum::{Hash, hash, hash_of_list, hex, unhex};
use crate::db::StoreFile;
use crate::error::{Explain, StoreError};
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// What was read lately. The lists of a run follow each other, and share nearly all their messages.
#[derive(Default)]
pub(crate) struct Shelf {
    lists: HashMap<Hash, Arc<Vec<Hash>>>,
    /// Each with its length as it is stored.
    messages: HashMap<Hash, (Arc<Value>, usize)>,
}

/// So many lists and messages are kept.
const LISTS: usize = 16;
const MESSAGES: usize = 4096;
/// The most bytes that one record of a store that is not known to be its user's stands for. A few
/// bytes of it could name the same long text any number of times.
const UNKNOWN: usize = 64 << 20;

impl Shelf {
    /// A stored text as the value that was written.
    pub(crate) fn expand(
        &mut self,
        conn: &Connection,
        file: &StoreFile,
        text: &str,
    ) -> Result<Value, StoreError> {
        let value = serde_json::from_str(text).map_err(|error| {
            StoreError::damaged(file, format_args!("a record is no JSON: {error}"))
        })?;
        if text.contains("{\"$") {
            unpack(value, &mut Reader::new(self, conn, file))
        } else {
            Ok(value)
        }
    }

    /// A list that the next one can be said by.
    pub(super) fn base(
        &mut self,
        conn: &Connection,
        file: &StoreFile,
        hash: &Hash,
    ) -> Result<Base, StoreError> {
        let mut reader = Reader::new(self, conn, file);
        let (_, depth, _) = reader.node(hash)?;
        let items = reader.list(hash)?.to_vec();
        Ok(Base { hash: *hash, depth, items })
    }

    /// The hashes of the messages of the first list that a stored text refers to.
    pub(crate) fn items(
        &mut self,
        conn: &Connection,
        file: &StoreFile,
        text: &str,
    ) -> Result<Vec<Hash>, StoreError> {
        match references(text).find(|(kind, _)| *kind == Kind::List) {
            Some((_, hash)) => Ok(self.list(conn, file, &hash)?.to_vec()),
            None => Ok(Vec::new()),
        }
    }

    /// The hashes of the messages of a list, and of the lists it is said by.
    pub(super) fn list(
        &mut self,
        conn: &Connection,
        file: &StoreFile,
        hash: &Hash,
    ) -> Result<Arc<Vec<Hash>>, StoreError> {
        Reader::new(self, conn, file).list(hash)
    }
}

struct Reader<'a> {
    shelf: &'a mut Shelf,
    conn: &'a Connection,
    file: &'a StoreFile,
    /// The bytes that may still be read.
    room: usize,
}

type Node = (Option<Hash>, usize, Vec<Part>);

impl<'a> Reader<'a> {
    fn new(shelf: &'a mut Shelf, conn: &'a Connection, file: &'a StoreFile) -> Self {
        let room = if file.seals().is_some() { usize::MAX } else { UNKNOWN };
        Self { shelf, conn, file, room }
    }

    fn take(&mut self, bytes: usize) -> Result<(), StoreError> {
        let left = self.room.checked_sub(bytes).ok_or_else(|| {
            let found = format!("a record stands for more than {} MiB", UNKNOWN >> 20);
            StoreError::damaged(self.file, found)
        });
        self.room = left?;
        Ok(())
    }

    fn wrong(&self, table: &str, hash: &Hash, wrong: &str) -> StoreError {
        let found = format!("table {table}, the row with the hash {}: {wrong}", hex(hash));
        StoreError::damaged(self.file, found)
    }

    fn blob(&self, wanted: &Hash) -> Result<String, StoreError> {
        let what = "read a text that is kept apart";
        let sql = "SELECT body FROM blobs WHERE hash = ?1";
        let mut find = self.conn.prepare_cached(sql).explain(self.file, what)?;
        let body: Option<String> =
            find.query_row([&wanted[..]], |row| row.get(0)).optional().explain(self.file, what)?;
        match body {
            Some(body) if hash(body.as_bytes()) == *wanted => Ok(body),
            Some(_) => Err(self.wrong("blobs", wanted, "its text is another one")),
            None => Err(self.wrong("blobs", wanted, "it is missing")),
        }
    }

    fn node(&self, hash: &Hash) -> Result<Node, StoreError> {
        let what = "read a list of messages";
        let sql = "SELECT parent, depth, body FROM messages WHERE hash = ?1";
        let mut find = self.conn.prepare_cached(sql).explain(self.file, what)?;
        let found = find.query_row([&hash[..]], |row| {
            Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
        });
        let Some((parent, depth, body)) = found.optional().explain(self.file, what)? else {
            return Err(self.wrong("messages", hash, "it is missing"));
        };
        let parent = parent.map(|parent| parent.try_into()).transpose();
        match (parent, usize::try_from(depth), list::read(&body)) {
            (Ok(parent), Ok(depth), Some(parts)) => Ok((parent, depth, parts)),
            _ => Err(self.wrong("messages", hash, "it cannot be read")),
        }
    }

    fn list(&mut self, wanted: &Hash) -> Result<Arc<Vec<Hash>>, StoreError> {
        if let Some(items) = self.shelf.lists.get(wanted) {
            return Ok(items.clone());
        }
        let (mut nodes, mut at) = (Vec::new(), Some(*wanted));
        let mut items: Arc<Vec<Hash>> = Arc::default();
        while let Some(hash) = at {
            if let Some(known) = self.shelf.lists.get(&hash) {
                items = known.clone();
                break;
            }
            let (parent, depth, parts) = self.node(&hash)?;
            // Depths fall, so a damaged file cannot send us round in circles.
            if nodes.last().is_some_and(|(_, last)| depth >= *last) {
                return Err(self.wrong("messages", &hash, "its depth is wrong"));
            }
            nodes.push((parts, depth));
            at = parent;
        }
        for (parts, _) in nodes.iter().rev() {
            let applied = list::apply(&items, parts);
            items = Arc::new(applied.ok_or_else(|| {
                self.wrong("messages", wanted, "it takes over what its parent does not have")
            })?);
        }
        if hash_of_list(&items) != *wanted {
            return Err(self.wrong("messages", wanted, "its messages are other ones"));
        }
        if self.shelf.lists.len() >= LISTS {
            self.shelf.lists.clear();
        }
        self.shelf.lists.insert(*wanted, items.clone());
        Ok(items)
    }

    fn message(&mut self, hash: &Hash) -> Result<Arc<Value>, StoreError> {
        if let Some((message, length)) = self.shelf.messages.get(hash) {
            let (message, length) = (message.clone(), *length);
            self.take(length)?;
            return Ok(message);
        }
        let text = self.blob(hash)?;
        self.take(text.len())?;
        let message: Value = serde_json::from_str(&text)
            .map_err(|error| self.wrong("blobs", hash, &format!("it is no message: {error}")))?;
        let message = Arc::new(message);
        if self.shelf.messages.len() >= MESSAGES {
            self.shelf.messages.clear();
        }
        self.shelf.messages.insert(*hash, (message.clone(), text.len()));
        Ok(message)
    }

    fn hash(&self, text: &str) -> Result<Hash, StoreError> {
        unhex(text).ok_or_else(|| {
            StoreError::damaged(
                self.file,
                format_args!("a record refers to `{text}`, which is no hash"),
            )
        })
    }
}

impl Parts for Reader<'_> {
    type Error = StoreError;

    fn text(&mut self, hash: &str) -> Result<String, StoreError> {
        let text = self.blob(&self.hash(hash)?)?;
        self.take(text.len())?;
        Ok(text)
    }

    fn messages(&mut self, hash: &str) -> Result<Vec<Value>, StoreError> {
        let items = self.list(&self.hash(hash)?)?;
        items.iter().map(|item| Ok(Value::clone(&*self.message(item)?))).collect()
    }
}

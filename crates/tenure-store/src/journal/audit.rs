//! Checking every run, and everything that is kept apart.

use super::list::{self, Part};
use super::pack::{Kind, references};
use super::read::walk;
use super::shelf::Shelf;
use super::sum::{Hash, hash, hex};
use crate::db::{Fault, StoreFile};
use crate::error::{Explain, StoreError};
use rusqlite::Connection;
use std::collections::{HashMap, HashSet};

/// What was found in the runs of a file.
pub(crate) struct Audit {
    pub(crate) runs: u64,
    pub(crate) events: u64,
    pub(crate) faults: Vec<Fault>,
}

/// Everything that rows refer to.
#[derive(Default)]
pub(crate) struct Referred {
    texts: HashSet<Hash>,
    lists: HashSet<Hash>,
}

impl Audit {
    /// Looks at everything.
    pub(crate) fn of(conn: &Connection, path: &StoreFile) -> Result<Self, StoreError> {
        let mut audit = Self { runs: 0, events: 0, faults: Vec::new() };
        audit.rows(conn, path)?;
        audit.scopes(conn, path)?;
        let referred = Referred::find(conn, path)?;
        audit.contents(conn, path, &referred)?;
        Ok(audit)
    }

    fn rows(&mut self, conn: &Connection, path: &StoreFile) -> Result<(), StoreError> {
        let what = "check the runs";
        let known: Vec<(String, String, Option<i64>)> = conn
            .prepare("SELECT id, status, compacted FROM runs")
            .and_then(|mut all| {
                all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
            })
            .explain(path, what)?;
        let recorded: HashSet<String> = conn
            .prepare("SELECT DISTINCT run FROM events")
            .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect())
            .explain(path, what)?;
        self.runs = known.len() as u64;
        for run in &recorded {
            let mut last_is_end = false;
            let walked = walk(conn, path, run, 1, usize::MAX, |row| {
                last_is_end = row.of()? == "run.ended";
                Ok(())
            });
            match walked {
                Ok(count) => self.events += count,
                Err(error) if error.is_damaged() => {
                    self.faults.push(Fault::new("events", format!("run {run}"), error.found()));
                    continue;
                }
                Err(error) => return Err(error),
            }
            match known.iter().find(|(id, ..)| id == run) {
                None => {
                    let wrong = "it has events, but is not in table runs";
                    self.faults.push(Fault::new("events", format!("run {run}"), wrong));
                }
                Some((_, status, _)) if status == "ended" && !last_is_end => {
                    let wrong = "it is over, but the end of its events is missing";
                    self.faults.push(Fault::new("events", format!("run {run}"), wrong));
                }
                Some((_, status, _)) if status != "ended" && last_is_end => {
                    let wrong = "its row is from before its end";
                    self.faults.push(Fault::new("runs", format!("run {run}"), wrong));
                }
                Some(_) => {}
            }
        }
        for (id, _, compacted) in &known {
            if compacted.is_none() && !recorded.contains(id) {
                let wrong = "its events are missing";
                self.faults.push(Fault::new("runs", format!("run {id}"), wrong));
            }
        }
        Ok(())
    }

    /// What began ends once: at most once in a run that goes on, exactly once in one that is over.
    fn scopes(&mut self, conn: &Connection, path: &StoreFile) -> Result<(), StoreError> {
        let what = "check what began and ended";
        let query = "SELECT e.run, e.name, sum(e.type = 'scope.began'), sum(e.type = 'scope.ended'), \
                     coalesce(r.status = 'ended', 0) \
                     FROM events e LEFT JOIN runs r ON r.id = e.run \
                     WHERE e.type IN ('scope.began', 'scope.ended') GROUP BY e.run, e.name";
        let mut scopes = conn.prepare(query).explain(path, what)?;
        let mut rows = scopes.query([]).explain(path, what)?;
        while let Some(row) = rows.next().explain(path, what)? {
            let read = <(String, Option<String>, i64, i64, bool)>::try_from(row);
            let (run, name, began, ended, over) = read.explain(path, what)?;
            let wrong = match (began, ended) {
                (0, _) => "it ended, but never began".to_owned(),
                (_, 0) if over => "the run is over, but it never ended".to_owned(),
                (_, 0 | 1) => continue,
                (_, ended) => format!("it ended {ended} times"),
            };
            let row = format!("run {run}, scope {}", name.unwrap_or_default());
            self.faults.push(Fault::new("events", row, wrong));
        }
        Ok(())
    }

    /// Every text and list is what its hash says, and what rows refer to is there.
    fn contents(
        &mut self,
        conn: &Connection,
        path: &StoreFile,
        referred: &Referred,
    ) -> Result<(), StoreError> {
        let what = "check what is kept apart";
        let mut texts = HashSet::new();
        let mut all = conn.prepare("SELECT hash, body FROM blobs").explain(path, what)?;
        let mut rows = all.query([]).explain(path, what)?;
        while let Some(row) = rows.next().explain(path, what)? {
            let stored: Vec<u8> = row.get(0).explain(path, what)?;
            let body = row.get_ref(1).explain(path, what)?;
            let found = body.as_bytes().map(hash).unwrap_or_default();
            if stored == found {
                texts.insert(found);
            } else {
                let row = stored.try_into().map_or("?".to_owned(), |stored| hex(&stored));
                self.faults.push(Fault::new("blobs", row, "its text is another one"));
            }
        }
        let mut missing = |table: &str, hash: &Hash, wrong: String| {
            self.faults.push(Fault::new(table, hex(hash), wrong));
        };
        for hash in referred.texts.difference(&texts) {
            missing("blobs", hash, "a row refers to it, but it is missing".to_owned());
        }
        let nodes = nodes(conn, path)?;
        for hash in referred.lists.iter().filter(|hash| !nodes.contains_key(*hash)) {
            missing("messages", hash, "a row refers to it, but it is missing".to_owned());
        }
        let mut shelf = Shelf::default();
        for hash in nodes.keys() {
            match shelf.list(conn, path, hash) {
                Ok(items) => {
                    if let Some(item) = items.iter().find(|item| !texts.contains(*item)) {
                        missing("messages", hash, format!("its message {} is missing", hex(item)));
                    }
                }
                Err(error) if error.is_damaged() => {
                    missing("messages", hash, error.found().to_owned());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

type Nodes = HashMap<Hash, (Option<Hash>, Vec<Part>)>;

fn nodes(conn: &Connection, path: &StoreFile) -> Result<Nodes, StoreError> {
    let what = "read the lists of messages";
    let mut all = conn.prepare("SELECT hash, parent, body FROM messages").explain(path, what)?;
    let mut rows = all.query([]).explain(path, what)?;
    let mut nodes = HashMap::new();
    while let Some(row) = rows.next().explain(path, what)? {
        let hash: Vec<u8> = row.get(0).explain(path, what)?;
        let parent: Option<Vec<u8>> = row.get(1).explain(path, what)?;
        let body: String = row.get(2).explain(path, what)?;
        let hash = hash.try_into();
        let parent = parent.map(TryInto::try_into).transpose();
        let (Ok(hash), Ok(parent), Some(parts)) = (hash, parent, list::read(&body)) else {
            return Err(StoreError::damaged(path, "a row of table messages cannot be read"));
        };
        nodes.insert(hash, (parent, parts));
    }
    Ok(nodes)
}

impl Referred {
    /// Looks through every text of every table: whoever wrote one may have packed it.
    pub(crate) fn find(conn: &Connection, path: &StoreFile) -> Result<Self, StoreError> {
        let what = "look for what rows refer to";
        let columns = "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c \
                       WHERE t.schema = 'main' AND t.type = 'table' AND c.type = 'TEXT' \
                       AND t.name NOT IN ('blobs', 'messages') AND t.name NOT LIKE 'sqlite%'";
        let columns: Vec<(String, String)> = conn
            .prepare(columns)
            .and_then(|mut columns| {
                columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
            })
            .explain(path, what)?;
        let mut referred = Self::default();
        for (table, column) in columns {
            let query = format!(
                "SELECT \"{column}\" FROM \"{table}\" WHERE instr(\"{column}\", '{{\"$') > 0"
            );
            let mut texts = conn.prepare(&query).explain(path, what)?;
            let mut rows = texts.query([]).explain(path, what)?;
            while let Some(row) = rows.next().explain(path, what)? {
                let text = row.get_ref(0).explain(path, what)?;
                let Ok(text) = text.as_str() else { continue };
                for (kind, hash) in references(text) {
                    match kind {
                        Kind::Text => referred.texts.insert(hash),
                        Kind::List => referred.lists.insert(hash),
                    };
                }
            }
        }
        Ok(referred)
    }

    /// Deletes what nothing refers to: so many texts, and so many lists.
    pub(crate) fn delete_others(
        mut self,
        conn: &Connection,
        path: &StoreFile,
    ) -> Result<(u64, u64), StoreError> {
        let what = "delete what nothing refers to";
        let nodes = nodes(conn, path)?;
        let mut open: Vec<Hash> = self.lists.iter().copied().collect();
        while let Some(hash) = open.pop() {
            let Some((parent, parts)) = nodes.get(&hash) else { continue };
            let new = parts.iter().filter_map(|part| match part {
                Part::New(hash) => Some(*hash),
                Part::Kept(..) => None,
            });
            self.texts.extend(new);
            if let Some(parent) = parent
                && self.lists.insert(*parent)
            {
                open.push(*parent);
            }
        }
        let texts = delete(conn, "blobs", &self.texts).explain(path, what)?;
        let lists = delete(conn, "messages", &self.lists).explain(path, what)?;
        Ok((texts, lists))
    }
}

fn delete(conn: &Connection, table: &str, kept: &HashSet<Hash>) -> rusqlite::Result<u64> {
    let hashes: Vec<Vec<u8>> = conn
        .prepare(&format!("SELECT hash FROM {table}"))?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut delete = conn.prepare(&format!("DELETE FROM {table} WHERE hash = ?1"))?;
    let mut deleted = 0;
    for hash in hashes {
        let is_kept = <Hash>::try_from(&*hash).is_ok_and(|hash| kept.contains(&hash));
        if !is_kept {
            deleted += delete.execute([hash])? as u64;
        }
    }
    Ok(deleted)
}

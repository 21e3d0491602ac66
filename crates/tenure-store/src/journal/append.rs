//! Writing within a transaction: the next row of a run, and what it keeps apart.

use super::list::{self, Base, Part};
use super::pack::{Kind, Packed, PackedList, references};
use super::read::{pointed, sealed_chain};
use super::row::{COLUMNS, NewRow, Stored, write_link};
use super::shelf::Shelf;
use super::sum::{Chain, Hash, NO_CHAIN, Sum, hex};
use crate::db::StoreFile;
use crate::error::{Explain, StoreError};
use crate::key::Table;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::fmt::Display;

/// A transaction that others may share. What fails in it is undone; what others did in it is not.
pub(crate) struct Tx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) file: &'a StoreFile,
    pub(super) heads: &'a mut Heads,
}

/// Where the runs stand that were written to last.
#[derive(Default)]
pub(crate) struct Heads {
    runs: HashMap<Box<str>, Head>,
    /// The list of messages that a run wrote last: the next one is said by it.
    bases: HashMap<Box<str>, Base>,
    /// The row at hand and its link, in memory that is used again.
    sum: Sum,
    link: Sum,
}

struct Head {
    seq: u64,
    chain: Chain,
}

/// So many runs are remembered.
const HEADS: usize = 4096;
/// So many lists.
const BASES: usize = 512;

impl Heads {
    /// Forgets where runs stand: another process may have appended to them.
    pub(super) fn forget(&mut self) {
        self.runs.clear();
    }

    /// Forgets everything: something was undone.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.bases.clear();
    }
}

const APPEND: &str = "INSERT INTO events (run, seq, time, type, agent, instance, trace, cause, path, \
                      kind, name, ordinal, input, data, sum, chain) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

const FIRST: &str = "INSERT INTO heads (run, seq, chain) VALUES (?1, ?2, ?3)";
const LATER: &str = "UPDATE heads SET seq = ?2, chain = ?3 WHERE run = ?1";

impl Tx<'_> {
    /// The connection, within the transaction.
    pub(crate) fn conn(&self) -> &Connection {
        self.conn
    }

    /// The file, for what is said of errors.
    pub(crate) fn path(&self) -> &StoreFile {
        self.file
    }

    /// Appends a row to a run, and says which number it has.
    pub(crate) fn append(&mut self, run: &str, row: NewRow) -> Result<u64, StoreError> {
        if !self.heads.runs.contains_key(run) {
            let head = self.head(run)?;
            if self.heads.runs.len() >= HEADS {
                self.heads.clear();
            }
            self.heads.runs.insert(run.into(), head);
        }
        if let Some(data) = &row.data {
            self.keep_apart(run, data)?;
        }
        let Heads { runs, sum, link, .. } = &mut *self.heads;
        let head = runs.get_mut(run).expect("it was put there above");
        let seq = head.seq + 1;
        row.sum(run, seq as i64, sum);
        let chain = sum.chain(&head.chain);
        write_link(run, seq, &chain, link);
        let mut append =
            self.conn.prepare_cached(APPEND).explain(self.file, "append to the journal")?;
        let row = params![
            run,
            seq as i64,
            row.time,
            row.of,
            row.agent,
            row.instance,
            row.trace,
            row.cause,
            row.path,
            row.kind,
            row.name,
            row.ordinal,
            row.input_text(),
            row.data.as_ref().map(|data| &data.text),
            sum.seal_with(self.file, Table::Events, link),
            &chain[..],
        ];
        append.execute(row).explain(self.file, "append to the journal")?;
        let point = if seq == 1 { FIRST } else { LATER };
        let mut point =
            self.conn.prepare_cached(point).explain(self.file, "append to the journal")?;
        let sealed = sealed_chain(self.file, link, &chain);
        let pointed = point.execute(params![run, seq as i64, sealed]);
        if pointed.explain(self.file, "append to the journal")? != 1 {
            return Err(self.lost(run, "it has events, but no row in table heads"));
        }
        (head.seq, head.chain) = (seq, chain);
        Ok(seq)
    }

    /// Where a run stands, by the file.
    fn head(&mut self, run: &str) -> Result<Head, StoreError> {
        let last = self.last(run)?;
        Ok(last.map_or(Head { seq: 0, chain: NO_CHAIN }, |(head, _)| head))
    }

    /// The type of a run's last row, by the file.
    pub(crate) fn last_type(&mut self, run: &str) -> Result<Option<String>, StoreError> {
        Ok(self.last(run)?.map(|(_, of)| of))
    }

    fn last(&mut self, run: &str) -> Result<Option<(Head, String)>, StoreError> {
        let what = "read the end of a run";
        let query =
            format!("SELECT {COLUMNS} FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1");
        let mut last = self.conn.prepare_cached(&query).explain(self.file, what)?;
        let mut rows = last.query([run]).explain(self.file, what)?;
        let row = rows.next().explain(self.file, what)?;
        let found = row.map(|row| {
            let row = Stored(row);
            row.check(self.file, &mut self.heads.sum)?;
            Ok((Head { seq: row.seq()?, chain: row.chain()? }, row.of()?.to_owned()))
        });
        let found = found.transpose().map_err(|wrong: String| {
            self.lost(run, format!("its last row in table events: {wrong}"))
        })?;
        // To go on behind a row that is not the last would be to write another history.
        let end = found.as_ref().map(|(head, _)| (head.seq, head.chain));
        if end != pointed(self.conn, self.file, run)? {
            return Err(self.lost(run, "the last of its events are missing"));
        }
        Ok(found)
    }

    #[cold]
    fn lost(&self, run: &str, wrong: impl Display) -> StoreError {
        StoreError::damaged(self.file, format_args!("run {run}: {wrong}"))
    }

    /// Writes what is kept apart of a value. For rows of other tables, too: there `run` is whatever
    /// their lists of messages have in common.
    pub(crate) fn keep_apart(&mut self, run: &str, data: &Packed) -> Result<(), StoreError> {
        for (hash, body) in &data.blobs {
            self.blob(hash, body)?;
        }
        for list in &data.lists {
            self.list(run, list)?;
        }
        Ok(())
    }

    /// The next list of `run` is said by the first one that `earlier` refers to, a text as it is
    /// stored. For what has no writer that remembers.
    pub(crate) fn follow(&mut self, run: &str, earlier: &str) -> Result<(), StoreError> {
        let first = references(earlier).find(|(kind, _)| *kind == Kind::List);
        if let Some((_, hash)) = first
            && !self.heads.bases.contains_key(run)
        {
            let base = Shelf::default().base(self.conn, self.file, &hash)?;
            self.heads.bases.insert(run.into(), base);
        }
        Ok(())
    }

    fn blob(&self, hash: &Hash, body: &str) -> Result<(), StoreError> {
        let what = "write a text that is kept apart";
        let sql = "INSERT INTO blobs (hash, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let mut insert = self.conn.prepare_cached(sql).explain(self.file, what)?;
        insert.execute(params![&hash[..], body]).explain(self.file, what)?;
        Ok(())
    }

    fn list(&mut self, run: &str, list: &PackedList) -> Result<(), StoreError> {
        let what = "write a list of messages";
        let base = self.heads.bases.remove(run);
        let find = "SELECT depth FROM messages WHERE hash = ?1";
        let mut find = self.conn.prepare_cached(find).explain(self.file, what)?;
        let known: Option<i64> = find
            .query_row([&list.hash[..]], |row| row.get(0))
            .optional()
            .explain(self.file, what)?;
        let depth = match known {
            // It is there, and so are its messages.
            Some(depth) => usize::try_from(depth).map_err(|_| {
                let found = format!("the list of messages {} in table messages", hex(&list.hash));
                StoreError::damaged(self.file, found)
            })?,
            None => self.new_list(base.as_ref(), list)?,
        };
        if self.heads.bases.len() >= BASES {
            self.heads.bases.clear();
        }
        let base = Base { hash: list.hash, depth, items: list.items.clone() };
        self.heads.bases.insert(run.into(), base);
        Ok(())
    }

    fn new_list(&self, base: Option<&Base>, list: &PackedList) -> Result<usize, StoreError> {
        let what = "write a list of messages";
        let length = list.items.len();
        let by_base = base.and_then(|base| {
            let parts = list::difference(&base.items, &list.items);
            let depth = base.depth + 1;
            (!list::stands_alone(&parts, depth, length)).then_some((parts, Some(&base.hash), depth))
        });
        let (parts, parent, depth) = by_base
            .unwrap_or_else(|| (list.items.iter().map(|item| Part::New(*item)).collect(), None, 0));
        let mut at = 0;
        for part in &parts {
            match part {
                Part::Kept(_, count) => at += count,
                Part::New(hash) => {
                    // One without a body is known to be there.
                    if !list.bodies[at].is_empty() {
                        self.blob(hash, &list.bodies[at])?;
                    }
                    at += 1;
                }
            }
        }
        let sql = "INSERT INTO messages (hash, parent, depth, body) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.conn.prepare_cached(sql).explain(self.file, what)?;
        let parent = parent.map(|parent| &parent[..]);
        let row = params![&list.hash[..], parent, depth as i64, list::write(&parts)];
        insert.execute(row).explain(self.file, what)?;
        Ok(depth)
    }
}

//! What a store is held against: rows appended to SQLite by hand, in the same way.
//!
//! The same pragmas, the same key, as many bytes in a row, and the same grouping: one thread writes,
//! and puts what is there at the same time into one transaction. No checksums, no chain, no columns
//! to read by, no way back.

use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// So many rows share a transaction, as in the store.
const GROUP: usize = 256;

struct Row {
    run: String,
    seq: i64,
    body: Vec<u8>,
    done: oneshot::Sender<()>,
}

/// A thread that appends.
pub(crate) struct Raw {
    rows: Option<Sender<Row>>,
    thread: Option<JoinHandle<()>>,
}

impl Raw {
    /// Opens a new file.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.execute(
            "CREATE TABLE rows (run TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, \
             PRIMARY KEY (run, seq))",
            [],
        )?;
        let (rows, queue) = channel();
        let thread = std::thread::spawn(move || write(&conn, &queue));
        Ok(Self { rows: Some(rows), thread: Some(thread) })
    }

    /// Appends a row, and returns once it is on disk.
    pub(crate) async fn append(&self, run: &str, seq: i64, body: Vec<u8>) {
        let (done, acknowledged) = oneshot::channel();
        if let Some(rows) = &self.rows {
            let sent = rows.send(Row { run: run.to_owned(), seq, body, done });
            assert!(sent.is_ok(), "the thread writes until it is dropped");
        }
        acknowledged.await.expect("a row is written");
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.rows = None;
        if let Some(thread) = self.thread.take() {
            // A panic of it was seen where the row was waited for.
            let _ = thread.join();
        }
    }
}

fn write(conn: &Connection, queue: &Receiver<Row>) {
    while let Ok(first) = queue.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(row) = queue.try_recv()
        {
            group.push(row);
        }
        commit(conn, &group).expect("rows can be written");
        for row in group {
            // Whoever waited may be gone.
            let _ = row.done.send(());
        }
    }
}

fn commit(conn: &Connection, group: &[Row]) -> rusqlite::Result<()> {
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let mut insert =
        conn.prepare_cached("INSERT INTO rows (run, seq, body) VALUES (?1, ?2, ?3)")?;
    for row in group {
        insert.execute(params![row.run, row.seq, row.body])?;
    }
    conn.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// Reads every row of a run of a store, every column, and says how many there are.
pub(crate) fn read_rows(path: &Path, run: &str) -> rusqlite::Result<usize> {
    let conn = Connection::open(path)?;
    let mut select = conn.prepare("SELECT * FROM events WHERE run = ?1 ORDER BY seq")?;
    let columns = select.column_count();
    let mut rows = select.query([run])?;
    let mut read = Vec::new();
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            read.push(row.get::<_, rusqlite::types::Value>(column)?);
        }
    }
    Ok(std::hint::black_box(read).len() / columns)
}

/// How many bytes of text and numbers a row of a run has, on average.
pub(crate) fn row_bytes(path: &Path, run: &str) -> rusqlite::Result<usize> {
    let conn = Connection::open(path)?;
    let size = "SELECT AVG(length(run) + 8 + 8 + length(type) + ifnull(length(agent), 0) \
                + ifnull(length(instance), 0) + ifnull(length(trace), 0) + ifnull(length(cause), 0) \
                + ifnull(length(path), 0) + ifnull(length(kind), 0) + ifnull(length(name), 0) \
                + 4 + ifnull(length(input), 0) + ifnull(length(data), 0) + 4 + length(chain)) \
                FROM events WHERE run = ?1 AND type = 'step.recorded'";
    let bytes: f64 = conn.query_row(size, [run], |row| row.get(0))?;
    Ok(bytes.round() as usize)
}

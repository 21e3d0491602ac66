//! The table of questions: put on record, decided once, read back.
//!
//! Everything that writes takes a [`Tx`], so that it is part of what else the caller records.

use super::info::{AskInfo, AskQuery, AskStatus};
use super::row::{AskRow, COLUMNS, Checked, action_hash};
use crate::db::StoreFile;
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::journal::{NewRow, Tx, millis, time};
use crate::store::Store;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;
use std::time::SystemTime;
use tenure_core::RunId;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::step::StepKey;

/// What is said for somebody who did not answer in time.
pub(crate) const TOO_LATE: &str = "nobody answered in time";

/// A question to be put on record: without what must not be written, and ready to be sent.
pub(crate) struct NewAsk {
    row: AskRow,
    key: StepKey,
}

impl NewAsk {
    /// The question that the step `key` of `run` asks now.
    pub(crate) fn new(
        store: &Store,
        run: RunId,
        key: &StepKey,
        question: &PendingAsk,
    ) -> Result<Self, StoreError> {
        let mut whole = serde_json::to_value(question).map_err(|error| {
            let message = format!("the question of step {key} cannot be written: {error}");
            StoreError::new(StoreErrorKind::Io, message)
        })?;
        store.redact(&mut whole);
        let now = millis(SystemTime::now());
        let lasts = question.ask.expires_after;
        let lasts = lasts.map(|lasts| i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX));
        let prompt = whole["ask"]["prompt"].as_str().unwrap_or(&question.ask.prompt).to_owned();
        let row = AskRow {
            id: key.id(run),
            run: run.to_string(),
            step: key.to_string(),
            agent: question.agent.to_string(),
            hook: question.hook.as_deref().map(str::to_owned),
            tool: question.tool.as_deref().map(str::to_owned),
            prompt,
            question: whole.to_string(),
            action: action_hash(&question.ask),
            created: now,
            expires: lasts.map(|lasts| now.saturating_add(lasts)),
            status: AskStatus::Open.as_str().to_owned(),
            answer: None,
            by: None,
            decided: None,
        };
        Ok(Self { row, key: key.clone() })
    }
}

/// What is on record of a question that is asked, perhaps not for the first time.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It waits for an answer until then.
    Open { expires: Option<SystemTime> },
    /// It is decided.
    Decided(Answer),
    /// The same step asked for something else then, so no answer to that may count now.
    Other(Box<AskInfo>),
}

/// Puts a question on record, if it is not there. One whose time is over is decided here.
pub(crate) fn open(tx: &mut Tx<'_>, ask: &NewAsk) -> Result<Opened, StoreError> {
    let row = &ask.row;
    if let Some(known) = find(tx.conn(), tx.path(), &row.id)? {
        if known.row.action != row.action {
            return Ok(Opened::Other(Box::new(known.into_info(tx.path())?)));
        }
        if let Some(answer) = known.answer {
            return Ok(Opened::Decided(answer));
        }
        if known.is_due(row.created) {
            return expire_row(tx, known).map(Opened::Decided);
        }
        return Ok(Opened::Open { expires: known.row.expires.map(time) });
    }
    insert(tx, row)?;
    let data = json!({
        "ask": row.id,
        "prompt": row.prompt,
        "tool": row.tool,
        "hook": row.hook,
        "action": row.action,
        "expires": row.expires,
    });
    let mut event = NewRow::new("ask.opened").key(&ask.key).data(&data);
    event.agent = Some(row.agent.as_str().into());
    tx.append(&row.run, event)?;
    Ok(Opened::Open { expires: row.expires.map(time) })
}

fn insert(tx: &Tx<'_>, row: &AskRow) -> Result<(), StoreError> {
    let sql = "INSERT INTO asks (id, run, step, agent, hook, tool, prompt, question, action, \
               created, expires, status, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
               ?12, ?13)";
    let what = "put a question on record";
    let mut insert = tx.conn().prepare_cached(sql).explain(tx.path(), what)?;
    insert
        .execute(params![
            row.id,
            row.run,
            row.step,
            row.agent,
            row.hook,
            row.tool,
            row.prompt,
            row.question,
            row.action,
            row.created,
            row.expires,
            row.status,
            row.seal(tx.path()),
        ])
        .explain(tx.path(), what)?;
    Ok(())
}

/// What became of an attempt to decide.
#[derive(Debug, PartialEq)]
pub(crate) enum Decided {
    /// This answer counts.
    Now,
    /// Another one was first; this one. It may be that its time was over.
    Before(Answer),
    /// There is no such question.
    Unknown,
}

/// Decides a question that is open, by one compare-and-set, and puts that on the record of its run.
/// The form of the answer is not looked at here.
pub(crate) fn decide(
    tx: &mut Tx<'_>,
    id: &str,
    status: AskStatus,
    answer: &Answer,
    by: &str,
) -> Result<Decided, StoreError> {
    let Some(known) = find(tx.conn(), tx.path(), id)? else { return Ok(Decided::Unknown) };
    if let Some(answer) = known.answer {
        return Ok(Decided::Before(answer));
    }
    if status == AskStatus::Answered && known.is_due(millis(SystemTime::now())) {
        return expire_row(tx, known).map(Decided::Before);
    }
    write_decision(tx, known, status, answer, by)?;
    Ok(Decided::Now)
}

/// Decides a question whose time is over. None if it is not, or if there is no such question; else
/// what was decided, now or before.
pub(crate) fn expire(tx: &mut Tx<'_>, id: &str) -> Result<Option<Answer>, StoreError> {
    let Some(known) = find(tx.conn(), tx.path(), id)? else { return Ok(None) };
    if known.is_due(millis(SystemTime::now())) {
        return expire_row(tx, known).map(Some);
    }
    Ok(known.answer)
}

/// Takes back every open question of a run: nobody waits for an answer any more. How many there
/// were.
pub(crate) fn cancel_open(tx: &mut Tx<'_>, run: RunId, why: &str) -> Result<usize, StoreError> {
    let query = AskQuery::open().run(run);
    let open = select(tx.conn(), tx.path(), &query, |row| row.flatten().map(Some))?;
    let count = open.len();
    for known in open {
        let answer = Answer::Reject(why.to_owned());
        write_decision(tx, known, AskStatus::Cancelled, &answer, "tenure")?;
    }
    Ok(count)
}

/// How many questions of a run are open.
pub(crate) fn count_open(
    conn: &Connection,
    path: &StoreFile,
    run: &str,
) -> Result<usize, StoreError> {
    let sql = "SELECT count(*) FROM asks WHERE run = ?1 AND status = 'open'";
    let count: i64 = conn
        .prepare_cached(sql)
        .and_then(|mut count| count.query_row([run], |row| row.get(0)))
        .explain(path, "count the questions of a run")?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The answer of a question that is decided.
pub(crate) fn decision(
    conn: &Connection,
    path: &StoreFile,
    id: &str,
) -> Result<Option<Answer>, StoreError> {
    Ok(find(conn, path, id)?.and_then(|known| known.answer))
}

fn expire_row(tx: &mut Tx<'_>, known: Checked) -> Result<Answer, StoreError> {
    let answer = Answer::Reject(TOO_LATE.to_owned());
    write_decision(tx, known, AskStatus::Expired, &answer, "tenure")?;
    Ok(answer)
}

fn write_decision(
    tx: &mut Tx<'_>,
    known: Checked,
    status: AskStatus,
    answer: &Answer,
    by: &str,
) -> Result<(), StoreError> {
    let what = "write an answer";
    let text = serde_json::to_string(answer).map_err(|error| {
        StoreError::new(StoreErrorKind::Io, format!("an answer cannot be written: {error}"))
    })?;
    let mut row = known.row;
    row.status = status.as_str().to_owned();
    (row.answer, row.by) = (Some(text), Some(by.to_owned()));
    row.decided = Some(millis(SystemTime::now()));
    let sql = "UPDATE asks SET status = ?2, answer = ?3, by = ?4, decided = ?5, sum = ?6 \
               WHERE id = ?1 AND status = 'open'";
    let mut update = tx.conn().prepare_cached(sql).explain(tx.path(), what)?;
    let values = params![row.id, row.status, row.answer, row.by, row.decided, row.seal(tx.path())];
    let changed = update.execute(values).explain(tx.path(), what)?;
    drop(update);
    // It was read as open in this transaction, which nobody else writes beside.
    if changed != 1 {
        let found = format!("question {} was open and could not be decided", row.id);
        return Err(StoreError::damaged(tx.path(), found));
    }
    let data = json!({
        "ask": row.id,
        "status": row.status,
        "decision": answer.name(),
        "answer": answer,
        "by": by,
        "action": row.action,
    });
    let mut event = NewRow::new("ask.answered").data(&data);
    event.agent = Some(row.agent.as_str().into());
    tx.append(&row.run, event)?;
    Ok(())
}

/// A question, by its whole id.
pub(super) fn find(
    conn: &Connection,
    path: &StoreFile,
    id: &str,
) -> Result<Option<Checked>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM asks a LEFT JOIN runs r ON r.id = a.run WHERE a.id = ?1");
    let what = "read a question";
    let mut select = conn.prepare_cached(&sql).explain(path, what)?;
    let found = select.query_row([id], |row| Checked::read(path, row)).optional();
    found.explain(path, what)?.transpose()
}

/// The questions that fit, those that `take` takes. The first error that it is given is of the
/// reading, the second of one row.
pub(super) fn select<T>(
    conn: &Connection,
    path: &StoreFile,
    query: &AskQuery,
    mut take: impl FnMut(
        Result<Result<Checked, StoreError>, StoreError>,
    ) -> Result<Option<T>, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut sql = format!("SELECT {COLUMNS} FROM asks a LEFT JOIN runs r ON r.id = a.run WHERE 1");
    let run = query.run.map(|run| run.to_string());
    let mut values: Vec<&dyn ToSql> = Vec::new();
    if !query.decided {
        sql.push_str(" AND a.status = 'open'");
    }
    if let Some(run) = &run {
        sql.push_str(" AND a.run = ?1");
        values.push(run);
    }
    sql.push_str(" ORDER BY a.created, a.id");
    let what = "read questions";
    let mut select = conn.prepare_cached(&sql).explain(path, what)?;
    let read = |row: &Row<'_>| Ok(Checked::read(path, row).explain(path, what).flatten());
    let rows = select.query_map(&*values, read).explain(path, what)?;
    let taken = rows.filter_map(|row| take(row.explain(path, what)).transpose());
    taken.take(query.limit.unwrap_or(usize::MAX)).collect()
}

/// The ids that begin with `prefix`, and what they ask: at most `limit`.
pub(super) fn beginning(
    conn: &Connection,
    path: &StoreFile,
    prefix: &str,
    limit: usize,
) -> Result<Vec<(String, String)>, StoreError> {
    // Ids are hex: whatever begins so is before the same with a `g` behind it.
    let sql = "SELECT id, prompt FROM asks WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT ?2";
    let what = "look for a question";
    let mut select = conn.prepare_cached(sql).explain(path, what)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select
        .query_map(params![prefix, limit], |row| Ok((row.get(0)?, row.get(1)?)))
        .explain(path, what)?;
    rows.collect::<Result<_, _>>().explain(path, what)
}

/// An answer without what must not be written. That is also what is used, so that a later life sees
/// the same.
pub(crate) fn redacted(store: &Store, answer: Answer) -> Result<Answer, StoreError> {
    let broken = |error: serde_json::Error| {
        let message = format!("the answer cannot be written without the secrets in it: {error}");
        StoreError::new(StoreErrorKind::Io, message)
    };
    let mut value = serde_json::to_value(&answer).map_err(broken)?;
    match store.redact(&mut value) {
        true => serde_json::from_value(value).map_err(broken),
        false => Ok(answer),
    }
}

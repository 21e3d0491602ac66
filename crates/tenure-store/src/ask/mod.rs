//! Questions that last: asked by a run, answered by whoever comes first, from any process, also while
//! nobody drives the run.
//!
//! A question is a row. It is decided by one compare-and-set, in the transaction that also puts the
//! answer on the record of its run.

mod info;
mod row;
mod table;

pub use info::{AskInfo, AskQuery, AskStatus};
pub(crate) use table::{
    Decided, NewAsk, Opened, cancel_open, count_open, decide, decision, expire, open, redacted,
};

use crate::error::{StoreError, StoreErrorKind};
use crate::runs::skip_damaged;
use crate::store::Store;
use tenure_core::ask::Answer;
use tenure_core::engine::Signalled;

/// How many questions are named where a short id means several.
const NAMED: usize = 8;

impl Store {
    /// The questions that fit, oldest first. One whose time is over is still open here until somebody
    /// answers it, or its run goes on. One whose row is damaged is left out, with a warning:
    /// [`Store::verify`] names it.
    pub fn asks(&self, query: &AskQuery) -> Result<Vec<AskInfo>, StoreError> {
        let path = self.file();
        self.read(|conn| {
            table::select(conn, path, query, |row| {
                skip_damaged(row.map(|row| row.and_then(|found| found.into_info(path))))
            })
        })
    }

    /// A question, by its id or by enough of its beginning.
    pub fn ask(&self, id: &str) -> Result<AskInfo, StoreError> {
        match self.ask_if_any(id)? {
            Some(ask) => Ok(ask),
            None => {
                let message = format!(
                    "{}: there is no question `{id}`; `tenure asks` shows those that are open",
                    self.path().display()
                );
                Err(StoreError::new(StoreErrorKind::Unknown, message))
            }
        }
    }

    /// Answers a question, by its id or by enough of its beginning. `by` says who answers.
    ///
    /// The first answer counts, whichever process gives it, and whether or not somebody drives the
    /// run: then it is there when the run goes on. It is on disk when this returns. One that does not
    /// have the form that was asked for is refused, and the question stays open. One that comes after
    /// the question's time finds it decided: rejected, since nobody answered in time.
    ///
    /// This blocks while another process writes.
    pub fn answer(&self, id: &str, answer: Answer, by: &str) -> Result<Signalled, StoreError> {
        // Most of those who come too late are told so without keeping anybody else waiting: what is
        // decided stays decided.
        let Some(ask) = self.ask_if_any(id)? else { return Ok(Signalled::Unknown) };
        if let Some(first) = ask.answer {
            return Ok(Signalled::AlreadyDecided(first));
        }
        if let Err(misfit) = ask.check(&answer) {
            return Ok(Signalled::Unfit(misfit));
        }
        let (answer, by) = (redacted(self, answer)?, by.to_owned());
        let id = ask.id;
        let decided =
            self.write_with(move |tx| decide(tx, &id, AskStatus::Answered, &answer, &by))?;
        Ok(match decided {
            Decided::Now => Signalled::Accepted,
            Decided::Before(first) => Signalled::AlreadyDecided(first),
            Decided::Unknown => Signalled::Unknown,
        })
    }

    fn ask_if_any(&self, id: &str) -> Result<Option<AskInfo>, StoreError> {
        let path = self.file();
        let found = self.read(|conn| {
            if let Some(found) = table::find(conn, path, id)? {
                return Ok(Some(found));
            }
            // An empty text would mean any of them.
            if id.is_empty() {
                return Ok(None);
            }
            let named = table::beginning(conn, path, id, NAMED + 1)?;
            match &*named {
                [] => Ok(None),
                [(only, _)] => table::find(conn, path, only),
                _ => Err(ambiguous(id, &named)),
            }
        })?;
        found.map(|found| found.into_info(path)).transpose()
    }
}

fn ambiguous(id: &str, named: &[(String, String)]) -> StoreError {
    let shown = named.iter().take(NAMED).map(|(id, prompt)| format!("{id} ({prompt})"));
    let mut shown = shown.collect::<Vec<_>>().join(", ");
    if named.len() > NAMED {
        shown.push_str(" and more");
    }
    let message = format!("`{id}` is the beginning of several questions: {shown}; type more of it");
    StoreError::new(StoreErrorKind::Ambiguous, message)
}

#[cfg(test)]
mod tests;

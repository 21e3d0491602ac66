//! A question as a row: read, held against its checksum, and taken apart.

use super::info::{AskInfo, AskStatus};
use crate::db::StoreFile;
use crate::error::StoreError;
use crate::journal::{Sum, time};
use crate::key::{Seal, Table};
use rusqlite::Row;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::Path;
use tenure_core::ask::{Answer, Ask};

/// The columns that [`AskRow::read`] reads, from `asks a LEFT JOIN runs r`.
pub(super) const COLUMNS: &str = "a.id, a.run, a.step, a.agent, a.hook, a.tool, a.prompt, \
     a.question, a.action, a.created, a.expires, a.status, a.answer, a.by, a.decided, a.sum, r.name";

/// A row of `asks`, as it stands in the file.
pub(super) struct AskRow {
    pub(super) id: String,
    pub(super) run: String,
    pub(super) step: String,
    pub(super) agent: String,
    pub(super) hook: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) prompt: String,
    pub(super) question: String,
    pub(super) action: String,
    pub(super) created: i64,
    pub(super) expires: Option<i64>,
    pub(super) status: String,
    pub(super) answer: Option<String>,
    pub(super) by: Option<String>,
    pub(super) decided: Option<i64>,
}

/// What of a [`PendingAsk`](tenure_core::ask::PendingAsk) is read back.
#[derive(Deserialize)]
struct Question {
    call_id: Option<String>,
    parameters: Option<Value>,
    ask: Ask,
}

impl AskRow {
    /// The row as it stands.
    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            id: row.get(0)?,
            run: row.get(1)?,
            step: row.get(2)?,
            agent: row.get(3)?,
            hook: row.get(4)?,
            tool: row.get(5)?,
            prompt: row.get(6)?,
            question: row.get(7)?,
            action: row.get(8)?,
            created: row.get(9)?,
            expires: row.get(10)?,
            status: row.get(11)?,
            answer: row.get(12)?,
            by: row.get(13)?,
            decided: row.get(14)?,
        })
    }

    fn sum(&self) -> Sum {
        let mut sum = Sum::new();
        sum.text(&self.id).text(&self.run).text(&self.step).text(&self.agent);
        sum.opt_text(self.hook.as_deref()).opt_text(self.tool.as_deref());
        sum.text(&self.prompt).text(&self.question).text(&self.action);
        sum.int(self.created).opt_int(self.expires).text(&self.status);
        sum.opt_text(self.answer.as_deref()).opt_text(self.by.as_deref()).opt_int(self.decided);
        sum
    }

    /// The seal of the row.
    pub(super) fn seal(&self, file: &StoreFile) -> Seal {
        self.sum().seal(file, Table::Asks)
    }
}

/// A row that was read and is as it was written.
pub(super) struct Checked {
    pub(super) row: AskRow,
    run_name: Option<String>,
    pub(super) status: AskStatus,
    pub(super) answer: Option<Answer>,
}

impl Checked {
    /// Reads the [`COLUMNS`].
    pub(super) fn read(
        path: &StoreFile,
        row: &Row<'_>,
    ) -> Result<Result<Self, StoreError>, rusqlite::Error> {
        let stored = AskRow::read(row)?;
        let is_whole = stored.sum().check(path, Table::Asks, row.get_ref(15)?);
        Ok(Self::check(path, stored, is_whole, row.get(16)?))
    }

    fn check(
        path: &Path,
        row: AskRow,
        is_whole: Result<(), &'static str>,
        run_name: Option<String>,
    ) -> Result<Self, StoreError> {
        let damaged =
            |what: &str| StoreError::damaged(path, format!("question {}: {what}", row.id));
        is_whole.map_err(damaged)?;
        let Some(status) = AskStatus::named(&row.status) else {
            return Err(damaged(&format!("`{}` is no status of a question", row.status)));
        };
        let answer = match &row.answer {
            Some(answer) => match serde_json::from_str(answer) {
                Ok(answer) => Some(answer),
                Err(error) => return Err(damaged(&format!("its answer cannot be read ({error})"))),
            },
            None if status == AskStatus::Open => None,
            None => return Err(damaged("it is decided, and there is no answer")),
        };
        Ok(Self { row, run_name, status, answer })
    }

    /// Whether its time is over at `now`.
    pub(super) fn is_due(&self, now: i64) -> bool {
        self.status == AskStatus::Open && self.row.expires.is_some_and(|expires| expires <= now)
    }

    pub(super) fn into_info(self, path: &Path) -> Result<AskInfo, StoreError> {
        let Self { row, run_name, status, answer } = self;
        let damaged =
            |what: String| StoreError::damaged(path, format!("question {}: {what}", row.id));
        let question: Question = serde_json::from_str(&row.question)
            .map_err(|error| damaged(format!("what was asked cannot be read ({error})")))?;
        let run = row.run.parse().map_err(|_| damaged(format!("`{}` is no run", row.run)))?;
        Ok(AskInfo {
            run,
            run_name: run_name.unwrap_or_default(),
            step: row.step,
            agent: row.agent,
            hook: row.hook,
            tool: row.tool,
            call_id: question.call_id,
            prompt: row.prompt,
            action: question.ask.action,
            schema: question.ask.schema,
            form: question.ask.form,
            parameters: question.parameters,
            action_hash: row.action,
            created: time(row.created),
            expires: row.expires.map(time),
            status,
            answer,
            by: row.by,
            decided: row.decided.map(time),
            id: row.id,
        })
    }
}

/// The SHA-256, in hex, of exactly what would be done: the action; of a question for input what is
/// asked, and in which form.
pub(super) fn action_hash(ask: &Ask) -> String {
    let mut text = String::new();
    match &ask.action {
        Some(action) => canonical(action, &mut text),
        None => {
            canonical(&Value::from(ask.prompt.as_str()), &mut text);
            for part in [&ask.form, &ask.schema] {
                text.push('\n');
                if let Some(part) = part {
                    canonical(part, &mut text);
                }
            }
        }
    }
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// JSON that is the same for equal values: the keys of objects are sorted, whatever a map does.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_action_has_one_hash_whatever_the_order_of_its_fields_and_another_has_another() {
        let hash = |action: &str| {
            action_hash(&Ask::approval("?", serde_json::from_str::<Value>(action).unwrap()))
        };
        assert_eq!(hash(r#"{"a":1,"b":[1,2]}"#), hash(r#"{"b":[1,2],"a":1}"#));
        assert_ne!(hash(r#"{"a":1,"b":[1,2]}"#), hash(r#"{"a":1,"b":[2,1]}"#));
        assert_ne!(hash(r#""1""#), hash("1"));
        assert_ne!(hash(r#"{"a":"\"b"}"#), hash(r#"{"a":"b"}"#));
        // Known to every later release: questions outlive programs.
        assert_eq!(
            hash(r#"{"command":"rm","n":1.5}"#),
            "13a876bc0208b8b696d6cd125ff87fd9de743e150c8de510c8591caa497c9e07",
        );
    }

    #[test]
    fn what_is_asked_for_is_bound_by_its_words_and_its_form() {
        let plain = action_hash(&Ask::input("Where to?"));
        assert_eq!(plain.len(), 64);
        assert_ne!(plain, action_hash(&Ask::input("Where from?")));
        assert_ne!(plain, action_hash(&Ask::input("Where to?").form(json!({}))));
        let (form, schema) = (json!({ "type": "string" }), json!({ "type": "string" }));
        let one = action_hash(&Ask::input("Where to?").form(form));
        assert_ne!(one, action_hash(&Ask::input("Where to?").schema(schema)));
        // How long somebody may think it over changes nothing.
        let hurried = Ask::input("Where to?").expires_after(std::time::Duration::from_secs(1));
        assert_eq!(plain, action_hash(&hurried));
    }
}

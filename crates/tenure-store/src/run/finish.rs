//! What came of a run, in this life of it.

use super::difference::{Difference, Now};
use super::{Inner, Resume, RunLog, rows};
use crate::journal::{NewRow, Tx, millis};
use crate::runs::RunRow;
use crate::{ask, fail, runs, wish};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use tenure_core::engine::{RunInfo, RunStatus};
use tenure_core::step::{ScopeEnd, ScopeKind, ScopeRecord};
use tenure_core::{Error, ErrorKind, ExitReason, Outcome};

/// Why nobody waits for an answer any more.
const OVER: &str = "the run is over";

/// Where a run is left.
struct Left {
    status: RunStatus,
    outcome: Option<Outcome>,
    output: Option<Value>,
    error: Option<String>,
    /// What had begun and nobody is left to end.
    open: Vec<ScopeRecord>,
}

impl RunLog {
    /// Says what came of the run's work, puts it on record, and says what is known of the run then.
    ///
    /// A result, and an error that does not [park](Error::parks) the run, end it: whatever has begun
    /// in it and has no end gets one on record, as abandoned, and questions that are open are taken
    /// back. An error that parks leaves everything as it is: the run waits for a person, or for
    /// somebody who looks at the difference. So does a result of a run that has not asked for every
    /// step of its record.
    ///
    /// In a replay nothing is recorded: what is returned is what is on record, and
    /// [`RunLog::difference`] says whether this was the same.
    pub async fn finish(&self, result: Result<Value, Error>) -> Result<RunInfo, Error> {
        self.0.finish(result.map_err(|error| (error.outcome(), error))).await
    }

    /// As [`RunLog::finish`], for work that panicked.
    pub(crate) async fn finish_panicked(&self, panic: &str) -> Result<RunInfo, Error> {
        let error = Error::orchestration(format!("the run's code panicked: {panic}"));
        self.0.finish(Err((Outcome::Panicked, error))).await
    }
}

impl Inner {
    async fn finish(&self, result: Result<Value, (Outcome, Error)>) -> Result<RunInfo, Error> {
        let Some(drive) = &self.drive else {
            return self.replayed(result.map_err(|(_, error)| error));
        };
        // What was taken over, or has been finished, is not for this life to say anything of.
        self.shared.fence()?;
        if self.shared.is_over() {
            return Err(Error::invalid(format!("run {} has been finished already", self.run())));
        }
        fail::point(fail::FINISH_BEFORE);
        let left = self.left(result)?;
        let (run, now, status) = (self.shared.name(), millis(SystemTime::now()), left.status);
        let life = self.shared.life();
        let id = self.run();
        let shared = self.shared.clone();
        self.commit(move |tx| {
            let asks = match status {
                RunStatus::Ended => {
                    end_rest(tx, &run, &left.open)?;
                    wish::forget(tx, &run)?;
                    ask::cancel_open(tx, id, OVER)?
                }
                _ => ask::count_open(tx.conn(), tx.path(), &run)?,
            };
            tracing::debug!(%run, %status, asks, "a run is left");
            tx.append(&run, row(life, &left))?;
            runs::change(tx, &run, |row| leave(row, left, now))?;
            if status == RunStatus::Ended {
                shared.set_ended();
            }
            Ok(())
        })
        .await?;
        self.shared.set_over();
        fail::point(fail::FINISH_AFTER);
        // From here on nothing may be recorded: somebody else may take the run up, or has read how
        // it ended.
        self.shared.park(Error::store(format!(
            "run {id} has been finished here as {status}; nothing more of it is recorded"
        )));
        drive.leave(id, life);
        drive.tell();
        let info = self.store.run(id)?;
        info.ok_or_else(|| {
            Error::store(format!("run {id} is gone from {}", self.store.path().display()))
        })
    }

    /// Where a result leaves the run.
    fn left(&self, result: Result<Value, (Outcome, Error)>) -> Result<Left, Error> {
        let parked = |error: Error| {
            let status = match error.kind() {
                ErrorKind::Waiting => RunStatus::Waiting,
                _ => RunStatus::Parked,
            };
            let error = self.redacted(error.to_string());
            Left { status, outcome: None, output: None, error: Some(error), open: Vec::new() }
        };
        if let Some(error) = self.shared.trouble() {
            return Ok(parked(error));
        }
        if result.is_ok()
            && self.way() == Resume::GoOn
            && let Some(error) = self.passed_over()?
        {
            return Ok(parked(error));
        }
        // In a run that is given up nothing that came after its record counts, whatever its code
        // makes of that.
        let given_up = self.stopped.load(Ordering::Relaxed).then_some(match self.mode {
            Resume::Abandon => Outcome::Abandoned,
            _ => Outcome::Cancelled,
        });
        let (outcome, output, error) = match result {
            Err((_, error)) if error.parks() => return Ok(parked(error)),
            Ok(mut output) => {
                self.store.redact(&mut output);
                (given_up.unwrap_or(Outcome::Ok), Some(output), None)
            }
            Err((outcome, error)) => {
                (given_up.unwrap_or(outcome), None, Some(self.redacted(error.to_string())))
            }
        };
        let open = self.table().open();
        Ok(Left { status: RunStatus::Ended, outcome: Some(outcome), output, error, open })
    }

    /// The first step on record that the run went without.
    fn passed_over(&self) -> Result<Option<Error>, Error> {
        let run = self.run();
        let found = self.table().passed_over(|key| key.id(run));
        let Some((step, seq)) = found else { return Ok(None) };
        let recorded = self.value(seq, None)?;
        let now = Now::NeverCame;
        Ok(Some(self.differs(Difference::new(run, step, seq, recorded, now))))
    }

    /// What a replay has shown.
    fn replayed(&self, result: Result<Value, Error>) -> Result<RunInfo, Error> {
        if let Ok(output) = result
            && self.shared.trouble().is_none()
            && self.passed_over()?.is_none()
            && let Some(recorded) = &self.info.output
            && *recorded != output
        {
            let step = tenure_core::step::StepKey::new("", "run", &*self.info.name, 0, 0);
            let (run, recorded) = (self.run(), recorded.clone());
            let now = Now::OtherOutput { output };
            self.differs(Difference::new(run, step, 0, recorded, now));
        }
        Ok(self.info.clone())
    }

    fn redacted(&self, text: String) -> String {
        let mut value = Value::String(text);
        self.store.redact(&mut value);
        match value {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

/// Everything ends. Whose process died, and who nobody is left to tell, at least ends on record.
fn end_rest(tx: &mut Tx<'_>, run: &str, open: &[ScopeRecord]) -> Result<(), crate::StoreError> {
    for scope in open {
        let end = match scope.kind {
            ScopeKind::Instance => ScopeEnd::of_instance(ExitReason::Crashed),
            _ => ScopeEnd::of(Outcome::Abandoned),
        };
        tx.append(run, rows::ended(scope, end))?;
    }
    Ok(())
}

fn row(life: u32, left: &Left) -> NewRow {
    let of = match left.status {
        RunStatus::Waiting => "run.waiting",
        RunStatus::Parked => "run.parked",
        _ => "run.ended",
    };
    let mut data = json!({ "life": life });
    if let Some(outcome) = left.outcome {
        data["outcome"] = outcome.as_str().into();
    }
    if let Some(error) = &left.error {
        data["error"] = error.as_str().into();
    }
    NewRow::new(of).data(&data)
}

fn leave(row: &mut RunRow, left: Left, now: i64) {
    row.status = left.status.as_str().to_owned();
    row.outcome = left.outcome.map(|outcome| outcome.as_str().to_owned());
    row.output = left.output.map(|output| output.to_string());
    row.error = left.error;
    row.ended = (left.status == RunStatus::Ended).then_some(now);
    row.driven = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Begun, testing};
    use std::future::poll_fn;
    use std::task::{Context, Poll};
    use tenure_core::engine::NewRun;

    #[tokio::test]
    async fn a_late_note_of_a_poll_leaves_a_finished_run_as_it_is() {
        let waiting = Err(Error::waiting("for an answer"));
        let results = [(waiting, RunStatus::Waiting), (Ok(json!("done")), RunStatus::Ended)];
        for (result, expected) in results {
            let dir = tempfile::tempdir().expect("a folder");
            let store = testing::open(dir.path().join("runs.db")).expect("a file");
            let driver = store.drive("a test").expect("the right to drive");
            let run = NewRun::new("agent", json!("go"));
            let id = run.id;
            let Begun::New(log) = driver.begin(run).await.expect("a run") else {
                panic!("the run is new");
            };
            // The writer is held up until both are in its queue: the end, and the note of a poll that
            // had looked before whether the run is over.
            let (go, held) = std::sync::mpsc::channel::<()>();
            log.0.send(move |_| {
                let _ = held.recv();
                Ok(())
            });
            let mut finishing = std::pin::pin!(log.finish(result));
            let mut is_queued = |task: &mut Context<'_>| finishing.as_mut().poll(task).is_pending();
            assert!(poll_fn(|task| Poll::Ready(is_queued(task))).await);
            let name = id.to_string();
            log.0.send(move |tx| rows::waits(tx, &name).and_then(|()| rows::goes_on(tx, &name)));
            go.send(()).expect("the writer is there");
            finishing.await.expect("it is recorded");
            let info = store.run(id).expect("the file is read").expect("the run is there");
            assert_eq!(info.status, expected);
            let records = store.records(id, 0, 100).expect("records");
            let waits = records.iter().filter(|record| record.name == "run.waiting").count();
            assert_eq!(waits, usize::from(expected == RunStatus::Waiting));
        }
    }
}

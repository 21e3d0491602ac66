//! An agent with everything that is a step, and a file to record it in.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::context::{InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::engine::{NewRun, RunCx, RunInfo, Runnable};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError, Point, Points};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::ModelResponse;
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_core::{Error, ExitReason, NextTool, Outcome, RunId};
use tenure_models::Scripted;
use tenure_store::{Begun, Driver, Record, Resume, RunLog, Store, StoreKeys};
use tokio::time::timeout;

/// Long enough for a busy machine, short enough to see that something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How often each effect ran, and what was said of ends.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    counts: BTreeMap<String, usize>,
    said: Vec<String>,
}

impl Effects {
    pub(crate) fn ran(&self, what: impl Into<String>) {
        *self.0.lock().expect("it works here").counts.entry(what.into()).or_default() += 1;
    }

    pub(crate) fn say(&self, what: String) {
        self.0.lock().expect("it works here").said.push(what);
    }

    pub(crate) fn said(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("it works here").said)
    }

    pub(crate) fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.0.lock().expect("it works here").counts)
    }
}

/// Hooks at every point that is a step or an end.
pub(crate) struct Hooks(pub(crate) Effects);

#[async_trait]
impl AgentLifecycle for Hooks {
    fn name(&self) -> &str {
        "hooks"
    }

    fn points(&self) -> Points {
        let points =
            [Point::OnShutdown, Point::BeforeAgent, Point::WrapToolCall, Point::AfterAgent];
        points.into_iter().collect()
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, why: ExitReason) -> Result<(), HookError> {
        self.0.say(format!("shutdown {why} {}", cx.delivery_id()));
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        self.0.ran("before_agent");
        let effects = self.0.clone();
        let n: u32 = cx
            .step("roll", async move {
                effects.ran("step");
                Ok(7)
            })
            .await?;
        input.content.push(format!(" {n}"));
        Ok(Flow::Continue)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut tenure_core::tool::ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if request.name() == "plain" {
            return Ok(next.call(request).await?);
        }
        match cx.ask(Ask::approval("may I?", json!(request.name()))).await? {
            Answer::Approve => Ok(next.call(request).await?),
            other => Ok(ToolOutput::denied(other.name())),
        }
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.0.ran("after_agent");
        self.0.say(format!("end {} {}", end.outcome(), cx.delivery_id()));
        let effects = self.0.clone();
        let _: u32 = cx
            .step("note", async move {
                effects.ran("step");
                Ok(1)
            })
            .await?;
        if let Some(output) = end.content_mut() {
            output.push("!");
        }
        Ok(After::Done)
    }
}

/// A tool that counts.
pub(crate) struct Counts(pub(crate) &'static str, pub(crate) Effect, pub(crate) Effects);

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, self.0).effect(self.1)
    }

    async fn call(&self, cx: ToolCx<'_>, _: &Value) -> Result<ToolOutput, ToolError> {
        let (name, effects) = (self.0, self.2.clone());
        effects.ran(format!("tool {name}"));
        let n: u32 = cx
            .step("inner", async move {
                effects.ran("step");
                Ok(3)
            })
            .await?;
        Ok(format!("{name} {n}").into())
    }
}

/// What the model says follows from the conversation alone, as in another process.
pub(crate) fn model(effects: &Effects, calls: &'static [&'static [&'static str]]) -> Scripted {
    let effects = effects.clone();
    Scripted::from_fn(move |request, _| {
        effects.ran("model");
        let said = request.messages.iter().filter(|it| matches!(it, Message::Assistant { .. }));
        let at = said.count();
        Ok(match calls.get(at) {
            Some(tools) => {
                let call =
                    |(i, tool): (usize, &&str)| ToolCall::new(format!("c{at}_{i}"), *tool, "{}");
                ModelResponse::calls(tools.iter().enumerate().map(call))
            }
            None => ModelResponse::text("done"),
        })
    })
}

/// An agent that asks before each tool; who is here approves of `one` and of nothing else.
pub(crate) fn busy(effects: &Effects) -> AgentBuilder {
    let asked = effects.clone();
    waiting(effects).on_ask(move |ask: &PendingAsk| {
        asked.ran("ask");
        let one = ask.ask.action == Some(json!("one"));
        Some(if one { Answer::Approve } else { Answer::Reject("no".into()) })
    })
}

/// The same agent where nobody is there to be asked.
pub(crate) fn waiting(effects: &Effects) -> AgentBuilder {
    Agent::builder("agent")
        .instruction("be brief")
        .model(model(effects, &[&["one", "two"], &["one", "plain"]]))
        .tool(Counts("one", Effect::Idempotent, effects.clone()))
        .tool(Counts("two", Effect::Keyed, effects.clone()))
        .tool(Counts("plain", Effect::Idempotent, effects.clone()))
        .with_lifecycle(Hooks(effects.clone()))
}

pub(crate) fn blueprint(builder: AgentBuilder) -> Blueprint {
    builder.blueprint().expect("the agent is valid")
}

/// A folder with a store in it.
pub(crate) struct File {
    pub(crate) folder: TempDir,
}

impl File {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("tenure.db")
    }

    pub(crate) fn store(&self) -> Store {
        crate::keys::open(self.path()).expect("the store opens")
    }

    pub(crate) fn drive(&self) -> Driver {
        self.store().drive("a test").expect("nobody else drives it")
    }
}

/// Begins a run that is new.
pub(crate) async fn begin(driver: &Driver, run: NewRun) -> RunLog {
    match driver.begin(run).await.expect("it is recorded") {
        Begun::New(log) => log,
        other => panic!("it is new: {other:?}"),
    }
}

/// Does a run's work with this log, without saying what came of it.
pub(crate) async fn work(runnable: &dyn Runnable, log: &RunLog) -> Result<Value, Error> {
    let cx = RunCx::new(log.input().clone(), Arc::new(log.clone()), log.cancel());
    timeout(PATIENCE, runnable.run(cx)).await.expect("it does not hang")
}

/// Takes a run up, does its work and records what came of it.
pub(crate) async fn resume(
    driver: &Driver,
    run: RunId,
    mode: Resume,
    runnable: &dyn Runnable,
) -> (RunLog, RunInfo) {
    let log = driver.resume(run, mode).await.expect("it can be taken up");
    let result = work(runnable, &log).await;
    let info = log.finish(result).await.expect("it is recorded");
    (log, info)
}

/// Lets a run come to a question that nobody answers, as a process does that dies there: nothing of
/// it is dropped in good order.
pub(crate) async fn dies_waiting(runnable: impl Runnable, log: RunLog) {
    let (cx, waits) =
        (RunCx::new(log.input().clone(), Arc::new(log.clone()), log.cancel()), log.clone());
    let runnable: &'static dyn Runnable = Box::leak(Box::new(runnable));
    let mut run = Box::pin(runnable.run(cx));
    let waits = timeout(PATIENCE, waits.waits());
    tokio::select! {
        result = &mut run => panic!("nobody has answered: {result:?}"),
        waits = waits => waits.expect("it comes to its question"),
    }
    std::mem::forget((run, log));
}

pub(crate) fn records(store: &Store, run: RunId) -> Vec<Record> {
    store.records(run, 0, usize::MAX).expect("the record is whole")
}

/// Everything that began has ended once; how the turn and the instances did.
pub(crate) fn ends(records: &[Record]) -> Vec<(String, Outcome)> {
    let names = |of: &str| -> Vec<String> {
        let mut names: Vec<_> = records
            .iter()
            .filter(|record| record.name == of)
            .filter_map(|record| record.scope.clone())
            .collect();
        names.sort();
        names
    };
    let mut began = names("scope.began");
    began.dedup();
    assert_eq!(began, names("scope.ended"), "everything that began ends once");
    let ended = records.iter().filter(|record| record.name == "scope.ended");
    ended
        .map(|record| {
            let outcome = serde_json::from_value(record.data["outcome"].clone());
            (record.scope.clone().unwrap_or_default(), outcome.expect("it has an outcome"))
        })
        .collect()
}

/// A copy of the file in which a run has only its first records, as a process leaves it that died.
pub(crate) fn cut(store: &Store, run: RunId, seq: u64, to: &Path) -> Store {
    store.backup(to).expect("it can be copied");
    let conn = rusqlite::Connection::open(to).expect("it is a database");
    let (run, seq) = (run.to_string(), i64::try_from(seq).expect("it is small"));
    let gone = "DELETE FROM asks WHERE run = ?1 AND id IN (SELECT json_extract(data, '$.ask') \
                FROM events WHERE run = ?1 AND seq > ?2 AND type = 'ask.opened')";
    conn.execute(gone, rusqlite::params![run, seq]).expect("it can be changed");
    let gone = "DELETE FROM events WHERE run = ?1 AND seq > ?2";
    conn.execute(gone, rusqlite::params![run, seq]).expect("it can be changed");
    let head = "UPDATE heads SET (seq, chain) = (SELECT seq, chain FROM events WHERE run = ?1 \
                ORDER BY seq DESC LIMIT 1) WHERE run = ?1";
    conn.execute(head, [&run]).expect("it can be changed");
    drop(conn);
    // It is sealed anew, as by someone who found it: what was cut was sealed with a key.
    let other = concat!(env!("CARGO_TARGET_TMPDIR"), "/other-store-keys");
    let found = Store::open_existing_with(to, &StoreKeys::folder(other)).expect("it opens");
    found.adopt().expect("it is whole")
}

//! An agent with a tool, for any stack of hooks.

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::cache::MemoryCache;
use tenure_core::drive::TurnReport;
use tenure_core::hook::Registration;
use tenure_core::memory::InMemory;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::ModelResponse;
use tenure_core::tool::{Effect, FnTool, ToolSpec};
use tenure_hooks::ready::{self, Bench, Ready};
use tenure_models::Scripted;
use tenure_testkit::{Recorder, cases};

/// Where hooks are made, in a folder of their own.
pub(crate) struct Stage {
    folder: TempDir,
}

/// What came of a turn.
pub(crate) struct Played {
    pub(crate) result: Result<TurnReport, Error>,
    /// How often the tool ran.
    pub(crate) ran: usize,
    pub(crate) recorder: Recorder,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder") }
    }

    /// The hook as its example makes it.
    pub(crate) fn hook(&self, ready: &Ready) -> Registration {
        let with: Value = serde_json::from_str(ready.about().example).expect("the example is JSON");
        let bench = Bench::new().root(self.folder.path()).with_cache(MemoryCache::new());
        match ready.make(&with, &bench) {
            Ok(registration) => registration,
            Err(refused) => panic!("the example of {} is refused: {refused}", ready.name()),
        }
    }

    /// Runs one turn, in which the model calls a tool and then says `done`.
    pub(crate) async fn play(&self, hooks: impl IntoIterator<Item = Registration>) -> Played {
        self.play_with(model(), hooks).await
    }

    pub(crate) async fn play_with(
        &self,
        model: Scripted,
        hooks: impl IntoIterator<Item = Registration>,
    ) -> Played {
        let (bus, recorder) = Recorder::with_bus();
        let ran = Arc::new(AtomicUsize::new(0));
        let builder = builder(&ran).model(model).events(&bus);
        let agent = hooks.into_iter().fold(builder, AgentBuilder::with_lifecycle);
        let agent = match agent.build() {
            Ok(agent) => agent,
            Err(error) => panic!("{error}"),
        };
        let result = agent.scoped(async |agent| agent.run("please look it up").await).await;
        Played { result, ran: ran.load(Ordering::SeqCst), recorder }
    }
}

/// An agent with everything but a model.
pub(crate) fn builder(ran: &Arc<AtomicUsize>) -> AgentBuilder {
    let ran = ran.clone();
    let parameters = json!({ "type": "object", "properties": { "key": { "type": "string" } } });
    let spec = ToolSpec::new("lookup", "Looks something up").parameters(parameters);
    let lookup = FnTool::new(spec.effect(Effect::Idempotent), move |_| {
        ran.fetch_add(1, Ordering::SeqCst);
        Ok("42".into())
    });
    Agent::builder("worker")
        .tool(lookup)
        .memory(InMemory::new())
        .on_ask(|_: &PendingAsk| Some(Answer::Approve))
}

/// Calls the tool, and then says `done`. A hook that asks for another answer gets the same.
pub(crate) fn model() -> Scripted {
    Scripted::from_fn(|request, _| {
        let has_result = request.messages.iter().any(|it| matches!(it, Message::Tool(_)));
        match has_result || request.tools.is_empty() {
            true => Ok(ModelResponse::text("done")),
            false => Ok(ModelResponse::calls([call()])),
        }
    })
}

fn call() -> ToolCall {
    ToolCall::new("call_1", "lookup", json!({ "key": "alpha" }).to_string())
}

/// Every two different hooks, in both orders.
pub(crate) fn pairs() -> impl Iterator<Item = (&'static Ready, &'static Ready)> {
    ready::all()
        .flat_map(|(_, one)| ready::all().map(move |(_, two)| (one, two)))
        .filter(|(one, two)| one.name() != two.name())
}

/// Every two different hooks in the long form; else a quarter of them, in which each hook meets others on both sides.
pub(crate) fn some_pairs() -> impl Iterator<Item = (&'static Ready, &'static Ready)> {
    let stride = 4 / cases(1, 4);
    let all = || ready::all().map(|(_, hook)| hook).enumerate();
    all()
        .flat_map(move |one| all().map(move |two| (one, two)))
        .filter(move |((one, _), (two, _))| one != two && (one + two) % stride == 0)
        .map(|((_, one), (_, two))| (one, two))
}

/// Does something with each of them, many at once: some wait for a clock.
pub(crate) async fn for_pairs(with: impl AsyncFn(&'static Ready, &'static Ready) + Copy) {
    let mut count = 0;
    let each =
        futures_util::stream::iter(some_pairs()).map(async |(one, two)| with(one, two).await);
    let mut each = std::pin::pin!(each.buffer_unordered(64));
    while each.next().await.is_some() {
        count += 1;
    }
    let all = ready::all().count() * (ready::all().count() - 1);
    assert!(count >= all / cases(5, 1), "only {count} of {all} pairs");
}

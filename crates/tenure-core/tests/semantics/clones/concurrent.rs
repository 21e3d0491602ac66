//! Two requests at once on one parent that has a child as its tool.

use crate::semantics::support::*;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::{InstanceCx, ModelCx};
use tenure_core::hook::{AgentLifecycle, HookError, Point, Points};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};
use tenure_core::{ExitReason, InstanceId};
use tokio::time::sleep;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Marker {
    name: String,
    id: InstanceId,
    hook: Point,
}

/// Writes down every start and shutdown, as the hooks of a card would.
#[derive(Clone, Default)]
struct Markers(Arc<Mutex<Vec<Marker>>>);

impl Markers {
    fn mark(&self, cx: InstanceCx<'_>) {
        let marker =
            Marker { name: cx.agent_name().to_owned(), id: cx.instance_id(), hook: cx.hook_type() };
        self.0.lock().expect("no test panics under this lock").push(marker);
    }

    fn all(&self) -> Vec<Marker> {
        self.0.lock().expect("no test panics under this lock").clone()
    }
}

#[async_trait]
impl AgentLifecycle for Markers {
    fn points(&self) -> Points {
        Points::from(Point::OnStart).with(Point::OnShutdown)
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.mark(cx);
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        tokio::task::yield_now().await;
        self.mark(cx);
        Ok(())
    }
}

/// Repeats what it is told; as a parent, calls the child first.
struct Passthrough {
    calls_child: bool,
}

#[async_trait]
impl Model for Passthrough {
    async fn call(
        &self,
        request: &ModelRequest,
        _: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        sleep(ms(100)).await;
        Ok(match request.messages.last() {
            Some(Message::User { content }) if self.calls_child => {
                let arguments = serde_json::json!({ "message": content }).to_string();
                ModelResponse::calls([ToolCall::new("c1", "agent__child", arguments)])
            }
            last => ModelResponse::text(last.map(Message::text).unwrap_or_default()),
        })
    }
}

async fn two_requests(apart: Duration) {
    let markers = Markers::default();
    let child = Agent::builder("child")
        .model(Passthrough { calls_child: false })
        .with_lifecycle(markers.clone())
        .blueprint()
        .expect("the child is valid");
    let parent = started(
        Agent::builder("parent")
            .model(Passthrough { calls_child: true })
            .agent_tool(&child)
            .with_lifecycle(markers.clone()),
    )
    .await;
    let (one, two) = tokio::join!(parent.handle("first"), async {
        sleep(apart).await;
        parent.handle("second").await
    });
    assert_eq!(one.expect("the first is answered").output(), "first");
    assert_eq!(two.expect("the second is answered").output(), "second");
    parent.shutdown().await;

    let mut by_id: BTreeMap<String, Vec<Marker>> = BTreeMap::new();
    for marker in markers.all() {
        by_id.entry(marker.id.to_string()).or_default().push(marker);
    }
    for markers in by_id.values() {
        let hooks: Vec<_> = markers.iter().map(|marker| marker.hook).collect();
        assert_eq!(hooks, [Point::OnStart, Point::OnShutdown], "{markers:?}");
        assert_eq!(markers[0].name, markers[1].name);
    }
    let names: BTreeSet<_> = by_id.values().map(|markers| markers[0].name.clone()).collect();
    let expected = ["child#1[tool]", "child#2[tool]", "parent", "parent#1"];
    assert_eq!(names, expected.map(str::to_owned).into(), "a fork is never `[tool]`");
    assert_eq!(by_id.len(), 4, "every instance has an id of its own");
}

#[tokio::test(start_paused = true)]
async fn g11_two_simultaneous_requests_run_on_two_clones_a_hundred_times() {
    for _ in 0..100 {
        two_requests(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn g11_two_requests_50_ms_apart_run_on_two_clones_a_hundred_times() {
    for _ in 0..100 {
        two_requests(ms(50)).await;
    }
}

/// The same on several threads, with real time; the waits are cut down to a millisecond.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g11_clones_spawned_from_many_threads_are_all_different() {
    let markers = Markers::default();
    let child = Agent::builder("child")
        .model(script([]))
        .with_lifecycle(markers.clone())
        .blueprint()
        .unwrap();
    let parent = started(
        Agent::builder("parent")
            .model(script(std::iter::repeat_n(
                Reply::Call(
                    (0..8)
                        .map(|n| {
                            ToolCall::new(format!("c{n}"), "agent__child", r#"{"message":"go"}"#)
                        })
                        .collect(),
                ),
                20,
            )))
            .agent_tool(&child)
            .max_steps(100),
    )
    .await;
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let parent = parent.clone();
        requests.spawn(async move { parent.handle("go").await.map(|report| report.steps) });
    }
    while let Some(result) = requests.join_next().await {
        result.unwrap().unwrap();
    }
    let markers = markers.all();
    let ids: BTreeSet<_> = markers.iter().map(|marker| marker.id.to_string()).collect();
    let names: BTreeSet<_> = markers.iter().map(|marker| &marker.name).collect();
    assert_eq!((ids.len(), names.len(), markers.len()), (160, 160, 320));
}

#[tokio::test(start_paused = true)]
async fn g11_a_fork_has_a_snapshot_of_the_history_and_gives_back_its_usage_only() {
    let model = script([
        say("zero"),
        Reply::Slow(ms(100), Box::new(say("one"))),
        Reply::Slow(ms(10), Box::new(say("two"))),
    ]);
    let agent = started(Agent::builder("agent").model(model.clone())).await;
    agent.run("before").await.unwrap();
    let (one, two) = tokio::join!(agent.handle("first"), agent.handle("second"));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.output(), two.output()), ("one", "two"));
    assert_eq!(one.instance, agent.id());
    assert_ne!(two.instance, agent.id());
    let texts = |history: &tenure_core::message::History| {
        history.iter().map(|it| it.text().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&agent.history()), ["before", "zero", "first", "one"]);
    assert_eq!(texts(two.history()), ["before", "zero", "second", "two"]);
    assert_eq!(agent.usage().calls, 3);
}

#[tokio::test(start_paused = true)]
async fn handle_needs_an_agent_that_is_up() {
    let agent = Agent::builder("agent").model(script([])).build().unwrap();
    let error = agent.handle("go").await.unwrap_err();
    assert_eq!(error.state(), Some(tenure_core::phase::AgentState::Uninitialized));
    agent.startup().await.unwrap();
    agent.pause().await.unwrap();
    let error = agent.handle("go").await.unwrap_err();
    assert_eq!(error.state(), Some(tenure_core::phase::AgentState::Paused));
    agent.shutdown().await;
    let error = agent.handle("go").await.unwrap_err();
    assert_eq!(error.state(), Some(tenure_core::phase::AgentState::Terminated));
}

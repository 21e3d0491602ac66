//! The hook that applies its setting itself, as cards have it.

use crate::judge::support::*;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::hook::Registration;
use tenure_core::memory::InMemory;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelResponse};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::adapt::{Adaptation, Bounds, Goals};
use tenure_models::{Passthrough, Scripted, Slow};
use tenure_testkit::RecordedModel;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

fn text(said: &'static str) -> Scripted {
    Scripted::from_fn(move |_, _| Ok(ModelResponse::text(said)))
}

fn applying(adaptation: &Adaptation, models: [(&str, Arc<dyn Model>); 2]) -> Registration {
    adaptation.applying(models.map(|(name, model)| (name.to_owned(), model)))
}

fn slow_and_fast() -> [(&'static str, Arc<dyn Model>); 2] {
    [("best", Arc::new(Slow::of(text("best")))), ("fast", Arc::new(text("fast")))]
}

fn faster(min_samples: usize) -> Adaptation {
    Adaptation::new(Goals::new().latency_p95(SECOND))
        .bounds(Bounds::new().models(["best", "fast"]))
        .min_samples(min_samples)
}

#[tokio::test(start_paused = true)]
async fn new_instances_use_the_new_model_and_the_living_one_does_not() {
    let adaptation = faster(2);
    let blueprint = Agent::builder("a")
        .model(Passthrough::new())
        .with_lifecycle(applying(&adaptation, slow_and_fast()))
        .blueprint()
        .unwrap();
    let first = blueprint.instance();
    first.startup().await.unwrap();
    for _ in 0..4 {
        assert_eq!(first.run("hello").await.unwrap().output(), "best");
    }
    let second = blueprint.instance();
    second.startup().await.unwrap();
    assert_eq!(second.run("hello").await.unwrap().output(), "fast");
    assert_eq!(first.run("hello").await.unwrap().output(), "best");
    first.shutdown().await;
    second.shutdown().await;
}

/// Fails so often, then answers.
fn flaky(kind: ModelErrorKind, times: usize) -> RecordedModel {
    let replies = (0..times).fold(Scripted::empty(), |script, _| script.error(kind, "not now"));
    RecordedModel::new(replies.text("at last"))
}

async fn with_retries(retries: usize, model: &RecordedModel) -> Result<String, String> {
    let adaptation = Adaptation::new(Goals::new().error_rate(0.5))
        .bounds(Bounds::new().retries(retries..=retries));
    let hook = adaptation.applying([]);
    let agent = Agent::builder("a").model(model.clone()).with_lifecycle(hook);
    ask(agent, "hello").await.map(|it| it.output().to_owned()).map_err(|it| it.to_string())
}

#[tokio::test(start_paused = true)]
async fn calls_that_fail_are_repeated_as_often_as_the_setting_says() {
    let model = flaky(ModelErrorKind::Transport, 2);
    assert_eq!(with_retries(2, &model).await, Ok("at last".to_owned()));
    let model = flaky(ModelErrorKind::Transport, 2);
    assert!(with_retries(1, &model).await.is_err());
    assert_eq!(model.requests().len(), 2);
    let model = flaky(ModelErrorKind::Auth, 1);
    assert!(with_retries(5, &model).await.is_err(), "what stays wrong is not repeated");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_when_to_come_back_is_heeded() {
    let after = |seconds| {
        let error = ModelError::new(ModelErrorKind::RateLimited, "slow down");
        let error = error.with_retry_after(Duration::from_secs(seconds));
        RecordedModel::new(Scripted::empty().reply(error).text("at last"))
    };
    let begun = Instant::now();
    assert!(with_retries(1, &after(7)).await.is_ok());
    assert_eq!(begun.elapsed().as_secs(), 7);
    let model = after(300);
    assert!(with_retries(1, &model).await.is_err(), "that is too long to wait");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_has_seen_is_not_said_again() {
    let told = tenure_core::model::ModelError::new(ModelErrorKind::Transport, "cut off");
    let model = tells_then_fails(told);
    let adaptation =
        Adaptation::new(Goals::new().error_rate(0.5)).bounds(Bounds::new().retries(3..=3));
    let agent = Agent::builder("a")
        .model(model.clone())
        .with_lifecycle(adaptation.applying([]))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("hello");
    assert_eq!(stream.next().await.as_deref(), Some("half an"), "text is not held back");
    assert!(stream.finish().await.is_err());
    assert_eq!(model.0.load(std::sync::atomic::Ordering::Relaxed), 1);
    agent.shutdown().await;
}

/// A model that says something, waits, and fails; it counts its calls.
#[derive(Clone)]
struct Cut(Arc<std::sync::atomic::AtomicUsize>, Arc<ModelError>);

fn tells_then_fails(error: ModelError) -> Cut {
    Cut(Arc::default(), Arc::new(error))
}

#[async_trait::async_trait]
impl Model for Cut {
    async fn call(
        &self,
        _: &tenure_core::model::ModelRequest,
        cx: tenure_core::context::ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        cx.delta("half an");
        tokio::time::sleep(SECOND).await;
        Err(ModelError::new(self.1.kind(), self.1.to_string()))
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_are_made_at_the_same_time_than_the_setting_says() {
    let adaptation =
        Adaptation::new(Goals::new().latency_p95(SECOND)).bounds(Bounds::new().concurrency(1..=2));
    let blueprint = Agent::builder("a")
        .model(Slow::of(Passthrough::new()).by(SECOND))
        .with_lifecycle(adaptation.applying([]))
        .blueprint()
        .unwrap();
    let agents: Vec<_> = (0..6).map(|_| blueprint.instance()).collect();
    for agent in &agents {
        agent.startup().await.unwrap();
    }
    let begun = Instant::now();
    let turns = agents.iter().map(|agent| agent.run("hello"));
    let turns = futures_util::future::join_all(turns).await;
    assert!(turns.iter().all(Result::is_ok));
    assert_eq!(begun.elapsed().as_secs(), 3, "six calls, two at a time");
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_too_long_for_a_place_is_made_all_the_same() {
    let adaptation =
        Adaptation::new(Goals::new().latency_p95(SECOND)).bounds(Bounds::new().concurrency(1..=1));
    let blueprint = Agent::builder("a")
        .model(Slow::of(Passthrough::new()).by(SECOND * 500))
        .with_lifecycle(adaptation.applying([]))
        .blueprint()
        .unwrap();
    let (one, two) = (blueprint.instance(), blueprint.instance());
    one.startup().await.unwrap();
    two.startup().await.unwrap();
    let begun = Instant::now();
    let (first, second) = tokio::join!(one.run("one"), two.run("two"));
    assert_eq!((first.unwrap().output(), second.unwrap().output()), ("one", "two"));
    assert_eq!(begun.elapsed().as_secs(), 620);
    one.shutdown().await;
    two.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_somebody_else_has_chosen_is_left_alone() {
    let chosen: Arc<dyn Model> = Arc::new(text("chosen"));
    let chooses = tenure_core::hook::before_model(move |_, request| {
        request.use_model(chosen.clone());
        Box::pin(async { Ok(tenure_core::hook::Flow::Continue) })
    });
    let agent = Agent::builder("a")
        .model(Passthrough::new())
        .with_lifecycle(chooses)
        .with_lifecycle(applying(&faster(2), slow_and_fast()));
    assert_eq!(ask(agent, "hello").await.unwrap().output(), "chosen");
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_with_the_setting_that_it_began_with() {
    let memory = InMemory::new();
    let build = |best: &RecordedModel| {
        let models: [(&str, Arc<dyn Model>); 2] =
            [("best", Arc::new(Slow::of(best.clone()))), ("fast", Arc::new(text("fast")))];
        let tool = tenure_core::tool::ToolSpec::new("clock", "The time");
        Agent::builder("a")
            .model(Passthrough::new())
            .memory(memory.clone())
            .tool(tenure_core::tool::FnTool::new(tool, |_| Ok("noon".into())))
            .with_lifecycle(applying(&faster(1), models))
            .build()
            .unwrap()
    };
    let script = || Scripted::empty().call("clock", serde_json::json!({})).text("it is noon");
    let log = MemoryStepLog::new();
    let agent = build(&RecordedModel::new(script()).named("best"));
    agent.startup().await.unwrap();
    agent.request("hello").steps(log.clone()).run().await.unwrap();
    agent.shutdown().await;
    let known = &memory.snapshot("a")["memory/adapt"];
    assert_eq!(known["setting"]["model"], "fast", "what comes next is faster");

    // The process died after the first model call; another one goes on.
    let first = log.keys().iter().position(|key| &*key.kind == "model").unwrap();
    let best = RecordedModel::new(Scripted::new(["it is noon, still"])).named("best");
    let agent = build(&best);
    agent.startup().await.unwrap();
    let report = agent.request("hello").steps(log.cut_after(first + 1)).run().await.unwrap();
    assert_eq!((report.output(), best.requests().len()), ("it is noon, still", 1));
    let next = agent.run("and now?").await.unwrap();
    assert_eq!(next.output(), "fast", "a new turn of the new instance has the new setting");
    agent.shutdown().await;
}

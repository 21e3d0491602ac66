//! tower: its layers as wraps, our wraps as layers.

use crate::semantics::support::*;
use std::future::Ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tenure_core::agent::Agent;
use tenure_core::hook::{self, FaultKind, Point, Policy};
use tenure_core::message::ToolStatus;
use tenure_core::model::{ModelErrorKind, ModelResponse};
use tenure_core::tool::ToolOutput;
use tenure_core::tower::{HookLayer, ModelCall, ModelLayer, ToolCall, ToolLayer};
use tenure_core::{BoxError, Error, ErrorKind, Outcome};
use tokio::time::{Instant, sleep};
use tower::limit::ConcurrencyLimitLayer;
use tower::retry::{Policy as RetryPolicy, RetryLayer};
use tower::timeout::TimeoutLayer;
use tower::{Layer, Service, ServiceBuilder};

/// Tries again what may well succeed later.
#[derive(Clone)]
struct Attempts(usize);

impl<Request: Clone, Response> RetryPolicy<Request, Response, BoxError> for Attempts {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request,
        result: &mut Result<Response, BoxError>,
    ) -> Option<Self::Future> {
        let error = result.as_ref().err()?.downcast_ref::<Error>()?;
        if !error.is_retryable() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request) -> Option<Request> {
        Some(request.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn towers_retry_asks_the_model_again() {
    let flaky = || Reply::Fail(ModelErrorKind::Overloaded);
    for (replies, calls, ok) in [
        (vec![flaky(), flaky(), say("third time")], 3, true),
        (vec![flaky(), flaky(), flaky(), say("too late")], 3, false),
        (vec![Reply::Fail(ModelErrorKind::Auth)], 1, false),
    ] {
        let model = script(replies);
        let agent = started(
            Agent::builder("agent")
                .model(model.clone())
                .layer_model(ModelLayer::new(RetryLayer::new(Attempts(2)))),
        )
        .await;
        let result = agent.run("go").await;
        assert_eq!((model.calls(), result.is_ok()), (calls, ok));
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Model, "the model's own error passes through");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn towers_timeout_cuts_off_a_model_and_a_tool() {
    let agent = started(
        Agent::builder("agent")
            .model(script([Reply::Hang]))
            .layer_model(ModelLayer::new(TimeoutLayer::new(ms(50)))),
    )
    .await;
    let begun = Instant::now();
    let error = agent.run("go").await.unwrap_err();
    assert_eq!((error.outcome(), begun.elapsed()), (Outcome::TimedOut, ms(50)));
    assert_eq!(error.report().unwrap().failures[0].kind, FaultKind::TimedOut);

    let dropped = Count::default();
    struct OnDrop(Count);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.up();
        }
    }
    let count = dropped.clone();
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["slow"])]))
            .tool(tool("slow", move |_, _| {
                let guard = OnDrop(count.clone());
                Box::pin(async move {
                    sleep(secs(60)).await;
                    drop(guard);
                    Ok("late".into())
                })
            }))
            .with_lifecycle(
                hook::hook(ToolLayer::new(TimeoutLayer::new(ms(50)))).policy(Policy::Deny),
            ),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(results(report.history())[0].status, ToolStatus::Denied);
    assert_eq!(dropped.get(), 1, "the call went with the layer's patience");
}

#[tokio::test(start_paused = true)]
async fn a_layers_own_time_stands_still_while_the_rest_of_the_chain_runs() {
    let agent = started(
        Agent::builder("agent")
            .model(script([Reply::Slow(secs(60), Box::new(say("at last")))]))
            .with_lifecycle(
                hook::hook(ModelLayer::new(ServiceBuilder::new().concurrency_limit(1)))
                    .limit(ms(10)),
            ),
    )
    .await;
    assert_eq!(agent.run("go").await.unwrap().output(), "at last");
}

#[tokio::test(start_paused = true)]
async fn towers_concurrency_limit_is_shared_by_every_call_and_instance() {
    let (now, most) = (Count::default(), Arc::new(AtomicUsize::new(0)));
    let (counted, peak) = (now.clone(), most.clone());
    let blueprint = Agent::builder("agent")
        .model(script(std::iter::repeat_n(call(&["work"; 4]), 2)))
        .tool(tool("work", move |_, _| {
            let (now, most) = (counted.clone(), peak.clone());
            Box::pin(async move {
                most.fetch_max(now.up(), Ordering::SeqCst);
                sleep(ms(10)).await;
                now.down();
                Ok("worked".into())
            })
        }))
        .layer_tool(ToolLayer::new(ConcurrencyLimitLayer::new(2)))
        .blueprint()
        .unwrap();
    let (one, two) = (blueprint.instance(), blueprint.instance());
    one.startup().await.unwrap();
    two.startup().await.unwrap();
    let begun = Instant::now();
    let (first, second) = tokio::join!(one.run("go"), two.run("go"));
    assert_eq!(contents(first.unwrap().history()), ["worked"; 4]);
    assert_eq!(contents(second.unwrap().history()), ["worked"; 4]);
    assert_eq!((most.load(Ordering::SeqCst), begun.elapsed()), (2, ms(40)));
}

/// Counts how often it is applied, and changes nothing.
#[derive(Clone)]
struct Applied(Count);

impl<S> Layer<S> for Applied {
    type Service = S;

    fn layer(&self, inner: S) -> S {
        self.0.up();
        inner
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_is_applied_once_when_it_is_made() {
    let applied = Count::default();
    let layer = ModelLayer::new(Applied(applied.clone()));
    assert_eq!(applied.get(), 1);
    let agent = started(Agent::builder("agent").model(script([])).layer_model(layer)).await;
    for _ in 0..3 {
        agent.run("go").await.unwrap();
    }
    agent.spawn_detached_instance(None).await.unwrap().run("go").await.unwrap();
    assert_eq!(applied.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wrap_stands_in_a_tower_stack_at_its_place() {
    let log = Log::default();
    let probes = |name| HookLayer::new(probe_at(name, &log, Point::WrapModelCall));
    let stack = ServiceBuilder::new()
        .layer(probes("outer"))
        .layer(RetryLayer::new(Attempts(1)))
        .layer(probes("inner"))
        .into_inner();
    let agent = started(
        Agent::builder("agent")
            .model(script([Reply::Fail(ModelErrorKind::Overloaded), say("second")]))
            .layer_model(ModelLayer::new(stack))
            .with_lifecycle(probe_at("behind", &log, Point::WrapModelCall)),
    )
    .await;
    assert_eq!(agent.run("go").await.unwrap().output(), "second");
    assert_eq!(
        log.take(),
        [
            "outer.model>",
            "inner.model>",
            "behind.model>",
            "behind.model<",
            "inner.model<",
            "inner.model>",
            "behind.model>",
            "behind.model<",
            "inner.model<",
            "outer.model<"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_wrap_stands_in_a_tower_stack_and_sees_its_batch() {
    let wrap = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            let output = next.call(request).await?;
            Ok(ToolOutput::text(format!("{}:{}", cx.call_id(), output.content)))
        })
    });
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act", "act"])]))
            .tool(ok_tool("act"))
            .layer_tool(ToolLayer::new(HookLayer::new(wrap))),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["c1:act ok", "c2:act ok"]);
}

#[derive(Clone)]
struct Shortcut;

impl<S> Layer<S> for Shortcut {
    type Service = Shortcut;

    fn layer(&self, _: S) -> Shortcut {
        Shortcut
    }
}

impl Service<ModelCall> for Shortcut {
    type Response = ModelResponse;
    type Error = BoxError;
    type Future = Ready<Result<ModelResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ModelCall) -> Self::Future {
        std::future::ready(Ok(ModelResponse::text("never asked")))
    }
}

impl Service<ToolCall> for Shortcut {
    type Response = ToolOutput;
    type Error = BoxError;
    type Future = Ready<Result<ToolOutput, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ToolCall) -> Self::Future {
        std::future::ready(Err("the service is down".into()))
    }
}

#[tokio::test(start_paused = true)]
async fn g3_a_layer_may_answer_itself_and_its_failure_meets_the_policy() {
    let model = script([]);
    let agent = started(
        Agent::builder("agent").model(model.clone()).layer_model(ModelLayer::new(Shortcut)),
    )
    .await;
    assert_eq!(agent.run("go").await.unwrap().output(), "never asked");
    assert_eq!(model.calls(), 0);

    for (policy, ran) in [(Policy::Abort, 0), (Policy::Deny, 0), (Policy::Continue, 1)] {
        let count = Count::default();
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["act"])]))
                .tool(counted("act", &count))
                .with_lifecycle(hook::hook(ToolLayer::new(Shortcut)).policy(policy)),
        )
        .await;
        let result = agent.run("go").await;
        assert_eq!((result.is_err(), count.get()), (policy == Policy::Abort, ran), "{policy:?}");
        assert_valid(&agent);
    }
}

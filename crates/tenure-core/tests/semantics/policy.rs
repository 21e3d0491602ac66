//! What a failing hook means, and how long a hook may take.

use crate::semantics::support::*;
use tenure_core::agent::Agent;
use tenure_core::event::EventBus;
use tenure_core::hook::{
    self, After, FaultKind, Flow, HookAction, HookError, Point, Points, Policy, Registration,
};
use tenure_core::message::ToolStatus;
use tenure_core::model::ModelResponse;
use tenure_core::tool::ToolOutput;
use tenure_core::{Error, ErrorKind, Outcome};
use tokio::time::{Instant, sleep};

const JUDGES: [Point; 5] = [
    Point::BeforeAgent,
    Point::BeforeModel,
    Point::WrapModelCall,
    Point::AfterModel,
    Point::WrapToolCall,
];

/// Whether somebody subscribes to the events: the calls of hooks take another path then.
const UNWATCHED_AND_WATCHED: [bool; 2] = [false, true];

/// Every fault at every one of `points`, unwatched and watched.
fn table(points: &[Point]) -> impl Iterator<Item = (Point, Fault, bool, String)> {
    points.iter().flat_map(|&point| {
        Fault::ALL.into_iter().flat_map(move |fault| {
            UNWATCHED_AND_WATCHED.map(|watched| {
                let case = format!("{point} {fault:?} watched: {watched}");
                (point, fault, watched, case)
            })
        })
    })
}

fn broken(point: Point, fault: Fault, policy: Policy) -> Registration {
    hook::hook(Broken { point, fault, after_next: false })
        .named("broken")
        .policy(policy)
        .limit(secs(1))
}

fn kind_of(fault: Fault) -> FaultKind {
    match fault {
        Fault::Error => FaultKind::Failed,
        Fault::Panic => FaultKind::Panicked,
        Fault::Hang => FaultKind::TimedOut,
    }
}

struct Ran {
    result: Result<tenure_core::drive::TurnReport, tenure_core::Error>,
    tool_runs: usize,
    model_calls: usize,
    log: Vec<String>,
}

/// One turn with one tool call, with `registration` between two others.
async fn run_with(registration: Registration, watched: bool) -> Ran {
    let (log, count) = (Log::default(), Count::default());
    let bus = EventBus::new();
    let mut subscriber = watched.then(|| bus.subscribe(1024));
    let model = script([call(&["act"]), say("done")]);
    let ends = Points::from(Point::AfterAgent);
    let agent = started(
        Agent::builder("agent")
            .model(model.clone())
            .tool(counted("act", &count))
            .events(&bus)
            .with_lifecycle(probe_at("outer", &log, ends))
            .with_lifecycle(registration)
            .with_lifecycle(probe_at("inner", &log, ends)),
    )
    .await;
    let result = agent.run("go").await;
    assert_valid(&agent);
    if let Some(subscriber) = &mut subscriber {
        let events = events(subscriber);
        assert!(names(&events).contains(&"hook.started"), "it was watched");
        assert_paired(&events);
    }
    Ran { result, tool_runs: count.get(), model_calls: model.calls(), log: log.take() }
}

#[tokio::test(start_paused = true)]
async fn g3_abort_fails_the_turn_with_the_hooks_own_fault() {
    for (point, fault, watched, case) in table(&JUDGES) {
        let ran = run_with(broken(point, fault, Policy::Abort), watched).await;
        let error = ran.result.expect_err(&case);
        let expected = match fault {
            Fault::Error => (ErrorKind::Hook, Outcome::Failed),
            Fault::Panic => (ErrorKind::Panicked, Outcome::Panicked),
            Fault::Hang => (ErrorKind::TimedOut, Outcome::TimedOut),
        };
        assert_eq!((error.kind(), error.outcome()), expected, "{case}");
        assert!(error.to_string().contains("`broken`"), "{case}: {error}");
        assert_eq!(ran.tool_runs, 0, "{case}");
        let report = error.report().expect("a turn's error carries its report");
        assert_eq!(report.failures[0].kind, kind_of(fault), "{case}");
        assert_eq!(&*report.failures[0].point, point.as_str(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn g3_a_guard_never_fails_open() {
    for (point, fault, watched, case) in table(&JUDGES) {
        let ran = run_with(broken(point, fault, Policy::Deny), watched).await;
        assert_eq!(ran.tool_runs, 0, "{case}: what the guard stood before did not happen");
        if point == Point::WrapToolCall {
            let report = ran.result.expect(&case);
            let results = results(report.history());
            assert_eq!(results[0].status, ToolStatus::Denied, "{case}");
            assert!(results[0].content.text().contains("`broken`"), "{case}");
            assert_eq!(ran.model_calls, 2, "{case}: the model reads the refusal");
            assert_eq!(report.failures[0].kind, kind_of(fault), "{case}");
        } else {
            let error = ran.result.expect_err(&case);
            assert_eq!(error.outcome(), Outcome::Denied, "{case}");
            let calls = usize::from(point == Point::AfterModel);
            assert_eq!(ran.model_calls, calls, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g3_continue_passes_over_a_failure_and_records_it() {
    for (point, fault, watched, case) in table(&JUDGES) {
        let ran = run_with(broken(point, fault, Policy::Continue), watched).await;
        let report = ran.result.expect(&case);
        assert_eq!((report.output(), ran.tool_runs), ("done", 1), "{case}");
        assert_eq!(report.failures[0].kind, kind_of(fault), "{case}");
        assert_eq!(ran.log, ["inner.after_agent(ok)", "outer.after_agent(ok)"], "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn g5_a_failing_end_changes_nothing_and_skips_nobody() {
    for policy in [None, Some(Policy::Abort), Some(Policy::Continue)] {
        for (point, fault, watched, case) in table(&[Point::AfterAgent]) {
            let mut end = hook::hook(Broken { point, fault, after_next: false }).named("broken");
            if let Some(policy) = policy {
                end = end.policy(policy);
            }
            let ran = run_with(end, watched).await;
            let report = ran.result.expect("an end never changes the outcome");
            assert_eq!(report.output(), "done", "{case}");
            assert_eq!(report.failures[0].kind, kind_of(fault), "{case}");
            assert_eq!(ran.log, ["inner.after_agent(ok)", "outer.after_agent(ok)"], "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g3_a_guard_that_fails_behind_the_call_withholds_its_result_and_says_executed() {
    for (point, fault, watched, case) in table(&[Point::WrapToolCall, Point::WrapModelCall]) {
        let guard = hook::hook(Broken { point, fault, after_next: true }).named("broken");
        let ran = run_with(guard.policy(Policy::Deny).limit(secs(1)), watched).await;
        if point == Point::WrapModelCall {
            let error = ran.result.expect_err(&case);
            let expected = (Outcome::Denied, 1, 0);
            assert_eq!((error.outcome(), ran.model_calls, ran.tool_runs), expected, "{case}");
            continue;
        }
        let report = ran.result.expect(&case);
        assert_eq!(ran.tool_runs, 1, "{case}");
        let result = &results(report.history())[0];
        assert_eq!(result.status, ToolStatus::Denied, "{case}");
        assert!(result.content.text().contains("executed"), "{case}: {}", result.content);
        assert!(!result.content.text().contains("act ok"), "{case}: the result is withheld");
        assert_eq!(report.failures[0].kind, kind_of(fault), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn g3_a_guard_around_a_call_that_another_guard_denied_does_not_say_executed() {
    let count = Count::default();
    let outer = Broken { point: Point::WrapToolCall, fault: Fault::Panic, after_next: false };
    struct AfterAll(Broken);
    #[async_trait::async_trait]
    impl hook::AgentLifecycle for AfterAll {
        fn points(&self) -> Points {
            Point::WrapToolCall.into()
        }
        async fn wrap_tool_call(
            &self,
            _: tenure_core::context::ToolCx<'_>,
            request: &mut tenure_core::tool::ToolRequest,
            next: tenure_core::NextTool<'_>,
        ) -> Result<ToolOutput, HookError> {
            let _ = next.call(request).await;
            self.0.fault.strike().await
        }
    }
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act"])]))
            .tool(counted("act", &count))
            .with_lifecycle(hook::hook(AfterAll(outer)).policy(Policy::Deny))
            .with_lifecycle(broken(Point::WrapToolCall, Fault::Error, Policy::Deny)),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(count.get(), 0);
    let content = &contents(report.history())[0];
    assert!(!content.contains("executed"), "{content}");
}

#[tokio::test(start_paused = true)]
async fn g3_continue_behind_the_call_keeps_the_last_result_of_next() {
    for (point, fault, watched, case) in table(&[Point::WrapToolCall, Point::WrapModelCall]) {
        let wrap = hook::hook(Broken { point, fault, after_next: true });
        let ran = run_with(wrap.policy(Policy::Continue).limit(secs(1)), watched).await;
        let report = ran.result.expect(&case);
        assert_eq!((report.output(), ran.model_calls), ("done", 2), "{case}");
        assert_eq!(ran.tool_runs, 1, "{case}: next is not called again");
        assert_eq!(contents(report.history()), ["act ok"], "{case}");
        assert_eq!(report.failures[0].kind, kind_of(fault), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn g3_an_error_of_the_wraps_own_making_meets_its_policy_too() {
    let wrap = || {
        hook::wrap_tool_call(|cx, request, next| {
            Box::pin(async move {
                // Not the agent's to write.
                tenure_core::context::Cx::set_state(&cx, "trace_id", 1)?;
                Ok(next.call(request).await?)
            })
        })
    };
    for watched in UNWATCHED_AND_WATCHED {
        let ran = run_with(hook::hook(wrap()).policy(Policy::Continue), watched).await;
        let report = ran.result.expect("continue passes over it");
        assert_eq!((report.failures.len(), ran.tool_runs), (1, 1));
        let ran = run_with(hook::hook(wrap()).policy(Policy::Deny), watched).await;
        let report = ran.result.expect("deny is a result for the model");
        assert_eq!((results(report.history())[0].status, ran.tool_runs), (ToolStatus::Denied, 0));
        let ran = run_with(hook::hook(wrap()).policy(Policy::Abort), watched).await;
        assert_eq!(ran.result.unwrap_err().kind(), ErrorKind::State);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_a_decision_whatever_the_policy() {
    for policy in [Policy::Abort, Policy::Deny, Policy::Continue] {
        for watched in UNWATCHED_AND_WATCHED {
            let wrap = hook::wrap_tool_call(|_, _, _| {
                Box::pin(async { Err(tenure_core::Error::denied("not on a Sunday").into()) })
            });
            let ran = run_with(hook::hook(wrap).policy(policy), watched).await;
            let result = &results(ran.result.unwrap().history())[0];
            assert_eq!((result.status, ran.tool_runs), (ToolStatus::Denied, 0), "{policy:?}");
            assert!(
                result.content.text().contains("not on a Sunday"),
                "{policy:?}: {}",
                result.content
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_changes_nothing_and_its_failure_is_ignored() {
    let observers: [Registration; 6] = [
        hook::hook(hook::before_agent(|_, input| {
            input.content = "tampered".into();
            Box::pin(async { Ok(Flow::Finish("tampered".into())) })
        })),
        hook::hook(hook::before_model(|_, request| {
            request.messages.edit().clear();
            Box::pin(async { Ok(Flow::Finish("tampered".into())) })
        })),
        hook::hook(hook::wrap_model_call(|_, request, next| {
            Box::pin(async move {
                request.messages.edit().clear();
                next.call(request).await?;
                Ok(ModelResponse::text("tampered"))
            })
        })),
        hook::hook(hook::after_model(|_, _| {
            Box::pin(async { Ok(HookAction::Reject("tampered".to_owned())) })
        })),
        hook::hook(hook::wrap_tool_call(|_, request, next| {
            Box::pin(async move {
                request.arguments = serde_json::json!({ "tampered": true });
                next.call(request).await?;
                Ok("tampered".into())
            })
        })),
        hook::hook(hook::after_agent(|_, end| {
            Box::pin(async move {
                if let Some(output) = end.content_mut() {
                    *output = "tampered".into();
                }
                Ok(After::Continue("tampered".into()))
            })
        })),
    ];
    for observer in observers {
        let case = format!("{observer:?}");
        let model = script([call_with("act", r#"{"n":1}"#), say("done")]);
        let agent = started(
            Agent::builder("agent")
                .model(model.clone())
                .tool(tool("act", |_, arguments| {
                    Box::pin(async move { Ok(arguments.to_string().into()) })
                }))
                .with_lifecycle(observer.observes()),
        )
        .await;
        let report = agent.run("go").await.expect(&case);
        assert_eq!((report.output(), model.calls()), ("done", 2), "{case}");
        assert_eq!(contents(report.history()), [r#"{"n":1}"#], "{case}");
        assert_eq!(model.seen()[0].len(), 1, "{case}");
        assert_eq!(model.seen()[0][0].text(), "go", "{case}");
    }
    for (point, fault, watched, case) in table(&JUDGES) {
        let observer = hook::hook(Broken { point, fault, after_next: false }).observes();
        let begun = Instant::now();
        let ran = run_with(observer, watched).await;
        assert_eq!(ran.result.expect(&case).output(), "done", "{case}");
        if fault == Fault::Hang {
            let once = point == Point::BeforeAgent || point == Point::WrapToolCall;
            let calls = if once { 1 } else { 2 };
            assert_eq!(begun.elapsed(), secs(5) * calls, "{case}: an observer has 5 s");
        }
    }
}

#[test]
fn an_observer_cannot_have_a_policy_that_its_failures_would_not_meet() {
    for policy in [Policy::Abort, Policy::Deny] {
        let observer = hook::hook(probe_at("watcher", &Log::default(), Point::WrapToolCall));
        let error = Agent::builder("agent")
            .model(script([]))
            .with_lifecycle(observer.observes().policy(policy))
            .build()
            .unwrap_err();
        assert!(error.to_string().contains("only observes"), "{error}");
    }
}

#[test]
fn an_observer_may_say_that_its_failures_are_ignored() {
    let observer = hook::hook(probe_at("watcher", &Log::default(), Point::AfterAgent)).observes();
    let observer = observer.policy_at(Point::AfterAgent, Policy::Continue);
    let built = Agent::builder("agent").model(script([])).with_lifecycle(observer).build();
    assert!(built.is_ok(), "{:?}", built.err());
}

#[tokio::test(start_paused = true)]
async fn g3_a_call_that_a_hook_began_and_gave_up_is_not_made_again() {
    for observes in [false, true] {
        let begun = Count::default();
        let counted = begun.clone();
        let impatient = hook::hook(hook::wrap_tool_call(|_, request, next| {
            Box::pin(async move {
                let call = tokio::time::timeout(ms(10), next.call(request));
                Ok(call.await.map_err(HookError::from)??)
            })
        }));
        let impatient =
            if observes { impatient.observes() } else { impatient.policy(Policy::Continue) };
        let agent = started(
            Agent::builder("agent")
                .model(script([call(&["slow"])]))
                .tool(tool("slow", move |_, _| {
                    counted.up();
                    Box::pin(async {
                        sleep(secs(1)).await;
                        Ok("done".into())
                    })
                }))
                .with_lifecycle(impatient),
        )
        .await;
        let error = agent.run("go").await.unwrap_err();
        assert_eq!((error.kind(), begun.get()), (ErrorKind::Hook, 1), "observes: {observes}");
    }
}

#[tokio::test(start_paused = true)]
async fn g5_an_end_that_passes_on_somebody_elses_cancel_skips_no_other() {
    let hangs = script(UNWATCHED_AND_WATCHED.map(|_| Reply::Hang));
    let other = started(Agent::builder("other").model(hangs)).await;
    let asks_other = {
        let other = other.clone();
        hook::after_agent(move |_, _| {
            let other = other.clone();
            Box::pin(async move {
                let (result, ()) = tokio::join!(other.run("go"), async {
                    sleep(ms(1)).await;
                    other.cancel();
                });
                result?;
                Ok(After::Done)
            })
        })
    };
    let asks_other: std::sync::Arc<dyn hook::AgentLifecycle> = std::sync::Arc::new(asks_other);
    for watched in UNWATCHED_AND_WATCHED {
        let ran = run_with(Registration::shared(asks_other.clone()), watched).await;
        let report = ran.result.unwrap();
        assert_eq!(report.failures.len(), 1);
        assert_eq!(ran.log, ["inner.after_agent(ok)", "outer.after_agent(ok)"]);
    }
}

#[tokio::test(start_paused = true)]
async fn g3_a_denial_on_purpose_denies_whatever_the_policy_for_failures_is() {
    let deny = || Error::denied("because").into();
    let policies = [Policy::Abort, Policy::Deny, Policy::Continue];
    let cases = policies.into_iter().flat_map(|it| UNWATCHED_AND_WATCHED.map(|on| (it, on)));
    for (policy, watched) in cases {
        let hooks: [Registration; 4] = [
            hook::hook(hook::before_agent(move |_, _| Box::pin(async move { Err(deny()) }))),
            hook::hook(hook::before_model(move |_, _| Box::pin(async move { Err(deny()) }))),
            hook::hook(hook::after_model(move |_, _| Box::pin(async move { Err(deny()) }))),
            hook::hook(hook::wrap_model_call(move |_, _, _| Box::pin(async move { Err(deny()) }))),
        ];
        for hook in hooks {
            let error = run_with(hook.policy(policy), watched).await.result.unwrap_err();
            assert_eq!((error.outcome(), &*error.to_string()), (Outcome::Denied, "because"));
            assert_eq!(error.report().unwrap().failures, [], "a decision is not a failure");
        }
    }
}

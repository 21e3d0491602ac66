//! Every way in which a chat ends: `after_chat` once, and then the agents.

use crate::engine::support::{Log, Plan, Spy, agent, said};
use async_trait::async_trait;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::{ChatCx, ExecutionContext, InstanceCx};
use tenure_core::hook::{AgentLifecycle, Flow as Go, HookError, Point, Points, Policy, hook};
use tenure_core::model::ModelErrorKind;
use tenure_core::{CancelToken, Error, Outcome};
use tenure_flow::contract::Stage;
use tenure_flow::route::{RouteCx, Router, RoutingDecision};
use tenure_flow::{ChatReport, ChatStatus, Flow, FlowBuilder};
use tenure_models::{Failing, Hanging, Passthrough, Scripted};

/// Runs a chat with a spy on the host and on an agent, and looks whether everything that began has
/// ended, in order.
async fn ends(spy: &Spy, flow: FlowBuilder, cancel_after: Option<Duration>) -> ChatReport {
    let flow = flow.with_lifecycle(spy.clone()).build().expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        if let Some(after) = cancel_after {
            tokio::time::sleep(after).await;
            token.cancel();
        }
    };
    let chat = flow.chat().message("go").cancel_on(&token).run();
    let (report, ()) = tokio::join!(chat, cancel);
    let notes = spy.notes();
    assert_eq!(spy.count("before_chat"), spy.count("after_chat"), "{notes:?}");
    assert_eq!(spy.count("before_agent"), spy.count("after_agent"), "{notes:?}");
    assert_eq!(spy.count("start"), spy.count("shutdown"), "{notes:?}");
    let place = |what: &str| notes.iter().position(|note| note.starts_with(what));
    if let (Some(after), Some(stop)) = (place("after_chat"), place("shutdown")) {
        assert!(after < stop, "{notes:?}");
    }
    report
}

#[tokio::test(start_paused = true)]
async fn after_chat_runs_once_on_each_of_the_four_ends() {
    struct Case(&'static str, ChatStatus, Outcome, Stage, Option<u64>);
    for Case(name, status, outcome, stage, cancel) in [
        Case("completed", ChatStatus::Completed, Outcome::Ok, Stage::Complete, None),
        Case("failed", ChatStatus::Failed, Outcome::Failed, Stage::Failed, None),
        Case("max_turns", ChatStatus::MaxTurns, Outcome::MaxTurns, Stage::Failed, None),
        Case("cancelled", ChatStatus::Cancelled, Outcome::Cancelled, Stage::Cancelled, Some(5)),
        Case("timed_out", ChatStatus::Failed, Outcome::TimedOut, Stage::Failed, None),
        Case("panicked", ChatStatus::Failed, Outcome::Panicked, Stage::Failed, None),
    ] {
        let (log, spy) = (Log::new(), Spy::default());
        let builder = match name {
            "failed" => log.builder("a", Failing::new(ModelErrorKind::Auth)),
            "cancelled" => log.builder("a", Hanging::new()),
            "timed_out" => log.builder("a", Hanging::new()).model_limit(Duration::from_secs(1)),
            "panicked" => log.builder("a", Scripted::empty().panics("boom")),
            _ => log.builder("a", Passthrough::new()),
        };
        let flow = Flow::builder("one").events(&log.bus);
        let flow =
            flow.agent(builder.with_lifecycle(spy.clone()).blueprint().expect("it can be built"));
        let flow = match name {
            "completed" => flow.router(Plan::new(["a"])),
            _ => flow.max_turns(2),
        };
        let report = ends(&spy, flow, cancel.map(Duration::from_secs)).await;
        assert_eq!((report.status, report.outcome), (status, outcome), "{name}: {report:?}");
        assert_eq!(report.stage, stage, "{name}");
        assert_eq!(spy.count("after_chat"), 2, "{name}: {:?}", spy.notes());
        assert_eq!(spy.count(&format!("after_chat {outcome}")), 2, "{name}: {:?}", spy.notes());
        // The scope, the last stage, the status, and then the agents.
        let names = log.names();
        let at = |wanted: &str| names.iter().rposition(|name| *name == wanted).unwrap();
        let shutdown = names.iter().position(|name| *name == "agent.shutdown").unwrap();
        assert!(at("agent.turn.ended") < at("chat.ended"), "{names:?}");
        assert!(at("chat.ended") < at(stage.event_name()), "{names:?}");
        assert!(at(stage.event_name()) < at("chat.status"), "{names:?}");
        assert!(at("chat.status") < shutdown, "{names:?}");
    }
}

/// What a hook of the chat does at `before_chat`.
struct Begins(fn() -> Result<Go, HookError>);

#[async_trait]
impl AgentLifecycle for Begins {
    fn points(&self) -> Points {
        Point::BeforeChat.into()
    }

    fn name(&self) -> &str {
        "begins"
    }

    async fn before_chat(&self, _cx: ChatCx<'_>) -> Result<Go, HookError> {
        (self.0)()
    }
}

#[tokio::test]
async fn a_before_chat_that_decides_ends_the_chat_before_the_first_turn() {
    type Case = (fn() -> Result<Go, HookError>, ChatStatus, Outcome, &'static str);
    let cases: [Case; 3] = [
        (|| Ok(Go::Finish("closed".into())), ChatStatus::Completed, Outcome::Ok, "closed"),
        (|| Err(Error::denied("no").into()), ChatStatus::Failed, Outcome::Denied, ""),
        (|| Err(HookError::new("broken")), ChatStatus::Failed, Outcome::Failed, ""),
    ];
    for (begins, status, outcome, output) in cases {
        let spy = Spy::default();
        let own = Agent::builder("a").model(Passthrough::new()).with_lifecycle(spy.clone());
        let flow = Flow::builder("one").agent(own.blueprint().expect("it can be built"));
        let entry = hook(Begins(begins)).policy(Policy::Abort);
        let report = ends(&spy, flow.with_lifecycle(entry), None).await;
        assert_eq!((report.status, report.outcome), (status, outcome), "{report:?}");
        assert_eq!((&*report.output, report.turns), (output, 0));
        // The entry before the spy decided, so the spy was never passed.
        assert_eq!(spy.count("before_chat"), 0);
    }
}

#[tokio::test]
async fn an_agent_that_does_not_start_stops_those_that_did() {
    struct Refuses;
    #[async_trait]
    impl AgentLifecycle for Refuses {
        fn points(&self) -> Points {
            Point::OnStart.into()
        }
        fn name(&self) -> &str {
            "refuses"
        }
        async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
            Err(HookError::new("no pool"))
        }
    }
    let spy = Spy::default();
    let part =
        |name: &str| Agent::builder(name).model(Passthrough::new()).with_lifecycle(spy.clone());
    let flow = Flow::builder("three").agent(part("a").blueprint().expect("it can be built"));
    let flow = flow.agent(part("b").with_lifecycle(Refuses).blueprint().expect("it can be built"));
    let flow = flow.agent(part("c").blueprint().expect("it can be built"));
    let report = ends(&spy, flow, None).await;
    assert_eq!((report.status, report.stage), (ChatStatus::Failed, Stage::Failed));
    let error = report.error.unwrap().to_string();
    assert!(error.contains("agent `b` did not start") && error.contains("no pool"), "{error}");
    // `c` was never started, and nobody was told of a chat.
    assert_eq!(spy.notes(), ["start a", "start b", "shutdown b", "shutdown a"]);
}

/// A router that misbehaves.
struct Bad(&'static str);

#[async_trait]
impl Router for Bad {
    async fn route(&self, _cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        match self.0 {
            "panics" => panic!("no idea"),
            "fails" => Err(Error::orchestration("nobody fits")),
            other => Ok(RoutingDecision::agent(other, "why not")),
        }
    }

    fn name(&self) -> &str {
        "bad"
    }
}

#[tokio::test]
async fn a_router_that_fails_ends_the_chat_in_order() {
    for (what, outcome, part) in [
        ("panics", Outcome::Panicked, "no idea"),
        ("fails", Outcome::Failed, "nobody fits"),
        ("ghost", Outcome::Failed, "`ghost` was chosen to speak"),
    ] {
        let spy = Spy::default();
        let own = Agent::builder("a").model(Passthrough::new()).with_lifecycle(spy.clone());
        let flow =
            Flow::builder("one").agent(own.blueprint().expect("it can be built")).router(Bad(what));
        let report = ends(&spy, flow, None).await;
        assert_eq!((report.status, report.outcome), (ChatStatus::Failed, outcome), "{what}");
        assert_eq!(report.stage, Stage::Failed, "{what}");
        let error = report.error.unwrap().to_string();
        assert!(error.contains(part), "{what}: {error}");
        assert_eq!(spy.count("after_chat"), 2, "{what}");
    }
}

#[tokio::test]
async fn what_was_said_before_a_failure_is_in_the_report() {
    let flow = Flow::builder("two").agent(agent("a", Scripted::new(["first"])));
    let flow = flow.agent(agent("b", Failing::new(ModelErrorKind::Auth)));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert_eq!(said(&report), [("user", "go"), ("a", "first")]);
    assert_eq!((&*report.output, report.turns), ("first", 2));
    let outcomes: Vec<_> = report.turn_summaries.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Failed]);
    assert_eq!((report.metrics.successful_steps, report.metrics.failed_steps), (1, 1));
    assert!(report.usage.total() > 0);
}

#[tokio::test]
async fn a_context_that_is_not_valid_starts_nobody() {
    let spy = Spy::default();
    let own = Agent::builder("a").model(Passthrough::new()).with_lifecycle(spy.clone());
    let flow = Flow::builder("one")
        .agent(own.blueprint().expect("it can be built"))
        .build()
        .expect("a flow");
    let report = flow.chat().context(ExecutionContext::new("")).message("go").run().await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert!(report.error.unwrap().to_string().contains("trace"), "it says what is wrong");
    assert!(spy.notes().is_empty());
}

#[tokio::test]
async fn a_panic_outside_of_the_scope_is_reported_with_the_chat() {
    let flow = Flow::builder("one").agent(agent("a", Passthrough::new()));
    let flow = flow.prepare(|_, _| panic!("no room")).build().expect("a flow");
    let report = flow.chat().id("c").message("go").run().await;
    assert_eq!((report.status, report.outcome), (ChatStatus::Failed, Outcome::Panicked));
    assert_eq!(&*report.chat_id, "c");
    assert!(report.error.unwrap().to_string().contains("no room"));
}

#[test]
fn a_chat_whose_runtime_goes_is_abandoned() {
    let flow = Flow::builder("one").agent(agent("a", Hanging::new())).build().expect("a flow");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a flow");
    let chat = flow.chat().id("c").message("go");
    // The chat's task is on the runtime; who waits for it is not.
    let mut waiting = Box::pin(chat.run());
    let ready = runtime.block_on(std::future::poll_fn(|task| {
        std::task::Poll::Ready(waiting.as_mut().poll(task).is_ready())
    }));
    assert!(!ready);
    runtime.shutdown_timeout(Duration::from_secs(10));
    let other = tokio::runtime::Builder::new_current_thread().build().expect("a flow");
    let report = other.block_on(waiting);
    assert_eq!((report.status, report.outcome), (ChatStatus::Failed, Outcome::Abandoned));
    assert_eq!(&*report.chat_id, "c");
}

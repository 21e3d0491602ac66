//! Workflows inside of workflows.

use crate::engine::support::{Log, Plan, Spy, agent, said};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::hook;
use tenure_core::model::ModelErrorKind;
use tenure_core::{CancelToken, Outcome};
use tenure_flow::contract::ErrorStrategy;
use tenure_flow::nested::NestedFlow;
use tenure_flow::{ChatStatus, Flow, FlowBuilder};
use tenure_models::{Failing, Hanging, Passthrough, Scripted};

/// A flow with one agent that is `inner`.
fn outer(inner: FlowBuilder) -> FlowBuilder {
    let inner = NestedFlow::new(inner.build().expect("a flow"));
    let own = inner.agent("sub").blueprint().expect("it can be built");
    Flow::builder("outer").agent(own).router(Plan::new(["sub"]))
}

#[tokio::test]
async fn the_turn_is_one_chat_and_its_output_the_answer() {
    let inner = Flow::builder("inner").agent(agent("a", Passthrough::new()));
    let finds = hook::before_agent(|cx, _| {
        Box::pin(async move {
            let variables = cx.chat_variables().expect("it is a turn of a chat");
            variables.set("found", format!("{:?}", variables.get("topic")))?;
            variables.set("unset", variables.all().contains_key("unset"))?;
            Ok(hook::Flow::Continue)
        })
    });
    let b = Agent::builder("b").model(Scripted::new(["the answer"])).with_lifecycle(finds);
    let inner = inner.agent(b.blueprint().expect("it can be built"));
    let inner = inner.router(Plan::new(["a", "b"])).build().expect("a flow");
    let nested = NestedFlow::new(inner).inputs(["topic", "unset"]).outputs(["found"]);
    let own = nested.agent("sub").blueprint().expect("it can be built");
    let flow = Flow::builder("outer").agent(own).agent(agent("last", Passthrough::new()));
    let flow = flow.router(Plan::new(["sub", "last"])).build().expect("a flow");
    let chat = flow.chat().id("c").app("app").user("me").variable("topic", "tea").message("go");
    let report = chat.run().await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let heard = "go\nsub: the answer";
    assert_eq!(said(&report), [("user", "go"), ("sub", "the answer"), ("last", heard)]);
    assert_eq!(report.turns, 2);
    assert_eq!(report.usage.calls, 3, "what the inner chat cost is counted: {:?}", report.usage);
    assert_eq!(report.variables["found"], r#"Some(String("tea"))"#);
    assert!(!report.variables.contains_key("unset"), "it is no output: {:?}", report.variables);
}

#[tokio::test]
async fn variables_go_in_and_out_by_name() {
    struct Finds;
    #[async_trait::async_trait]
    impl tenure_core::hook::AgentLifecycle for Finds {
        fn points(&self) -> tenure_core::hook::Points {
            tenure_core::hook::Point::AfterChat.into()
        }
        fn name(&self) -> &str {
            "finds"
        }
        async fn after_chat(
            &self,
            cx: tenure_core::context::ChatCx<'_>,
            _end: &tenure_core::chat::ChatEnd,
        ) -> Result<(), tenure_core::hook::HookError> {
            let all = cx.variables().all();
            cx.variables().set("found", format!("{} {}", all["topic"], all["chat_id"]))?;
            cx.variables().set("private", 1)?;
            Ok(())
        }
    }
    let inner = Flow::builder("inner").agent(agent("a", Passthrough::new()));
    let inner = inner.router(Plan::new(["a"])).with_lifecycle(Finds).build().expect("a flow");
    let nested = NestedFlow::new(inner).inputs(["topic"]).outputs(["found", "unset"]);
    let own = nested.agent("sub").blueprint().expect("it can be built");
    let flow =
        Flow::builder("outer").agent(own).router(Plan::new(["sub"])).build().expect("a flow");
    let report = flow.chat().id("c").variable("topic", "tea").message("go").run().await;
    assert_eq!(report.variables["found"], "\"tea\" \"c/sub/1\"");
    assert!(!report.variables.contains_key("private"));
    assert!(!report.variables.contains_key("unset"));
}

#[tokio::test(start_paused = true)]
async fn how_the_inner_chat_ended_is_how_the_turn_did() {
    let hour = Duration::from_secs(3600);
    let denies = |spy: &Spy| {
        let _ = spy;
        Flow::builder("inner").agent(agent("a", Passthrough::new())).user(true).on_ask(
            |_: &tenure_core::ask::PendingAsk| Some(tenure_core::ask::Answer::Reject("no".into())),
        )
    };
    let slow = Agent::builder("a")
        .model(Hanging::new())
        .model_limit(hour)
        .blueprint()
        .expect("it can be built");
    let spy = Spy::default();
    for (name, inner, status, outcome, part) in [
        (
            "failed",
            Flow::builder("inner").agent(agent("a", Failing::new(ModelErrorKind::Auth))),
            ChatStatus::Failed,
            Outcome::Failed,
            "ended as failed",
        ),
        (
            "max_turns",
            Flow::builder("inner").agent(agent("a", Passthrough::new())).max_turns(2),
            ChatStatus::Failed,
            Outcome::Failed,
            "ended as max_turns",
        ),
        (
            "denied",
            denies(&spy).router(Plan::new(["user"])),
            ChatStatus::Failed,
            Outcome::Denied,
            "no",
        ),
        (
            "timed out",
            Flow::builder("inner").agent(slow),
            ChatStatus::Failed,
            Outcome::TimedOut,
            "ended as failed",
        ),
        (
            "paused",
            Flow::builder("inner")
                .agent(agent("a", Passthrough::new()))
                .user(true)
                .router(Plan::new(["user"])),
            ChatStatus::Paused,
            Outcome::Failed,
            "waits for a person",
        ),
    ] {
        let report = outer(inner).build().expect("a flow").run("go").await;
        assert_eq!((report.status, report.outcome), (status, outcome), "{name}: {report:?}");
        let error = report.error.unwrap().to_string();
        assert!(error.contains(part), "{name}: {error}");
    }
}

#[tokio::test]
async fn an_inner_chat_that_failed_is_a_failed_turn_to_the_outer_strategy() {
    let inner = Flow::builder("inner").agent(agent("a", Failing::new(ModelErrorKind::Auth)));
    let flow = outer(inner).error_strategy(ErrorStrategy::Continue).build().expect("a flow");
    let report = flow.run("go").await;
    assert_eq!((report.status, report.metrics.failed_steps), (ChatStatus::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn what_an_inner_chat_cost_is_counted_though_it_fails_or_is_cancelled() {
    for (last, status) in [
        (agent("b", Failing::new(ModelErrorKind::Auth)), ChatStatus::Failed),
        (agent("b", Hanging::new()), ChatStatus::Cancelled),
    ] {
        let inner = Flow::builder("inner").agent(agent("a", Passthrough::new())).agent(last);
        let inner = inner.router(Plan::new(["a", "b"]));
        let flow = outer(inner).build().expect("a flow");
        let token = CancelToken::new();
        let cancel = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            token.cancel();
        };
        let chat = flow.chat().message("go").cancel_on(&token).run();
        let (report, ()) = tokio::join!(chat, cancel);
        assert_eq!(report.status, status, "{:?}", report.error);
        assert_eq!(report.usage.calls, 1, "{status}: {:?}", report.usage);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_inner_chat_before_the_outer_turn() {
    let log = Log::new();
    let spy = Spy::default();
    let hangs = log.builder("deep", Hanging::new()).with_lifecycle(spy.clone());
    let inner =
        Flow::builder("inner").events(&log.bus).agent(hangs.blueprint().expect("it can be built"));
    let sub = NestedFlow::new(inner.build().expect("a flow")).agent("sub").events(&log.bus);
    let sub = sub.with_lifecycle(spy.clone()).blueprint().expect("it can be built");
    let flow = Flow::builder("outer").events(&log.bus).agent(sub).with_lifecycle(spy.clone());
    let flow = flow.build().expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel();
    };
    let chat = flow.chat().id("c").message("go").cancel_on(&token).run();
    let (report, ()) = tokio::join!(chat, cancel);
    assert_eq!(report.status, ChatStatus::Cancelled, "{:?}", report.error);
    let notes = spy.notes();
    let at = |note: &str| notes.iter().position(|it| it == note).expect(note);
    assert!(at("after_agent deep cancelled") < at("shutdown deep"), "{notes:?}");
    assert!(at("shutdown deep") < at("after_agent sub cancelled"), "{notes:?}");
    assert!(at("after_agent sub cancelled") < at("shutdown sub"), "{notes:?}");
    let ends = log.announced(&["orchestrator.cancelled"]);
    assert_eq!(ends.len(), 2, "the inner one and the outer one");
}

#[tokio::test]
async fn chats_inside_of_each_other_are_bounded() {
    let mut flow = Flow::builder("w0").agent(agent("a", Passthrough::new()));
    for depth in 1..12 {
        let inner = flow.router(Plan(
            vec![tenure_flow::route::Target::Agent("a".into())],
            std::sync::Mutex::new(0),
        ));
        let own = NestedFlow::new(inner.build().expect("a flow"))
            .agent("a")
            .blueprint()
            .expect("it can be built");
        flow = Flow::builder(format!("w{depth}")).agent(own);
    }
    let report = flow.router(Plan::new(["a"])).build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Failed);
    let error = report.error.unwrap().to_string();
    assert!(error.contains("8 are allowed inside of each other"), "{error}");
}

//! A chat of agents in Rust.

use std::sync::Arc;
use tenure_core::CancelToken;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::{EventBus, Received};
use tenure_flow::route::RoundRobin;
use tenure_flow::{ChatStatus, Flow};
use tenure_models::{Hanging, Passthrough};

fn echo(name: &str) -> Blueprint {
    Agent::builder(name).model(Passthrough::new()).blueprint().expect("it can be built")
}

#[tokio::test]
async fn agents_speak_in_turn_and_hear_each_other() {
    let flow = Flow::builder("two").agent(echo("a")).agent(echo("b")).router(RoundRobin);
    let flow = flow.max_turns(3).build().expect("a flow");
    let report = flow.run("hello").await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    let said: Vec<_> = report.messages.iter().map(|it| (it.speaker.as_str(), &*it.text)).collect();
    let second = "hello\na: hello";
    let third = "b: hello\na: hello";
    assert_eq!(said, [("user", "hello"), ("a", "hello"), ("b", second), ("a", third)]);
    assert_eq!(report.variables["workflow_name"], "two");
}

#[tokio::test]
async fn a_cancelled_chat_ends_as_cancelled_and_its_agents_stop() {
    let bus = EventBus::new();
    let mut events = bus.subscribe(10_000);
    let hangs = Agent::builder("hangs").model(Hanging::new()).events(&bus).blueprint();
    let flow = Flow::builder("one").agent(hangs.expect("it can be built")).events(&bus);
    let flow = flow.build().expect("a flow");
    let token = CancelToken::new();
    let chat = flow.chat().message("go").cancel_on(&token);
    let task = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(chat.run(), task);
    assert_eq!(report.status, ChatStatus::Cancelled, "{:?}", report.error);
    let mut names = Vec::new();
    while let Some(Received::Event(event)) = events.try_recv() {
        names.push(event.name());
    }
    let at = |name: &str| names.iter().position(|it| *it == name).expect("it was announced");
    assert!(at("agent.turn.ended") < at("chat.ended"), "{names:?}");
    assert!(at("chat.ended") < at("orchestrator.cancelled"), "{names:?}");
}

#[tokio::test]
async fn nobody_to_ask_means_paused() {
    use tenure_flow::route::{RouteCx, Router, RoutingDecision, Target};
    struct User;
    #[async_trait::async_trait]
    impl Router for User {
        async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, tenure_core::Error> {
            Ok(match cx.messages.len() {
                0 => RoutingDecision::new(Target::User, "the person begins"),
                _ => RoutingDecision::end("the person has spoken"),
            })
        }
        fn name(&self) -> &str {
            "user"
        }
    }
    let flow = Flow::builder("one").agent(echo("a")).router(User).user(true);
    let report = flow.build().expect("a flow").chat().run().await;
    assert_eq!(report.status, ChatStatus::Paused, "{:?}", report.error);
    let flow = Flow::builder("one").agent(echo("a")).router(User).user(true);
    let flow = flow.on_ask(|_: &PendingAsk| Some(Answer::Respond("hi".into())));
    let report = flow.build().expect("a flow").chat().run().await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(report.messages[0].text, Arc::from("hi"));
}

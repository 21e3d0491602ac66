//! Chats that are left alone: they wait for a person, or nobody waits for them, or their record does
//! not fit.

use crate::resume::mortal::Desk;
use crate::resume::world::{Spy, World, small};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::step::WhenWaiting;
use tenure_core::step::{MemoryStepLog, StepLog, Steps};
use tenure_core::tool::{FnTool, Tool, ToolSpec};
use tenure_core::{CancelToken, ErrorKind, Outcome};
use tenure_flow::journey::Journey;
use tenure_flow::nested::NestedFlow;
use tenure_flow::people::UiTool;
use tenure_flow::route::handoff::{HandoffRule, Source};
use tenure_flow::route::{Pattern, RouteCx, Router, Routing, RoutingDecision, Target};
use tenure_flow::{ChatReport, ChatStatus, Flow, FlowBuilder};
use tenure_models::{Passthrough, Scripted, Slow};
use tokio::time::timeout;

fn steps(log: impl StepLog) -> Steps {
    Steps::new(Arc::new(log))
}

async fn bounded<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), work).await.expect("it ends")
}

/// Runs one life of a chat that is parked when it waits.
async fn life(flow: &Flow, desk: &Desk) -> ChatReport {
    let chat = flow.chat().id("c").message("start").recorded(&steps(desk.clone()));
    bounded(chat.when_waiting(WhenWaiting::Park).run()).await
}

/// A flow whose agent says something, then the person, then the agent again.
fn talk(world: &World) -> FlowBuilder {
    let echo = |name: &str| {
        let agent = Agent::builder(name).model(Passthrough::new());
        agent.with_lifecycle(Spy(world.clone())).blueprint().expect("it is complete")
    };
    let routing = Routing::new(Pattern::Default).handoffs([
        HandoffRule::after(Source::Agent("first".into()), Target::User),
        HandoffRule::after(Source::User, Target::Agent("second".into())),
        HandoffRule::after(Source::Agent("second".into()), Target::End),
    ]);
    Flow::builder("talk")
        .agent(echo("first"))
        .agent(echo("second"))
        .user(true)
        .with_lifecycle(Spy(world.clone()))
        .initial_agent("first")
        .router(routing.router().expect("a router"))
}

fn told(world: &World, place: &str) -> usize {
    let told = world.told.lock().expect("whole");
    told.iter().filter(|(it, _)| it.starts_with(place)).count()
}

/// Whether every instance that was started was stopped, once.
fn all_stopped(world: &World) -> bool {
    let lives = world.lives.lock().expect("whole");
    !lives.is_empty() && lives.values().all(|life| *life == (1, 1))
}

#[tokio::test]
async fn a_chat_that_waits_for_a_person_is_parked_and_goes_on_with_the_answer() {
    let (world, desk) = (World::new().await, Desk::new());
    let report = life(&talk(&world).build().expect("a flow"), &desk).await;
    assert_eq!(report.status, ChatStatus::Paused);
    let error = report.error.expect("it says why");
    assert_eq!(error.kind(), ErrorKind::Waiting, "{error}");
    assert!(error.to_string().contains("waits for a person"), "{error}");
    assert_eq!((told(&world, "before_chat"), told(&world, "after_chat")), (3, 0));
    assert!(all_stopped(&world), "{:?}", world.lives);
    let is_open = |log: &MemoryStepLog, id: &str| {
        log.scopes().iter().any(|(scope, end)| &*scope.id == id && end.is_none())
    };
    assert!(is_open(&desk.inner, "chat:") && is_open(&desk.inner, "turn:u1"));
    // Nobody has answered yet: it waits again, and asks the same.
    let again = desk.resumed();
    let report = life(&talk(&world).build().expect("a flow"), &again).await;
    assert_eq!(report.status, ChatStatus::Paused);
    assert_eq!(*desk.put.lock().expect("whole"), ["first: start", "first: start"]);
    again.answer("first: start", "go on");
    let last = again.resumed();
    let report = life(&talk(&world).build().expect("a flow"), &last).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let said: Vec<_> = report.messages.iter().map(|it| &*it.text).collect();
    assert_eq!(said[..3], ["start", "start", "go on"]);
    assert_eq!((told(&world, "before_chat"), told(&world, "after_chat")), (3, 3));
    assert!(all_stopped(&world), "{:?}", world.lives);
    assert!(last.inner.scopes().iter().all(|(_, end)| end.is_some()));
}

#[tokio::test]
async fn an_answer_that_comes_in_time_parks_nothing() {
    let (world, desk) = (World::new().await, Desk::new());
    desk.answer("first: start", "go on");
    let report = life(&talk(&world).build().expect("a flow"), &desk).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    // One that stays waits as long as it takes.
    let (world, desk) = (World::new().await, Desk::new());
    let flow = talk(&world).build().expect("a flow");
    let chat = flow.chat().message("start").recorded(&steps(desk.clone())).run();
    let answer = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        desk.answer("first: start", "go on");
    };
    let (report, ()) = bounded(async { tokio::join!(chat, answer) }).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
}

/// The first time the model asks for the tool, and then it says what that gave.
fn calls(tool: &'static str) -> Scripted {
    Scripted::from_fn(move |request: &ModelRequest, _| match request.messages.last() {
        Some(Message::Tool(result)) => Ok(ModelResponse::text(result.content.clone())),
        _ => Ok(ModelResponse::calls([ToolCall::new("c1", tool, "{}")])),
    })
}

/// A tool that counts its calls, once a person has answered.
fn confirmed(count: &Arc<AtomicUsize>) -> UiTool {
    let count = count.clone();
    let inner =
        FnTool::new(ToolSpec::new("confirm", "Shall it be done?"), move |arguments: &Value| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(format!("done with {}", arguments["ui_response"]).into())
        });
    UiTool::new(Arc::new(inner) as Arc<dyn Tool>)
}

#[tokio::test]
async fn a_tool_that_waits_inside_of_an_inner_chat_has_not_been_called() {
    let (world, desk, count) = (World::new().await, Desk::new(), Arc::new(AtomicUsize::new(0)));
    let flow = || {
        let agent = Agent::builder("asks").model(calls("confirm")).tool(confirmed(&count));
        let inner = small("inner", agent.with_lifecycle(Spy(world.clone())));
        let inner = NestedFlow::new(inner.build().expect("a flow")).agent("sub");
        small("outer", inner.with_lifecycle(Spy(world.clone()))).build().expect("a flow")
    };
    let report = life(&flow(), &desk).await;
    assert_eq!(report.status, ChatStatus::Paused, "{:?}", report.error);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert!(all_stopped(&world), "{:?}", world.lives);
    desk.answer("Shall it be done?", "yes");
    let last = desk.resumed();
    let report = life(&flow(), &last).await;
    assert_eq!(report.output, "done with \"yes\"", "{:?}", report.error);
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(desk.put.lock().expect("whole").len(), 2, "it was put once in each life");
    assert!(last.inner.scopes().iter().all(|(_, end)| end.is_some()));
    // It is on record now.
    let report = life(&flow(), &last.resumed()).await;
    assert_eq!(report.output, "done with \"yes\"", "{:?}", report.error);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_chat_is_not_parked_while_another_part_of_it_works() {
    let (world, desk, count) = (World::new().await, Desk::new(), Arc::new(AtomicUsize::new(0)));
    let flow = || {
        let asks = Agent::builder("asks").model(calls("confirm")).tool(confirmed(&count));
        let asks = small("asking", asks).build().expect("a flow");
        let model = Slow::new().by(Duration::from_millis(600));
        let works = Agent::builder("works").model(model).with_lifecycle(Spy(world.clone()));
        let works = small("working", works).build().expect("a flow");
        let plan = json!({ "tasks": [
            { "message": "x", "workflow": "asking" }, { "message": "y", "workflow": "working" },
        ] });
        let plans = Scripted::from_fn(move |_, _| Ok(ModelResponse::text(plan.to_string())));
        let agent = |name: &str, model: Scripted| {
            Agent::builder(name).model(model).blueprint().expect("it is complete")
        };
        let routing = Routing::new(Pattern::Default);
        Flow::builder("parent")
            .agent(agent("plans", plans))
            .agent(agent("sums_up", Scripted::from_fn(|_, _| Ok(ModelResponse::text("summed up")))))
            .router(routing.router().expect("a router"))
            .initial_agent("plans")
            .journey(Journey::new("both", "plans", "asking", "sums_up"))
            .workflow(asks)
            .workflow(works)
            .build()
            .expect("a flow")
    };
    let report = life(&flow(), &desk).await;
    assert_eq!(report.status, ChatStatus::Paused, "{:?}", report.error);
    assert_eq!(told(&world, "after_agent works ok"), 1, "the other child came to its end");
    desk.answer("Shall it be done?", "yes");
    let report = life(&flow(), &desk.resumed()).await;
    assert_eq!(report.output, "summed up", "{:?}", report.error);
    let results = report.variables["child_results"].to_string();
    assert!(results.contains("done with"), "{results}");
    assert_eq!((told(&world, "after_agent works"), count.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_recorded_chat_that_is_dropped_is_parked_and_one_that_is_cancelled_ends() {
    let (world, log) = (World::new().await, MemoryStepLog::new());
    let flow = |wait: u64| {
        let model = Slow::new().by(Duration::from_millis(wait));
        let agent = Agent::builder("slow").model(model).with_lifecycle(Spy(world.clone()));
        let flow = small("slow", agent).with_lifecycle(Spy(world.clone()));
        flow.build().expect("a flow")
    };
    let first = flow(60_000);
    let chat = first.chat().id("c").message("go").recorded(&steps(log.clone())).run();
    let dropped = timeout(Duration::from_millis(200), chat).await;
    assert!(dropped.is_err(), "it takes a minute");
    bounded(first.settled()).await;
    assert_eq!((told(&world, "after_agent"), told(&world, "after_chat")), (0, 0));
    assert!(all_stopped(&world), "{:?}", world.lives);
    // It goes on, and is cancelled then.
    let (second, log) = (flow(60_000), log.resumed());
    let token = CancelToken::new();
    let chat = second.chat().id("c").message("go").recorded(&steps(log.clone())).cancel_on(&token);
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        token.cancel();
    };
    let (report, ()) = bounded(async { tokio::join!(chat.run(), cancel) }).await;
    assert_eq!((report.status, report.outcome), (ChatStatus::Cancelled, Outcome::Cancelled));
    assert_eq!(told(&world, "after_agent slow cancelled"), 1);
    // The host's own, and the agent's.
    assert_eq!((told(&world, "before_chat"), told(&world, "after_chat")), (2, 2));
    assert!(all_stopped(&world), "{:?}", world.lives);
    assert!(log.scopes().iter().all(|(_, end)| end.is_some()));
}

#[tokio::test]
async fn a_chat_whose_record_does_not_fit_is_parked_and_says_so() {
    let (world, log) = (World::new().await, MemoryStepLog::new());
    let flow = |agent: &str| {
        let agent = Agent::builder(agent.to_owned()).model(Passthrough::new());
        let agent = agent.with_lifecycle(Spy(world.clone()));
        small("one", agent).with_lifecycle(Spy(world.clone())).build().expect("a flow")
    };
    let chat = |message: &str, log: &MemoryStepLog| {
        flow("a").chat().id("c").message(message).recorded(&steps(log.clone())).run()
    };
    let report = chat("one", &log).await;
    assert_eq!(report.status, ChatStatus::Completed);
    let ends = told(&world, "after_chat");
    let second = log.resumed();
    let report = chat("two", &second).await;
    assert_eq!(report.status, ChatStatus::Failed);
    let error = report.error.expect("it says why");
    assert_eq!(error.kind(), ErrorKind::Replay, "{error}");
    assert!(error.to_string().contains("another input"), "{error}");
    assert_eq!(told(&world, "after_chat"), ends, "its ends wait");
    // The same again is the same.
    let report = chat("one", &second.resumed()).await;
    assert_eq!((report.status, told(&world, "after_chat")), (ChatStatus::Completed, ends));
    // Those that could not record their end got it now.
    assert!(all_stopped(&world), "{:?}", world.lives);
}

/// Decides by how often it was asked, which no other process knows.
struct Counts(AtomicUsize);

#[async_trait::async_trait]
impl Router for Counts {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, tenure_core::Error> {
        Ok(match self.0.fetch_add(1, Ordering::SeqCst) {
            at if at < 3 => RoutingDecision::agent(cx.agents[at % 2].clone(), "it is counted"),
            _ => RoutingDecision::end("it is counted"),
        })
    }

    fn name(&self) -> &str {
        "counts"
    }
}

#[tokio::test]
async fn a_decision_that_does_not_follow_from_the_chat_is_made_once() {
    let log = MemoryStepLog::new();
    let flow = |asked: usize| {
        let agent = |name: &str| {
            let agent = Agent::builder(name).model(Passthrough::new());
            agent.blueprint().expect("it is complete")
        };
        let router = Counts(AtomicUsize::new(asked));
        Flow::builder("f").agent(agent("a")).agent(agent("b")).router(router).build().expect("one")
    };
    let run = async |asked, log: MemoryStepLog| {
        let report = flow(asked).chat().id("c").message("m").recorded(&steps(log)).run().await;
        let speakers: Vec<_> = report.turn_summaries.iter().map(|it| it.agent.clone()).collect();
        (speakers, report.routing)
    };
    let (speakers, routing) = run(0, log.clone()).await;
    assert_eq!(speakers, ["a".into(), "b".into(), Arc::<str>::from("a")]);
    assert_eq!(run(9, log.resumed()).await, (speakers, routing));
}

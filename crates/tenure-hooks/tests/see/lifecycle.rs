//! Lifecycle tools of a workflow, as those see them who watch one of its agents.
//!
//! The agent that stands for a chat has the tools of the chat, and no watcher.

use crate::see::receiver::{Receiver, said};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::chat::Chat;
use tenure_core::context::{Cx, ExecutionContext};
use tenure_core::event::EventBus;
use tenure_core::hook::{self, Flow, Origin, Policy, Registration};
use tenure_hooks::see::{Metrics, Telemetry};
use tenure_models::Passthrough;

/// Announces a call of a lifecycle tool as a workflow does.
fn called(cx: &Cx<'_>, trigger: &str, tool: &str, how: (&'static str, &str)) {
    let (event, status) = how;
    cx.announce("lifecycle.tool_call", || json!({ "tool": tool, "trigger": trigger }));
    cx.announce(event, || {
        json!({
            "tool": tool, "trigger": trigger, "function": format!("{tool}_now"), "file": "desk.py",
            "description": format!("The {tool} of the desk"), "status": status, "elapsed_ms": 250.0,
        })
    });
}

const RESULT: (&str, &str) = ("lifecycle.tool_result", "success");
const ERROR: (&str, &str) = ("lifecycle.tool_error", "timed_out");

fn opens() -> Registration {
    let opens = hook::before_chat(|cx| {
        Box::pin(async move {
            called(&cx, "before_chat", "opening", RESULT);
            Ok(Flow::Continue)
        })
    });
    hook::hook(opens).named("lifecycle_tools.opening").origin(Origin::Workflow)
}

fn closes() -> Registration {
    let closes = hook::after_chat(|cx, _| {
        Box::pin(async move {
            called(&cx, "after_chat", "closing", ERROR);
            Err(tenure_core::Error::invalid("it is stuck").into())
        })
    });
    let closes = hook::hook(closes).named("lifecycle_tools.closing").origin(Origin::Workflow);
    closes.policy_at(hook::Point::AfterChat, Policy::Continue)
}

fn greets() -> Registration {
    let greets = hook::before_agent(|cx, _| {
        Box::pin(async move {
            called(&cx, "before_agent", "greeting", RESULT);
            Ok(Flow::Continue)
        })
    });
    hook::hook(greets).named("lifecycle_tools.greeting").origin(Origin::Workflow)
}

/// Runs a chat as a workflow does: a host without a watcher, and an agent.
async fn workflow(id: &str, bus: &EventBus, speaker: AgentBuilder) {
    let context = ExecutionContext::unique().with_session_id(id).with_conversation_id(id);
    let host = Agent::builder("story.workflow").model(Passthrough::new());
    let host = host.with_lifecycle(opens()).with_lifecycle(closes());
    let host = host.events(bus).build().expect("it is complete");
    let speaker = speaker.with_lifecycle(greets()).events(bus).build().expect("it is complete");
    for agent in [&host, &speaker] {
        agent.set_context(context.clone()).expect("it has none");
        agent.startup().await.expect("it starts");
    }
    let chat = Chat::new(id, [host.clone(), speaker.clone()]);
    let chat = chat.with_variable("workflow_name", "story");
    let result = chat.run(async |chat| speaker.request("hi").in_chat(chat).run().await).await;
    assert!(result.end.outcome.is_ok(), "{:?}", result.end);
    speaker.shutdown().await;
    host.shutdown().await;
}

fn clerk() -> AgentBuilder {
    Agent::builder("clerk").model(Passthrough::new())
}

#[tokio::test]
async fn metrics_count_and_time_the_tools_of_the_chat_and_of_turns() {
    let metrics = Metrics::new();
    let bus = EventBus::new();
    workflow("c-1", &bus, clerk().with_lifecycle(metrics.clone())).await;
    workflow("c-2", &bus, clerk().with_lifecycle(metrics.clone())).await;
    let text = metrics.render();
    let calls = "tenure_lifecycle_tool_calls_total";
    let seconds = "tenure_lifecycle_tool_call_duration_seconds";
    for line in [
        format!(r#"{calls}{{trigger="before_chat",tool="opening",status="success"}} 2"#),
        format!(r#"{calls}{{trigger="before_agent",tool="greeting",status="success"}} 2"#),
        format!(r#"{calls}{{trigger="after_chat",tool="closing",status="timed_out"}} 2"#),
        format!(r#"{seconds}_sum{{trigger="before_chat",tool="opening"}} 0.5"#),
        format!(r#"{seconds}_count{{trigger="after_chat",tool="closing"}} 2"#),
        "tenure_hook_failures_total{hook=\"lifecycle_tools.closing\",point=\"after_chat\",\
         outcome=\"failed\"} 2"
            .to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
    }
}

#[tokio::test]
async fn metrics_do_not_count_a_chat_in_which_no_agent_is_watched() {
    let metrics = Metrics::new();
    let bus = EventBus::new();
    let watched = clerk().with_lifecycle(metrics.clone()).events(&bus).build().expect("complete");
    watched.startup().await.expect("it starts");
    workflow("c-1", &bus, clerk()).await;
    watched.shutdown().await;
    let text = metrics.render();
    assert!(!text.contains("opening") && !text.contains("greeting"), "{text}");
}

/// Others may announce events of these names, and say what they like.
#[tokio::test]
async fn metrics_take_no_label_from_an_event_that_is_none_of_a_tool() {
    let metrics = Metrics::new();
    let bus = EventBus::new();
    let speaks = |data: Value| {
        hook::before_agent(move |cx, _| {
            cx.announce("lifecycle.tool_result", || data.clone());
            Box::pin(async { Ok(Flow::Continue) })
        })
    };
    let odd = [
        json!("text"),
        json!({ "tool": "x", "trigger": "at_noon", "status": "success", "elapsed_ms": 1 }),
        json!({ "tool": "x", "trigger": "before_chat", "status": "success", "elapsed_ms": -1e300 }),
    ];
    let mut agent = clerk().with_lifecycle(metrics.clone()).events(&bus);
    for data in odd {
        agent = agent.with_lifecycle(speaks(data));
    }
    let odd = json!({ "tool": "x", "trigger": "before_chat", "status": "odd", "elapsed_ms": 1 });
    let agent = agent.with_lifecycle(speaks(odd)).build().expect("it is complete");
    agent.scoped(async |agent| agent.run("hi").await).await.expect("it runs");
    let text = metrics.render();
    let counted: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("tenure_lifecycle_tool_calls_total{"))
        .collect();
    let expected =
        r#"tenure_lifecycle_tool_calls_total{trigger="before_chat",tool="x",status="other"} 1"#;
    assert_eq!(counted, [expected]);
}

/// The span of a hook by the name of its entry.
fn hook_span(receiver: &Receiver, hook: &str) -> Span {
    let is_it = |span: &Span| said(&span.attributes, "tenure.hook.id").as_deref() == Some(hook);
    let mut found: Vec<_> = receiver.spans().into_iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{hook}");
    found.remove(0)
}

#[tokio::test]
async fn telemetry_has_the_tools_of_the_chat_below_its_span_and_those_of_a_turn_below_the_turns() {
    let receiver = Receiver::start();
    let bus = EventBus::new();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    workflow("c-1", &bus, clerk().with_lifecycle(telemetry)).await;
    let chat = receiver.span("invoke_workflow story");
    let turn = receiver.span("invoke_agent clerk");
    assert_eq!(turn.parent_span_id, chat.span_id);
    for (tool, trigger, status, parent) in [
        ("opening", "before_chat", "success", &chat),
        ("greeting", "before_agent", "success", &turn),
        ("closing", "after_chat", "timed_out", &chat),
    ] {
        let span = hook_span(&receiver, &format!("lifecycle_tools.{tool}"));
        assert_eq!(span.name, format!("tenure.hook {trigger}"));
        assert_eq!((&span.parent_span_id, &span.trace_id), (&parent.span_id, &parent.trace_id));
        // A turn is known from where telemetry stands, and a workflow's tools stand before it.
        let is_after = span.start_time_unix_nano >= parent.start_time_unix_nano;
        assert!(is_after || trigger == "before_agent", "{tool}");
        assert!(span.end_time_unix_nano <= parent.end_time_unix_nano, "{tool}");
        let said = |key: &str| said(&span.attributes, &format!("tenure.lifecycle_tool.{key}"));
        assert_eq!(said("name").as_deref(), Some(tool));
        assert_eq!(said("status").as_deref(), Some(status));
        assert_eq!(said("function"), Some(format!("{tool}_now")));
        assert_eq!(said("description"), Some(format!("The {tool} of the desk")));
    }
    let metrics = receiver.metrics();
    let hooks = metrics.iter().rfind(|metric| metric.name == "tenure.hook.duration");
    let hooks = format!("{:?}", hooks.expect("it is there"));
    for tool in ["opening", "greeting", "closing"] {
        assert!(hooks.contains(&format!("lifecycle_tools.{tool}")), "{tool} in {hooks}");
    }
}

/// Two lives of one chat in a process that goes on, and a chat at the same time.
#[tokio::test]
async fn every_chat_has_a_span_of_its_own() {
    let receiver = Receiver::start();
    let bus = EventBus::new();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let stays = clerk().with_lifecycle(telemetry.clone()).events(&bus).build().expect("complete");
    stays.startup().await.expect("it starts");
    let watched = || clerk().with_lifecycle(telemetry.clone());
    workflow("c-1", &bus, watched()).await;
    futures_util::future::join(workflow("c-1", &bus, watched()), workflow("c-2", &bus, watched()))
        .await;
    stays.shutdown().await;
    let spans = receiver.spans();
    let of = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let chats = of("invoke_workflow story");
    let mut ids: Vec<_> = chats.iter().map(|chat| &chat.span_id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((chats.len(), ids.len()), (3, 3));
    for chat in chats {
        for name in ["tenure.hook before_chat", "tenure.hook after_chat"] {
            let below = of(name).into_iter().filter(|span| span.parent_span_id == chat.span_id);
            let tools = below.filter(|span| {
                said(&span.attributes, "tenure.hook.id").is_some_and(|id| id != "telemetry")
            });
            assert_eq!(tools.count(), 1, "{name}");
        }
    }
}

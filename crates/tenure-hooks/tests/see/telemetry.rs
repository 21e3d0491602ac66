//! Spans and metrics as a receiver gets them.

use crate::see::receiver::{Receiver, contains, said};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::json;
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::chat::Chat;
use tenure_core::context::ExecutionContext;
use tenure_core::event::EventBus;
use tenure_core::hook::{self, Policy};
use tenure_core::model::{Cost, ModelErrorKind, ModelResponse, Usage};
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_hooks::calls::Fallback;
use tenure_hooks::see::Telemetry;
use tenure_models::{Passthrough, Scripted};

pub(crate) fn search() -> FnTool<impl Fn(&serde_json::Value) -> SearchResult> {
    let spec = ToolSpec::new("search", "Finds papers");
    FnTool::new(spec, |_| Ok("the result is moonstone".into()))
}

type SearchResult = Result<tenure_core::tool::ToolOutput, tenure_core::tool::ToolError>;

/// A guard that asks a person before each tool call.
pub(crate) fn asks() -> hook::Registration {
    let guard = hook::wrap_tool_call(|cx, request, next| {
        Box::pin(async move {
            let ask = Ask::approval("may it look for larkspur?", json!({}));
            assert!(matches!(cx.ask(ask).await?, Answer::Approve));
            Ok(next.call(request).await?)
        })
    });
    hook::hook(guard).named("leave").policy(Policy::Deny)
}

pub(crate) fn approves(_: &PendingAsk) -> Option<Answer> {
    std::thread::sleep(Duration::from_millis(30));
    Some(Answer::Approve)
}

/// An agent that searches once, and answers.
pub(crate) fn researcher(telemetry: Telemetry) -> AgentBuilder {
    let usage = Usage {
        cached: 40,
        reasoning: 5,
        cost: Cost::from_nano_usd(1_500_000),
        ..Usage::new(100, 20)
    };
    let answer = ModelResponse::text("the answer is heliotrope").with_usage(usage);
    let model = Scripted::empty().call("search", json!({ "q": "larkspur" })).reply(answer);
    Agent::builder("researcher")
        .description("Looks things up")
        .instruction("You know of obsidian.")
        .model(model)
        .tool(search())
        .with_lifecycle(telemetry)
}

#[tokio::test]
async fn a_turn_is_a_tree_of_spans() {
    let (receiver, bus) = (Receiver::start(), EventBus::new());
    let telemetry = Telemetry::new().endpoint(receiver.url()).service("library");
    let agent = researcher(telemetry).with_lifecycle(asks()).on_ask(approves).events(&bus);
    let agent = agent.build().unwrap();
    let report = agent.scoped(async |agent| agent.run("tell me of larkspur").await).await.unwrap();
    assert!(report.failures.is_empty(), "{:?}", report.failures);

    let (schema, resource) = receiver.origin();
    assert_eq!(schema, "https://opentelemetry.io/schemas/1.41.1");
    assert_eq!(said(&resource, "service.name").as_deref(), Some("library"));

    let turn = receiver.span("invoke_agent");
    assert_eq!((&*turn.name, turn.kind()), ("invoke_agent researcher", SpanKind::Internal));
    let of_turn = |key| said(&turn.attributes, key);
    assert_eq!(of_turn("gen_ai.operation.name").as_deref(), Some("invoke_agent"));
    assert_eq!(of_turn("gen_ai.agent.name").as_deref(), Some("researcher"));
    assert_eq!(of_turn("gen_ai.agent.id"), Some(report.instance.to_string()));
    assert_eq!(of_turn("gen_ai.agent.description").as_deref(), Some("Looks things up"));
    assert_eq!(of_turn("tenure.outcome").as_deref(), Some("ok"));
    assert_eq!(of_turn("gen_ai.usage.input_tokens"), Some(report.usage.input.to_string()));
    assert_eq!(of_turn("error.type"), None);
    assert!(turn.parent_span_id.is_empty());
    let states: Vec<_> = turn
        .events
        .iter()
        .map(|event| {
            assert_eq!(event.name, "tenure.lifecycle.state");
            said(&event.attributes, "tenure.lifecycle.phase").unwrap()
        })
        .collect();
    for phase in ["awaiting_llm_response", "executing_tool", "awaiting_tool_approval"] {
        assert!(states.iter().any(|state| state == phase), "{phase} in {states:?}");
    }

    let chats: Vec<_> =
        receiver.spans().into_iter().filter(|span| span.name.starts_with("chat ")).collect();
    assert_eq!(chats.len(), 2);
    for chat in &chats {
        assert_eq!((&*chat.name, chat.kind()), ("chat scripted", SpanKind::Client));
        assert_eq!((&chat.parent_span_id, &chat.trace_id), (&turn.span_id, &turn.trace_id));
    }
    let last = |key| said(&chats[1].attributes, key);
    assert_eq!(last("gen_ai.provider.name").as_deref(), Some("tenure"));
    assert_eq!(last("gen_ai.request.model").as_deref(), Some("scripted"));
    assert_eq!(last("gen_ai.response.model").as_deref(), Some("scripted"));
    assert_eq!(last("gen_ai.response.finish_reasons").as_deref(), Some("stop"));
    assert_eq!(last("gen_ai.usage.cache_read.input_tokens").as_deref(), Some("40"));
    assert_eq!(last("gen_ai.usage.reasoning.output_tokens").as_deref(), Some("5"));
    assert_eq!(last("tenure.usage.cost_usd").as_deref(), Some("0.0015"));
    let first = said(&chats[0].attributes, "gen_ai.response.finish_reasons");
    assert_eq!(first.as_deref(), Some("tool_calls"));

    let tool = receiver.span("execute_tool");
    assert_eq!((&*tool.name, tool.kind()), ("execute_tool search", SpanKind::Internal));
    assert_eq!(tool.parent_span_id, turn.span_id);
    for (key, value) in [
        ("gen_ai.tool.name", "search"),
        ("gen_ai.tool.call.id", "call_0"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.description", "Finds papers"),
    ] {
        assert_eq!(said(&tool.attributes, key).as_deref(), Some(value), "{key}");
    }

    let created = receiver.span("create_agent");
    assert_eq!((&*created.name, created.kind()), ("create_agent researcher", SpanKind::Client));
    assert!(created.end_time_unix_nano <= turn.start_time_unix_nano);

    let approval = receiver.span("tenure.approval");
    assert_eq!(approval.parent_span_id, turn.span_id);
    assert_eq!(said(&approval.attributes, "tenure.approval.decision").as_deref(), Some("approve"));
    assert_eq!(said(&approval.attributes, "tenure.approval.kind").as_deref(), Some("approval"));
    let waited = approval.end_time_unix_nano - approval.start_time_unix_nano;
    assert!(waited >= 30_000_000, "{waited}");

    let hook = receiver.span("tenure.hook");
    assert_eq!(&*hook.name, "tenure.hook wrap_tool_call");
    assert_eq!(hook.parent_span_id, turn.span_id);
    assert_eq!(said(&hook.attributes, "tenure.hook.id").as_deref(), Some("leave"));
    assert_eq!(said(&hook.attributes, "tenure.hook.outcome").as_deref(), Some("ok"));
    assert!(hook.start_time_unix_nano >= turn.start_time_unix_nano);
    assert!(hook.end_time_unix_nano <= turn.end_time_unix_nano);
}

#[tokio::test]
async fn metrics_are_those_of_the_conventions_and_our_own() {
    let (receiver, bus) = (Receiver::start(), EventBus::new());
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let agent = researcher(telemetry).with_lifecycle(asks()).on_ask(approves).events(&bus);
    let agent = agent.build().unwrap();
    agent.scoped(async |agent| agent.run("tell me of larkspur").await).await.unwrap();
    let metrics = receiver.metrics();
    let names: Vec<_> = metrics.iter().map(|metric| &*metric.name).collect();
    for name in [
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.invoke_agent.duration",
        "gen_ai.invoke_agent.inference_calls",
        "gen_ai.invoke_agent.tool_calls",
        "gen_ai.execute_tool.duration",
        "tenure.hook.duration",
        "tenure.agent.state",
        "tenure.approval.wait",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    let tokens = metrics.iter().find(|metric| metric.name == "gen_ai.client.token.usage").unwrap();
    assert_eq!(tokens.unit, "{token}");
    let Some(Data::Histogram(points)) = &tokens.data else { panic!("{tokens:?}") };
    let kinds: Vec<_> = points
        .data_points
        .iter()
        .filter_map(|point| said(&point.attributes, "gen_ai.token.type"))
        .collect();
    assert!(kinds.contains(&"input".to_owned()) && kinds.contains(&"output".to_owned()));
    // Everybody who was in a state has left it.
    let states = metrics.iter().rfind(|metric| metric.name == "tenure.agent.state").unwrap();
    let Some(Data::Sum(points)) = &states.data else { panic!("{states:?}") };
    assert!(!points.is_monotonic);
    for point in &points.data_points {
        use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
        assert_eq!(point.value, Some(Value::AsInt(0)), "{point:?}");
    }
}

#[tokio::test]
async fn an_answer_counts_for_the_model_that_gave_it() {
    let receiver = Receiver::start();
    let own = Scripted::empty().error(ModelErrorKind::Overloaded, "busy");
    let agent = Agent::builder("a")
        .model(own)
        .with_lifecycle(Telemetry::new().endpoint(receiver.url()))
        .with_lifecycle(Fallback::to(Passthrough::new()));
    let agent = agent.build().unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    let metrics = receiver.metrics();
    for name in ["gen_ai.client.token.usage", "gen_ai.client.operation.duration"] {
        let found = metrics.iter().find(|metric| metric.name == name).expect(name);
        let Some(Data::Histogram(points)) = &found.data else { panic!("{found:?}") };
        assert!(!points.data_points.is_empty());
        for point in &points.data_points {
            let model = said(&point.attributes, "gen_ai.request.model");
            assert_eq!(model.as_deref(), Some("passthrough"), "{name}");
        }
    }
    // The span says both.
    let chat = receiver.span("chat scripted");
    assert_eq!(said(&chat.attributes, "gen_ai.request.model").as_deref(), Some("scripted"));
    assert_eq!(said(&chat.attributes, "gen_ai.response.model").as_deref(), Some("passthrough"));
}

#[tokio::test]
async fn nothing_that_was_said_leaves_unless_it_may() {
    let words = ["larkspur", "moonstone", "heliotrope", "obsidian"];
    for told in [false, true] {
        let (receiver, bus) = (Receiver::start(), EventBus::new());
        let telemetry = Telemetry::new().endpoint(receiver.url()).content(told);
        let agent = researcher(telemetry).with_lifecycle(asks()).on_ask(approves).events(&bus);
        let agent = agent.build().unwrap();
        agent.scoped(async |agent| agent.run("tell me of larkspur").await).await.unwrap();
        let bytes = receiver.bytes();
        assert!(contains(&bytes, "invoke_agent researcher"));
        for word in words {
            assert_eq!(contains(&bytes, word), told, "{word}, content: {told}");
        }
        if told {
            let tool = receiver.span("execute_tool");
            let arguments = said(&tool.attributes, "gen_ai.tool.call.arguments");
            assert_eq!(arguments.as_deref(), Some(r#"{"q":"larkspur"}"#));
            let chat = receiver.spans().into_iter().find(|span| span.name == "chat scripted");
            let input = said(&chat.unwrap().attributes, "gen_ai.input.messages").unwrap();
            let part = json!({ "type": "text", "content": "tell me of larkspur" });
            let input: serde_json::Value = serde_json::from_str(&input).unwrap();
            assert_eq!(input, json!([{ "role": "user", "parts": [part] }]));
        }
    }
}

#[tokio::test]
async fn an_agent_that_is_a_tool_is_part_of_the_call() {
    let (receiver, bus) = (Receiver::start(), EventBus::new());
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let child = Agent::builder("helper")
        .model(Passthrough::new())
        .with_lifecycle(telemetry.clone())
        .blueprint()
        .unwrap();
    let model = Scripted::empty().call("agent__helper", json!({ "message": "go" })).text("done");
    let agent = Agent::builder("lead")
        .model(model)
        .agent_tool(&child)
        .with_lifecycle(telemetry)
        .events(&bus)
        .build()
        .unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    let lead = receiver.span("invoke_agent lead");
    let call = receiver.span("execute_tool agent__helper");
    let turn = receiver.span("invoke_agent helper");
    let chat = receiver.span("chat passthrough");
    assert_eq!(call.parent_span_id, lead.span_id);
    assert_eq!(turn.parent_span_id, call.span_id);
    assert_eq!(chat.parent_span_id, turn.span_id);
    assert_eq!(receiver.span("create_agent helper").parent_span_id, call.span_id);
    for span in [&call, &turn, &chat] {
        assert_eq!(span.trace_id, lead.trace_id, "{}", span.name);
    }
}

#[tokio::test]
async fn a_request_goes_on_in_the_trace_that_it_came_from() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let agent =
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(telemetry).build().unwrap();
    let from = |flags: &str| {
        let header = format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
        ExecutionContext::unique().with_metadata("traceparent", header)
    };
    agent
        .scoped(async |agent| {
            agent.request("kept").context(from("01")).run().await?;
            agent.request("left out").context(from("00")).run().await
        })
        .await
        .unwrap();
    let turn = receiver.span("invoke_agent");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&turn.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&turn.parent_span_id), "b7ad6b7169203331");
    // Metrics are complete.
    let metrics = receiver.metrics();
    let turns = metrics.iter().find(|metric| metric.name == "gen_ai.invoke_agent.duration");
    let Some(Data::Histogram(points)) = &turns.unwrap().data else { panic!("{turns:?}") };
    assert_eq!(points.data_points[0].count, 2);
}

#[tokio::test]
async fn the_chat_of_a_workflow_is_around_its_turns() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let build = |name: &str| {
        let builder = Agent::builder(name).model(Passthrough::new());
        builder.with_lifecycle(telemetry.clone()).build().unwrap()
    };
    let (first, second) = (build("first"), build("second"));
    first.startup().await.unwrap();
    second.startup().await.unwrap();
    let chat = Chat::new("chat-7", [first.clone(), second.clone()]);
    let chat = chat.with_variable("workflow_name", "review");
    let result = chat
        .run(async |chat| {
            first.request("hello").in_chat(chat).run().await?;
            second.request("hello").in_chat(chat).run().await
        })
        .await;
    assert!(result.end.outcome.is_ok(), "{:?}", result.end);
    first.shutdown().await;
    second.shutdown().await;
    let workflow = receiver.span("invoke_workflow");
    assert_eq!((&*workflow.name, workflow.kind()), ("invoke_workflow review", SpanKind::Internal));
    assert_eq!(said(&workflow.attributes, "gen_ai.workflow.name").as_deref(), Some("review"));
    for name in ["invoke_agent first", "invoke_agent second"] {
        let turn = receiver.span(name);
        assert_eq!(turn.parent_span_id, workflow.span_id);
        assert_eq!(turn.trace_id, workflow.trace_id);
        assert_eq!(said(&turn.attributes, "gen_ai.conversation.id").as_deref(), Some("chat-7"));
    }
}

#[tokio::test]
async fn a_stream_is_not_held_back_and_its_first_piece_is_timed() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let model = Scripted::new(["one two three"]);
    let agent = Agent::builder("a").model(model).with_lifecycle(telemetry).build().unwrap();
    let pieces = agent
        .scoped(async |agent| {
            let mut stream = agent.stream("count");
            let mut pieces = 0;
            while stream.next().await.is_some() {
                pieces += 1;
            }
            Ok::<_, tenure_core::Error>(pieces)
        })
        .await
        .unwrap();
    assert!(pieces >= 3, "{pieces}");
    let chat = receiver.span("chat ");
    assert_eq!(said(&chat.attributes, "gen_ai.request.stream").as_deref(), Some("true"));
    assert!(said(&chat.attributes, "gen_ai.response.time_to_first_chunk").is_some());
}

#[tokio::test]
async fn agents_share_exporters_and_the_last_one_closes_them() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::new().endpoint(receiver.url());
    let build = |name: &str| {
        let builder = Agent::builder(name).model(Passthrough::new());
        builder.with_lifecycle(telemetry.clone()).build().unwrap()
    };
    let (first, second) = (build("first"), build("second"));
    first.startup().await.unwrap();
    second.startup().await.unwrap();
    first.run("hello").await.unwrap();
    first.shutdown().await;
    second.run("hello").await.unwrap();
    second.shutdown().await;
    receiver.span("invoke_agent first");
    receiver.span("invoke_agent second");
    // Another one opens them again.
    let third = build("third");
    third.scoped(async |agent| agent.run("hello").await).await.unwrap();
    receiver.span("invoke_agent third");
}

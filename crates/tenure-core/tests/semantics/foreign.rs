//! What hooks that live elsewhere need of the core: whose family a call belongs to, the chat's
//! variables, lines that were printed, and the right to rewrite a conversation.

use crate::semantics::support::*;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tenure_core::agent::Agent;
use tenure_core::chat::Chat;
use tenure_core::clone::ChildOptions;
use tenure_core::event::{EventBus, EventKind, LogStream};
use tenure_core::hook::{self, AgentLifecycle, Flow, HookAction, HookError, Policy};
use tenure_core::message::{History, Message, ToolCall};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::ToolOutput;
use tenure_core::{ErrorKind, InstanceId};

fn texts(history: &History) -> Vec<String> {
    history.iter().map(|message| message.text().to_owned()).collect()
}

/// Keeps only the first message of the conversation, and answers in capitals.
fn rewrites(count: &Count) -> impl AgentLifecycle + use<> {
    let count = count.clone();
    hook::after_model(move |_, response| {
        let mut response = response.clone();
        let last = response.calls.is_empty();
        if last {
            count.up();
        }
        Box::pin(async move {
            if !last {
                return Ok(HookAction::Continue);
            }
            response.content = response.content.text().to_uppercase().into();
            let messages = vec![Message::user("in short")];
            Ok(HookAction::Rewrite { messages, response: Box::new(response) })
        })
    })
}

#[tokio::test(start_paused = true)]
async fn a_rewrite_replaces_the_conversation_before_the_response() {
    let count = Count::default();
    let model = script([call(&["t"]), say("all done")]);
    let builder = Agent::builder("agent").model(model.clone()).tool(ok_tool("t"));
    let agent = started(builder.with_lifecycle(rewrites(&count))).await;
    let report = agent.run("a long story").await.unwrap();
    assert_eq!(report.output(), "ALL DONE");
    assert_eq!(texts(report.history()), ["in short", "ALL DONE"]);
    agent.run("and now?").await.unwrap();
    let second = model.seen().pop().unwrap();
    assert_eq!(second.len(), 3, "the next turn goes on from what was kept: {second:?}");
    assert_eq!(count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn g8_a_rewrite_that_is_no_valid_history_fails_the_turn_and_changes_nothing() {
    let orphan =
        || Message::Assistant { content: "".into(), calls: vec![ToolCall::new("lost", "t", "{}")] };
    let hook = hook::after_model(move |_, response| {
        let response = Box::new(response.clone());
        let messages = vec![Message::user("hi"), orphan()];
        Box::pin(async move { Ok(HookAction::Rewrite { messages, response }) })
    });
    let agent = started(Agent::builder("agent").model(script([])).with_lifecycle(hook)).await;
    let error = agent.run("hello").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::History, "{error}");
    assert!(!texts(&agent.history()).contains(&"hi".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn g7_a_recorded_rewrite_is_served_from_the_record() {
    let (log, count) = (MemoryStepLog::new(), Count::default());
    let build = || {
        let builder = Agent::builder("agent").model(script([say("done")]));
        builder.with_lifecycle(rewrites(&count))
    };
    let first = started(build()).await;
    let report = first.request("story").steps(log.clone()).run().await.unwrap();
    let again = started(build()).await;
    let replayed = again.request("story").steps(log).run().await.unwrap();
    assert_eq!(texts(replayed.history()), texts(report.history()));
    assert_eq!((replayed.output(), count.get()), ("DONE", 1));
}

#[tokio::test(start_paused = true)]
async fn a_clone_knows_its_family_and_takes_part_in_the_chat() {
    let seen: Arc<Mutex<Vec<(InstanceId, InstanceId)>>> = Arc::default();
    let notes = seen.clone();
    let child = Agent::builder("child")
        .model(script([]))
        .with_lifecycle(hook::before_agent(move |cx, _| {
            notes.lock().unwrap().push((cx.instance_id(), cx.family_id()));
            assert_eq!(cx.chat_id(), Some("talk"));
            let variables = cx.chat_variables().expect("the parent's chat is the clone's too");
            assert_eq!(variables.get("colour"), Some(json!("blue")));
            let set = variables.set("answer", 42);
            Box::pin(async move { Ok(set.map(|()| Flow::Continue)?) })
        }))
        .blueprint()
        .unwrap();
    let model = script([call_with("agent__child", r#"{"message":"go"}"#)]);
    let parent = started(Agent::builder("parent").model(model).agent_tool(&child)).await;
    let chat = Chat::new("talk", [parent.clone()]).with_variable("colour", "blue");
    let result = chat.run(async |chat: &Chat| parent.request("go").in_chat(chat).run().await).await;
    assert!(result.value.is_some(), "{:?}", result.end);
    assert_eq!(chat.variable("answer"), Some(json!(42)));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_ne!(seen[0].0, parent.id());
    assert_eq!(seen[0].1, parent.id());
}

#[tokio::test(start_paused = true)]
async fn what_a_hook_prints_is_an_event() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(100);
    let hook = hook::before_agent(|cx, _| {
        cx.log("guard", LogStream::Stdout, "looking");
        Box::pin(async { Ok(Flow::Continue) })
    });
    let builder = Agent::builder("agent").model(script([])).events(&bus);
    let agent = started(builder.with_lifecycle(hook)).await;
    agent.run("hi").await.unwrap();
    let lines: Vec<_> = events(&mut subscriber)
        .into_iter()
        .filter(|event| event.name() == "hook.log")
        .map(|event| event.kind.clone())
        .collect();
    let (source, stream) = ("guard".into(), LogStream::Stdout);
    assert_eq!(lines, [EventKind::Log { source, stream, line: "looking".to_owned() }]);
}

#[tokio::test(start_paused = true)]
async fn a_wrap_can_tell_whether_its_next_has_run() {
    let log = Log::default();
    let notes = log.clone();
    let hook = hook::wrap_tool_call(move |_, request, next| {
        let log = notes.clone();
        Box::pin(async move {
            log.add(format!("before: {}", next.has_run()));
            let output = next.call(request).await?;
            log.add(format!("after: {}", next.has_run()));
            Ok(output)
        })
    });
    let inner = hook::hook(hook::wrap_tool_call(|_, _, _| {
        Box::pin(async { Ok(ToolOutput::text("answered without the tool")) })
    }));
    let build = || Agent::builder("agent").model(script([call(&["t"])])).tool(ok_tool("t"));
    let hook = Arc::new(hook);
    let outer = || hook::Registration::shared(hook.clone()).policy(Policy::Abort);
    started(build().with_lifecycle(outer())).await.run("go").await.unwrap();
    assert_eq!(log.take(), ["before: false", "after: true"]);
    let agent = started(build().with_lifecycle(outer()).with_lifecycle(inner)).await;
    agent.run("go").await.unwrap();
    assert_eq!(log.take(), ["before: false", "after: false"], "the tool itself did not run");
}

#[tokio::test(start_paused = true)]
async fn a_child_with_parameters_is_told_them_as_json_and_knows_what_it_was_given() {
    let model = script([]);
    let child = Agent::builder("child").model(model.clone()).blueprint().unwrap();
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let given = [Message::user("before"), Message::assistant("yes")].into_iter().collect();
    let options = ChildOptions::default().parameters(schema.clone()).given(given);
    let ask = call_with("agent__child", r#"{"city":"Oslo"}"#);
    let parent = Agent::builder("parent").model(script([ask]));
    let parent = started(parent.agent_tool_with(&child, options)).await;
    assert_eq!(parent.blueprint().tools()[0].parameters, schema);
    parent.run("go").await.unwrap();
    let seen: Vec<_> = model.seen()[0].iter().map(|message| message.text().to_owned()).collect();
    assert_eq!(seen, ["before", "yes", r#"{"city":"Oslo"}"#]);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_an_agent_is_seen_whole() {
    let hook = hook::before_agent(|cx, _| {
        let set = cx.update_state([("a".to_owned(), json!(1)), ("b".to_owned(), json!("x"))]);
        let seen = cx.state_values();
        Box::pin(async move {
            set?;
            match (seen.get("a"), seen.get("b"), seen.len()) {
                (Some(_), Some(_), 2) => Ok(Flow::Continue),
                _ => Err(HookError::new(format!("{seen:?}"))),
            }
        })
    });
    let agent = started(Agent::builder("agent").model(script([])).with_lifecycle(hook)).await;
    agent.run("go").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_does_nothing_says_so_between_its_start_and_its_end() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(100);
    let hook = hook::before_agent(|cx, _| {
        cx.skipped();
        Box::pin(async { Ok(Flow::Continue) })
    });
    let builder = Agent::builder("agent").model(script([])).events(&bus);
    let agent = started(builder.with_lifecycle(hook::hook(hook).named("picky"))).await;
    agent.run("hi").await.unwrap();
    let events = events(&mut subscriber);
    let told: Vec<_> = names(&events).into_iter().filter(|it| it.starts_with("hook.")).collect();
    assert_eq!(told, ["hook.started", "hook.skipped", "hook.ended"]);
    assert!(events.iter().any(|event| {
        matches!(&event.kind, EventKind::HookSkipped { hook, .. } if &**hook == "picky")
    }));
}

#[tokio::test(start_paused = true)]
async fn g9_a_patch_of_variables_is_written_whole_or_not_at_all() {
    let hook = hook::before_chat(|cx| {
        let patch = [("a".to_owned(), json!(1)), ("chat_id".to_owned(), json!("mine"))];
        let written = cx.variables().update(patch);
        Box::pin(async move {
            assert!(written.is_err(), "the system's keys are read-only, wherever they stand");
            Ok(Flow::Continue)
        })
    });
    let agent = started(Agent::builder("agent").model(script([])).with_lifecycle(hook)).await;
    let chat = Chat::new("talk", [agent]);
    let result = chat.run(async |_: &Chat| Ok(())).await;
    assert!(result.value.is_some(), "{:?}", result.end);
    assert_eq!((chat.variable("a"), chat.variable("chat_id")), (None, Some(json!("talk"))));
}

#[tokio::test(start_paused = true)]
async fn a_rewrite_takes_back_approvals_that_were_given_before_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let approves = hook::after_model(|_, _| Box::pin(async { Ok(HookAction::Approve) }));
    let rewrites = hook::after_model(|_, response| {
        let response = Box::new(response.clone());
        let messages = vec![Message::user("in short")];
        Box::pin(async move { Ok(HookAction::Rewrite { messages, response }) })
    });
    let notes = seen.clone();
    let looks = hook::wrap_tool_call(move |cx, request, next| {
        notes.lock().unwrap().push(cx.approved());
        Box::pin(async move { Ok(next.call(request).await?) })
    });
    // The last entry is called first.
    let builder = Agent::builder("agent").model(script([call(&["t"])])).tool(ok_tool("t"));
    let builder = builder.with_lifecycle(looks).with_lifecycle(rewrites).with_lifecycle(approves);
    started(builder).await.run("go").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [false], "whoever approved has seen something else");
}

/// Asks another model, and answers with something of its own.
struct Asks(Script);

#[async_trait::async_trait]
impl tenure_core::model::Model for Asks {
    async fn call(
        &self,
        request: &tenure_core::model::ModelRequest,
        cx: tenure_core::context::ModelCx<'_>,
    ) -> Result<tenure_core::model::ModelResponse, tenure_core::model::ModelError> {
        assert!(cx.is_streaming() && !cx.quiet().is_streaming());
        tenure_core::model::Model::call(&self.0, request, cx.quiet()).await?;
        cx.delta("own");
        Ok(tenure_core::model::ModelResponse::text("own"))
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_model_asks_quietly_is_not_streamed() {
    let model = Asks(script([Reply::Stream(&["secret ", "plan"])]));
    let agent = started(Agent::builder("agent").model(model)).await;
    let mut stream = agent.stream("go");
    let mut read = String::new();
    while let Some(delta) = stream.next().await {
        read.push_str(&delta);
    }
    assert_eq!(read, "own");
}

//! The four message hooks.

use crate::lifecycle::support::Lab;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tenure_core::agent::Agent;
use tenure_core::hook::Policy;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::ModelResponse;
use tenure_core::tool::ToolSpec;
use tenure_flow::message_hook::{MessageHook, MessageHookType};
use tenure_flow::variables::{Definition, Exposure, Kind, Source, State, Variables};
use tenure_flow::{ChatReport, ChatStatus};
use tenure_models::Scripted;

const HOOKS: &str = r#"
def redact(sender, message, recipient, silent):
    assert silent is False and recipient.name == "chat_manager"
    return message.replace("secret", f"[{sender.name}]")

def as_dict(sender, message, recipient, silent):
    return {"content": message + "!"}

def brief(agent, messages):
    agent.context_variables.data["asked"] = len(messages)
    agent.update_system_message(f"{agent.system_message} Told {messages[-1]['content']}.")

def shout(message):
    return message.upper()

async def forget(messages):
    return [it for it in messages if it["role"] != "user"][-1:] + [
        {"role": "user", "content": f"{len(messages)} before {messages[0]['role']}"}
    ]

def same(messages):
    return messages

def fails(message):
    raise ValueError("no")

def nothing(message):
    pass

def returns(agent, messages):
    return 3

def text(messages):
    return "text"

def broken(messages):
    return [{"role": "boss", "content": "x"}]

def number(sender, message, recipient, silent):
    return 3

def who(agent, messages):
    agent.context_variables.data["who"] = [[it["name"], it["content"]] for it in messages]

def louder(messages):
    return [dict(it, content=it["content"].upper()) for it in messages]

def cut(messages):
    return [it for it in messages if it["role"] == "tool"] or messages

def first_note(agent, messages):
    agent.update_system_message(f"{agent.system_message} A{len(messages)}")

def second_note(agent, messages):
    agent.update_system_message(f"{agent.system_message} B{len(messages)}")

def move(what, context_variables):
    context_variables["region"] = "us"
    return "moved"

def look(what):
    return "seen"
"#;

/// What a model was asked: its instruction and the messages.
type Asked = Arc<Mutex<Vec<(Option<String>, Vec<Message>)>>>;

async fn chat(
    lab: &Lab,
    hooks: &[MessageHook],
    replies: &'static [&'static str],
) -> (ChatReport, Asked) {
    let asked: Asked = Arc::default();
    let seen = asked.clone();
    let model = Scripted::from_fn(move |request, call| {
        let messages = request.messages.iter().cloned().collect();
        let instruction = request.instruction.as_deref().map(str::to_owned);
        seen.lock().expect("nobody panicked").push((instruction, messages));
        let mut response = ModelResponse::text(*replies.get(call).unwrap_or(&"end"));
        if response.content.text() == "call" {
            response = ModelResponse::default();
            response.calls.push(ToolCall::new("1", "look", r#"{"what": "x"}"#));
        }
        Ok(response)
    });
    let agent = Agent::builder("writer").model(model).instruction("Be brief.");
    let agent = agent.tool(lab.python.tool(lab.function("look"), ToolSpec::new("look", "looks")));
    let flow = lab.flow_of(&[], hooks, [agent]).max_turns(1).build().expect("a flow");
    (flow.run("hello").await, asked)
}

fn hook(lab: &Lab, kind: MessageHookType, function: &str) -> MessageHook {
    MessageHook::new(kind, lab.function(function))
}

#[tokio::test]
async fn what_an_agent_says_passes_through_the_hooks_in_their_order() {
    let lab = Lab::new(HOOKS);
    let kind = MessageHookType::ProcessMessageBeforeSend;
    let mut other = hook(&lab, kind, "number");
    other.agent = Some("somebody".into());
    let hooks = [hook(&lab, kind, "as_dict"), hook(&lab, kind, "redact"), other];
    let (report, _) = chat(&lab, &hooks, &["call", "the secret"]).await;
    assert_eq!(report.output, "the [writer]!", "{:?}", report.error);
}

#[tokio::test]
async fn the_last_message_is_changed_before_the_agent_reads_it() {
    let lab = Lab::new(HOOKS);
    let hooks = [hook(&lab, MessageHookType::ProcessLastReceivedMessage, "shout")];
    let (_, asked) = chat(&lab, &hooks, &["ok"]).await;
    let asked = asked.lock().expect("nobody panicked");
    assert_eq!(asked[0].1, [Message::user("HELLO")]);
}

#[tokio::test]
async fn an_instruction_is_changed_for_the_turn_and_variables_with_it() {
    let lab = Lab::new(HOOKS);
    let hooks = [hook(&lab, MessageHookType::UpdateAgentState, "brief")];
    let (report, asked) = chat(&lab, &hooks, &["call", "ok"]).await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    let asked = asked.lock().expect("nobody panicked");
    assert_eq!(asked[0].0.as_deref(), Some("Be brief. Told hello."));
    assert_eq!(asked[1].0.as_deref(), Some("Be brief. Told hello. Told seen."));
    assert_eq!(report.variables["asked"], 3);
}

#[tokio::test]
async fn all_messages_are_changed_for_one_call_and_not_for_good() {
    let lab = Lab::new(HOOKS);
    let kind = MessageHookType::ProcessAllMessagesBeforeReply;
    let (_, asked) = chat(&lab, &[hook(&lab, kind, "forget")], &["ok"]).await;
    assert_eq!(asked.lock().expect("nobody panicked")[0].1, [Message::user("1 before user")]);
    let (report, asked) = chat(&lab, &[hook(&lab, kind, "same")], &["call", "ok"]).await;
    assert_eq!(report.output, "ok", "{:?}", report.error);
    assert_eq!(asked.lock().expect("nobody panicked")[1].1.len(), 3, "the tool's result is there");
}

#[tokio::test]
async fn a_hook_that_fails_or_returns_nonsense_ends_the_turn_unless_it_says_otherwise() {
    use MessageHookType::*;
    let lab = Lab::new(HOOKS);
    for (kind, function, part) in [
        (ProcessLastReceivedMessage, "fails", "ValueError: no"),
        (ProcessLastReceivedMessage, "nothing", "process_last_received_message returns a text"),
        (UpdateAgentState, "returns", "it returned int; update_agent_state returns None"),
        (ProcessAllMessagesBeforeReply, "text", "returns the list of messages"),
        (ProcessAllMessagesBeforeReply, "broken", "role `boss`"),
        (ProcessMessageBeforeSend, "number", "it returned int"),
    ] {
        let mut hook = hook(&lab, kind, function);
        let (report, _) = chat(&lab, &[hook.clone()], &["ok"]).await;
        assert_eq!(report.status, ChatStatus::Failed, "{function}");
        let error = report.error.map(|it| it.to_string()).unwrap_or_default();
        assert!(error.contains(part), "{function}: {error}");
        assert_eq!(report.output, "", "what was not let through is not said");
        if kind != ProcessMessageBeforeSend {
            hook.policy = Some(Policy::Continue);
            let (report, _) = chat(&lab, &[hook], &["ok"]).await;
            assert_eq!(report.output, "ok", "{function}: {:?}", report.error);
        }
    }
}

#[tokio::test]
async fn a_message_has_the_name_of_the_agent_that_said_it() {
    let lab = Lab::new(HOOKS);
    let mut hooks = [
        hook(&lab, MessageHookType::UpdateAgentState, "who"),
        hook(&lab, MessageHookType::ProcessAllMessagesBeforeReply, "louder"),
    ];
    for hook in &mut hooks {
        hook.agent = Some("writer".into());
    }
    let critic = Agent::builder("critic").model(Scripted::new(["writer: shorten it"]));
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = heard.clone();
    let writer = Agent::builder("writer").model(Scripted::from_fn(move |request, _| {
        let texts = request.messages.iter().map(|it| it.text().to_owned());
        seen.lock().expect("nobody panicked").extend(texts);
        Ok(ModelResponse::text("ok"))
    }));
    let flow = lab.flow_of(&[], &hooks, [critic, writer]).build().expect("a flow");
    let report = flow.run("hello: you").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    let who = json!([["user", "hello: you"], ["critic", "writer: shorten it"]]);
    assert_eq!(report.variables["who"], who);
    let heard = heard.lock().expect("nobody panicked");
    assert_eq!(*heard, ["HELLO: YOU", "critic: WRITER: SHORTEN IT"], "names stay as they are");
}

#[tokio::test]
async fn a_list_that_is_no_conversation_is_refused() {
    let lab = Lab::new(HOOKS);
    let hooks = [hook(&lab, MessageHookType::ProcessAllMessagesBeforeReply, "cut")];
    let (report, asked) = chat(&lab, &hooks, &["call", "ok"]).await;
    assert_eq!(report.status, ChatStatus::Failed);
    let error = report.error.map(|it| it.to_string()).unwrap_or_default();
    assert!(error.contains("the messages that it returned"), "{error}");
    assert_eq!(asked.lock().expect("nobody panicked").len(), 1, "no model was asked with it");
}

#[tokio::test]
async fn each_hook_changes_what_the_one_before_it_has_made_in_every_call() {
    let lab = Lab::new(HOOKS);
    let kind = MessageHookType::UpdateAgentState;
    let hooks = [hook(&lab, kind, "first_note"), hook(&lab, kind, "second_note")];
    let (_, asked) = chat(&lab, &hooks, &["call", "ok"]).await;
    let asked = asked.lock().expect("nobody panicked");
    assert_eq!(asked[0].0.as_deref(), Some("Be brief. A1 B1"));
    assert_eq!(asked[1].0.as_deref(), Some("Be brief. A1 A3 B1 B3"));
}

#[tokio::test]
async fn an_instruction_that_a_hook_changed_has_the_variables_as_they_are_now() {
    let lab = Lab::new(HOOKS);
    let state = || Source::State(State::new("eu"));
    let definitions = vec![
        Definition::new("region", Kind::Str, state()),
        Definition::new("other", Kind::Str, state()),
    ];
    let seen = vec!["region".to_owned(), "other".to_owned()];
    let here = lab.dir.path();
    let variables = Variables::new(definitions, vec![Exposure::new("writer", seen)], here, here);
    let variables = Arc::new(variables.expect("they are right"));
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = asked.clone();
    let model = Scripted::from_fn(move |request, call| {
        let instruction = request.instruction.as_deref().unwrap_or_default().to_owned();
        told.lock().expect("nobody panicked").push(instruction);
        let mut response = ModelResponse::text("done");
        if call == 0 {
            response = ModelResponse::default();
            response.calls.push(ToolCall::new("1", "move", r#"{"what": "x"}"#));
        }
        Ok(response)
    });
    let writer = Agent::builder("writer").model(model).instruction("Sell in {{region}}.");
    let spec = ToolSpec::new("move", "moves");
    let writer = writer.tool(lab.python.tool(lab.function("move"), spec));
    let writer = writer.with_lifecycle(variables.exposure("writer").expect("it sees two"));
    let hooks = [hook(&lab, MessageHookType::UpdateAgentState, "first_note")];
    let flow = lab.flow_of(&[], &hooks, [writer]).max_turns(1).variables(variables);
    let report = flow.build().expect("a flow").run("hello").await;
    assert_eq!(report.variables["region"], "us", "{:?}", report.error);
    let asked = asked.lock().expect("nobody panicked");
    assert!(asked[0].starts_with("Sell in eu. A1\n"), "{asked:#?}");
    assert!(asked[1].starts_with("Sell in us. A1 A3\n"), "{asked:#?}");
    assert_eq!(asked[1].matches("other: ").count(), 1, "{asked:#?}");
}

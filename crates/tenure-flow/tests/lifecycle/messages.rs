//! The four message hooks.

use crate::support::Lab;
use std::sync::{Arc, Mutex};
use tenure_core::agent::Agent;
use tenure_core::hook::Policy;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::ModelResponse;
use tenure_core::tool::ToolSpec;
use tenure_flow::message_hook::{MessageHook, MessageHookType};
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
        if response.text == "call" {
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

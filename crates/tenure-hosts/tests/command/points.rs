//! What a command is told at each point, and what its replies do.

use crate::command::support::{Script, faults, logged};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tenure_core::Outcome;
use tenure_core::event::LogStream;
use tenure_core::hook::{FaultKind, Point, Points, Policy, hook};
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_core::model::{ModelResponse, StopReason};
use tenure_hosts::Role;
use tenure_testkit::{HarnessRun, HookHarness};

fn call(tool: &str, arguments: Value) -> ModelResponse {
    ModelResponse::calls([ToolCall::new("call_0", tool, arguments.to_string())])
}

/// A hook of one point whose reply is always the same.
fn replying(point: Point, reply: Value) -> (Script, HookHarness) {
    let script = Script::new(&format!("cat <<'END'\n{reply}\nEND"));
    let harness = HookHarness::new(script.hook(point));
    (script, harness)
}

#[tokio::test]
async fn every_point_is_told_what_it_is_about() {
    let script = Script::new(
        "call=$(cat); stage=$(expr \"$call\" : '.*\"stage\":\"\\([a-z]*\\)\"')\n\
         printf %s \"$call\" > \"$TENURE_POINT$stage.json\"",
    );
    let harness = HookHarness::new(hook(script.hook(Points::ALL)).named("all"))
        .tool("clock", "noon")
        .model_response(call("clock", json!({ "zone": "UTC" })))
        .configure(|builder| builder.instruction("Be brief.").description("Tells the time"));
    let run = harness.chat("What time is it?").await;
    assert_eq!(run.output(), "done", "{run:?}");
    assert!(run.failures().is_empty(), "{run:?}");

    let read = |name: &str| -> Value {
        let text = script.left(&format!("{name}.json")).unwrap_or_else(|| panic!("{name}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
    };
    let common = [
        "point",
        "hook",
        "agent",
        "instance_id",
        "family_id",
        "trace_id",
        "attempt",
        "resumed",
        "config",
        "context",
        "state",
        "variables",
    ];
    for (name, more) in [
        ("on_start", &[][..]),
        ("on_shutdown", &["reason", "delivery_id"]),
        ("before_chat", &["chat_id"]),
        ("after_chat", &["chat_id", "outcome", "delivery_id"]),
        ("before_agent", &["chat_id", "input", "run_id"]),
        ("before_model", &["chat_id", "request", "step"]),
        ("wrap_model_callbefore", &["chat_id", "request", "step", "stage"]),
        ("wrap_model_callafter", &["chat_id", "request", "response", "step", "stage"]),
        ("after_model", &["chat_id", "response", "step"]),
        (
            "wrap_tool_callbefore",
            &["chat_id", "tool", "call_id", "arguments", "batch", "approved", "stage"],
        ),
        (
            "wrap_tool_callafter",
            &["chat_id", "tool", "call_id", "arguments", "batch", "approved", "result", "stage"],
        ),
        ("after_agent", &["chat_id", "outcome", "output", "usage", "delivery_id"]),
        ("on_transition", &["from", "to"]),
    ] {
        let told = read(name);
        let mut keys: BTreeSet<&str> =
            told.as_object().expect("an object").keys().map(String::as_str).collect();
        if name == "on_transition" {
            keys.remove("chat_id");
        }
        let wanted: BTreeSet<&str> = common.iter().chain(more).copied().collect();
        assert_eq!(keys, wanted, "{name}");
        assert_eq!(told["agent"]["name"], "harness");
        assert_eq!(told["hook"], "hook.sh");
    }
    let told = read("wrap_tool_callafter");
    assert_eq!(told["tool"]["name"], "clock");
    assert_eq!(told["arguments"], json!({ "zone": "UTC" }));
    assert_eq!(told["batch"][0]["arguments"], json!({ "zone": "UTC" }));
    assert_eq!(told["result"], json!({ "content": "noon", "status": "ok" }));
    let told = read("before_model");
    assert_eq!(told["request"]["instruction"], "Be brief.");
    assert_eq!(told["request"]["tools"][0]["name"], "clock");
    assert_eq!(
        told["request"]["messages"][0],
        json!({ "role": "user", "text": "What time is it?" })
    );
    assert_eq!(told["config"]["description"], "Tells the time");
    assert_eq!(told["variables"]["chat_id"], "harness");
    assert_eq!(read("after_agent")["output"], "done");
    assert_eq!(read("on_shutdown")["reason"], "completed");
}

#[tokio::test]
async fn silence_and_an_empty_object_go_on() {
    for body in ["", "cat > /dev/null", "echo '{}'", "echo; echo", "printf ' {} \\n\\n'"] {
        let script = Script::new(body);
        let run = HookHarness::new(script.hook(Points::ALL)).chat("hello").await;
        assert_eq!(run.output(), "done", "{body}: {run:?}");
        assert_eq!(run.input(), Some("hello"));
        assert!(run.failures().is_empty(), "{body}: {run:?}");
    }
}

#[tokio::test]
async fn a_begin_changes_the_input_finishes_or_denies() {
    let (_script, harness) = replying(Point::BeforeAgent, json!({ "input": "HELLO" }));
    assert_eq!(harness.before_agent("hello").await.input(), Some("HELLO"));

    let (_script, harness) = replying(Point::BeforeAgent, json!({ "finish": "at once" }));
    let run = harness.before_agent("hello").await;
    assert_eq!((run.output(), run.requests.len()), ("at once", 0));

    for point in [Point::BeforeAgent, Point::BeforeModel, Point::WrapModelCall, Point::AfterModel] {
        let (_script, harness) = replying(point, json!({ "deny": "not today" }));
        let run = harness.before_agent("hello").await;
        assert_eq!(run.outcome(), Outcome::Denied, "{point}: {run:?}");
        assert!(run.error().is_some_and(|error| error.to_string().contains("not today")));
        assert!(run.failures().is_empty(), "a refusal is a decision: {run:?}");
    }

    let (_script, harness) = replying(Point::BeforeChat, json!({ "finish": "no chat" }));
    let run = harness.chat("hello").await;
    assert_eq!(run.chat.and_then(|end| end.output), Some("no chat".into()));
}

#[tokio::test]
async fn a_refusal_counts_under_every_policy() {
    for policy in [Policy::Abort, Policy::Deny, Policy::Continue] {
        let script = Script::new("echo '{\"deny\": \"no\"}'");
        let registration = hook(script.hook(Point::BeforeAgent)).policy(policy);
        let run = HookHarness::new(registration).before_agent("hello").await;
        assert_eq!(run.outcome(), Outcome::Denied, "{policy:?}");
    }
}

#[tokio::test]
async fn before_model_changes_the_request_and_persists_it() {
    let reply = json!({
        "request": {
            "instruction": "Shout.",
            "messages": [{ "role": "user", "text": "changed" }],
            "params": { "temperature": 0.5 },
        },
        "persist": true,
    });
    let (_script, harness) = replying(Point::BeforeModel, reply);
    let run = harness.before_model("hello").await;
    let request = run.requests.first().expect("the model was asked");
    assert_eq!(request.instruction.as_deref(), Some("Shout."));
    assert_eq!(request.params.temperature, Some(0.5));
    assert_eq!(run.input(), Some("changed"));
    let history = run.report().expect("a turn").history().clone();
    assert_eq!(history.get(0), Some(&Message::user("changed")));
}

#[tokio::test]
async fn a_wrap_of_a_model_call_changes_both_sides() {
    let reply = json!({ "response": { "text": "from the hook" } });
    let (_script, harness) = replying(Point::WrapModelCall, reply);
    let run = harness.wrap_model_call("hello").await;
    assert_eq!((run.output(), run.requests.len()), ("from the hook", 0));

    let script = Script::new(
        "if grep -q '\"stage\":\"before\"'; then\n\
           echo '{\"request\": {\"instruction\": \"in\"}}'\n\
         else echo '{\"response\": {\"text\": \"out\"}}'; fi",
    );
    let run = HookHarness::new(script.hook(Point::WrapModelCall)).wrap_model_call("hello").await;
    assert_eq!(run.output(), "out");
    assert_eq!(run.requests[0].instruction.as_deref(), Some("in"));
}

#[tokio::test]
async fn after_model_approves_rejects_modifies_and_jumps() {
    let respond = |reply: Value| async move {
        let (_script, harness) = replying(Point::AfterModel, reply);
        harness.tool("clock", "noon").after_model(call("clock", json!({}))).await
    };
    let run = respond(json!({ "approve": true })).await;
    assert_eq!((run.output(), run.tool_calls.len()), ("done", 1));
    let run = respond(json!({ "reject": "not so" })).await;
    assert_eq!((run.outcome(), run.tool_calls.len()), (Outcome::Denied, 0));
    let run = respond(json!({ "jump": "end" })).await;
    assert_eq!((run.outcome(), run.tool_calls.len()), (Outcome::Ok, 0));
    let run = respond(json!({ "modify": { "text": "instead", "calls": [] } })).await;
    assert_eq!((run.output(), run.tool_calls.len()), ("instead", 0));

    let script = Script::new(
        "if grep -q 'call_0'; then echo '{\"modify\": {\"calls\": [{\"id\": \"call_0\", \
         \"name\": \"clock\", \"arguments\": {\"zone\": \"CET\"}}]}}'; fi",
    );
    let run = HookHarness::new(script.hook(Point::AfterModel))
        .tool("clock", "noon")
        .after_model(call("clock", json!({ "zone": "UTC" })))
        .await;
    assert_eq!(run.tool_calls, [("clock".to_owned(), json!({ "zone": "CET" }))]);
    assert_eq!(ModelResponse::default().stop, StopReason::EndTurn);
}

fn tool_result(run: &HarnessRun) -> (String, ToolStatus) {
    let history = run.report().expect("a turn").history().clone();
    history
        .iter()
        .find_map(|message| match message {
            Message::Tool(result) => Some((result.content.text().to_owned(), result.status)),
            _ => None,
        })
        .expect("a tool result")
}

#[tokio::test]
async fn a_wrap_of_a_tool_call_changes_both_sides() {
    let script = Script::new(
        "if grep -q '\"stage\":\"before\"'; then\n\
           echo '{\"arguments\": {\"zone\": \"CET\"}}'\n\
         else echo '{\"result\": {\"content\": \"one\", \"status\": \"error\"}}'; fi",
    );
    let harness = HookHarness::new(script.hook(Point::WrapToolCall)).tool("clock", "noon");
    let run = harness.wrap_tool_call("clock", json!({ "zone": "UTC" })).await;
    assert_eq!(run.tool_calls, [("clock".to_owned(), json!({ "zone": "CET" }))]);
    assert_eq!(tool_result(&run), ("one".to_owned(), ToolStatus::Error));

    let (_script, harness) = replying(Point::WrapToolCall, json!({ "result": "cached" }));
    let run = harness.tool("clock", "noon").wrap_tool_call("clock", json!({})).await;
    assert!(run.tool_calls.is_empty(), "the tool did not run");
    assert_eq!(tool_result(&run), ("cached".to_owned(), ToolStatus::Ok));

    let (_script, harness) = replying(Point::WrapToolCall, json!({ "deny": "never" }));
    let run = harness.tool("clock", "noon").wrap_tool_call("clock", json!({})).await;
    assert!(run.tool_calls.is_empty(), "the tool did not run");
}

#[tokio::test]
async fn an_end_changes_the_output_and_goes_on_once() {
    let (_script, harness) = replying(Point::AfterAgent, json!({ "output": "polished" }));
    assert_eq!(harness.after_agent("hello").await.output(), "polished");

    let (_script, harness) = replying(Point::AfterAgent, json!({ "continue": "and now?" }));
    let run = harness.after_agent("hello").await;
    assert_eq!(run.requests.len(), 2, "{run:?}");
    assert_eq!(run.requests[1].messages.last(), Some(&Message::user("and now?")));
}

#[tokio::test]
async fn state_and_variables_are_patched_as_a_whole_or_not_at_all() {
    let script = Script::new(
        "if [ $TENURE_POINT = before_chat ]; then\n\
           echo '{\"state\": {\"_count\": 1}, \"variables\": {\"topic\": \"time\"}}'\n\
         else cat > seen.json; fi",
    );
    let points = Points::from(Point::BeforeChat).with(Point::BeforeAgent);
    let run = HookHarness::new(script.hook(points)).chat("hello").await;
    assert_eq!(run.output(), "done", "{run:?}");
    let seen: Value = serde_json::from_str(&script.left("seen.json").expect("left")).expect("JSON");
    assert_eq!(seen["state"], json!({ "_count": 1 }));
    assert_eq!(seen["variables"]["topic"], "time");

    let (_script, harness) =
        replying(Point::BeforeAgent, json!({ "state": { "_a": 1, "history": [] } }));
    let run = harness.before_agent("hello").await;
    assert_eq!(run.outcome(), Outcome::Failed);
    let faults = faults(&run);
    assert_eq!(faults[0].0, FaultKind::Failed);
    assert!(faults[0].1.contains("history"), "{faults:?}");

    let (_script, harness) = replying(Point::BeforeAgent, json!({ "variables": { "a": 1 } }));
    let run = harness.before_agent("hello").await;
    let faults = self::faults(&run);
    assert_eq!(faults[0].0, FaultKind::BadReply, "there is no chat");

    let (_script, harness) =
        replying(Point::BeforeChat, json!({ "variables": { "chat_id": "x" } }));
    assert_eq!(harness.chat("hello").await.outcome(), Outcome::Failed);
}

#[tokio::test]
async fn a_tools_hook_writes_state_with_its_batch() {
    let (_script, harness) = replying(Point::WrapToolCall, json!({ "state": { "_seen": true } }));
    let after = tenure_core::hook::after_agent(|cx, _end| {
        assert_eq!(cx.state("_seen"), Some(json!(true)));
        Box::pin(async { Ok(tenure_core::hook::After::Done) })
    });
    let run = harness.and(after).tool("clock", "noon").wrap_tool_call("clock", json!({})).await;
    assert!(run.failures().is_empty(), "{run:?}");
}

#[tokio::test]
async fn what_it_logs_is_heard_and_tells_the_streams_apart() {
    let script =
        Script::new("echo one >&2; printf two >&2; printf %s '{\"log\": \"three\\nfour\"}'");
    let run = HookHarness::new(script.hook(Point::BeforeAgent)).before_agent("hello").await;
    let line = |stream, line: &str| (stream, line.to_owned());
    assert_eq!(
        logged(&run),
        [
            line(LogStream::Stderr, "one"),
            line(LogStream::Stderr, "two"),
            line(LogStream::Host, "three"),
            line(LogStream::Host, "four"),
        ]
    );
}

#[tokio::test]
async fn the_environment_is_an_allow_list_and_says_what_is_called() {
    let script = Script::new("env > env.txt");
    let environment = tenure_hosts::Environment::new().set("GIVEN", "yes").pass("CARGO_PKG_NAME");
    let hook = tenure_hosts::CommandHook::new(
        vec!["./hook.sh".to_owned()],
        Point::BeforeAgent,
        script.path(),
        environment,
    )
    .named("environment");
    HookHarness::new(hook).before_agent("hello").await;
    let seen = script.left("env.txt").expect("it ran");
    let names: BTreeSet<&str> =
        seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in ["PATH", "GIVEN", "CARGO_PKG_NAME", "TENURE_POINT", "TENURE_AGENT", "TENURE_HOOK"] {
        assert!(names.contains(name), "{name}: {seen}");
    }
    assert!(seen.contains("TENURE_HOOK=environment\n"), "{seen}");
    assert!(seen.contains("TENURE_AGENT=harness\n"), "{seen}");
    assert!(!names.contains("CARGO_MANIFEST_DIR"), "we have it, and it is not on the list");
}

#[tokio::test]
async fn a_refusal_after_the_call_withholds_the_result() {
    for role in [Role::Guard, Role::Other] {
        let script = Script::new(
            "if grep -q '\"stage\":\"before\"'; then echo '{\"allow\": true}'\n\
             else echo '{\"deny\": \"that is secret\"}'; fi",
        );
        let hook = script.hook(Point::WrapToolCall).role(role);
        let run = HookHarness::new(hook).tool("clock", "noon");
        let run = run.wrap_tool_call("clock", json!({})).await;
        assert_eq!(run.tool_calls.len(), 1, "{run:?}");
        let (content, status) = tool_result(&run);
        assert_eq!(status, ToolStatus::Denied);
        assert!(content.contains("that is secret") && !content.contains("noon"), "{content}");
        let told = run.requests.iter().flat_map(|request| request.messages.iter());
        assert!(!told.map(Message::text).any(|text| text.contains("noon")), "{run:?}");
    }
}

#[tokio::test]
async fn a_guard_has_to_say_yes() {
    for (body, outcome) in [
        ("", Outcome::Denied),
        ("echo '{}'", Outcome::Denied),
        ("echo '{\"log\": \"fine\"}'", Outcome::Denied),
        ("echo '{\"input\": \"x\"}'", Outcome::Denied),
        ("echo '{\"allow\": true}'", Outcome::Ok),
        ("echo '{\"allow\": true, \"input\": \"x\"}'", Outcome::Ok),
        ("echo '{\"allow\": false}'", Outcome::Denied),
        ("exit 1", Outcome::Denied),
        ("kill -9 $$", Outcome::Denied),
        ("echo nonsense", Outcome::Denied),
    ] {
        let script = Script::new(body);
        let guard = script.hook(Point::BeforeAgent).role(Role::Guard);
        let run = HookHarness::new(hook(guard).policy(Policy::Deny)).before_agent("hello").await;
        assert_eq!(run.outcome(), outcome, "{body}: {run:?}");
        assert_eq!(run.requests.is_empty(), outcome == Outcome::Denied, "{body}");
    }
}

//! Replies that nobody wrote by hand: whatever comes in, parsing gives a reply or says why not.

use super::keys::Speaker;
use super::{Decision, Expect, Reply};
use crate::Role;
use crate::payload::Stage;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};
use tenure_core::hook::{FaultKind, Point};

fn expects() -> impl Strategy<Value = Expect> {
    let role = prop_oneof![Just(Role::Guard), Just(Role::Other)];
    let stage = prop_oneof![Just(Stage::Before), Just(Stage::After)];
    let speaker = prop_oneof![Just(Speaker::Command), Just(Speaker::Python)];
    (0..Point::ALL.len(), role, stage, speaker).prop_map(|(point, role, stage, speaker)| Expect {
        point: Point::ALL[point],
        role,
        stage,
        speaker,
    })
}

#[test]
fn a_key_that_is_given_twice_makes_a_bad_reply_wherever_it_stands() {
    let guard = Expect {
        point: Point::WrapToolCall,
        role: Role::Guard,
        stage: Stage::Before,
        speaker: Speaker::Command,
    };
    assert!(Reply::parse(br#"{"allow": true, "state": {"a": 1, "b": 1}}"#, &guard).is_ok());
    for twice in [
        r#"{"deny": "no", "deny": "no"}"#,
        r#"{"allow": false, "allow": true}"#,
        r#"{"allow": true, "\u0061llow": true}"#,
        r#"{"allow": true, "arguments": {"path": "/tmp", "path": "/etc"}}"#,
        r#"{"allow": true, "state": {"list": [1, {"deep": 1, "deep": 2}]}}"#,
    ] {
        let error = Reply::parse(twice.as_bytes(), &guard).expect_err(twice);
        assert_eq!(error.kind(), FaultKind::BadReply, "{twice}");
        assert!(error.to_string().contains("twice"), "{twice}: {error}");
    }
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof!["model", "end", "ok", "30s", "denied"].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(keys(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

const WORDS: [&str; 33] = [
    "allow",
    "deny",
    "finish",
    "approve",
    "reject",
    "modify",
    "jump",
    "input",
    "request",
    "persist",
    "arguments",
    "result",
    "response",
    "output",
    "continue",
    "ask",
    "state",
    "variables",
    "log",
    "prompt",
    "expires",
    "text",
    "calls",
    "usage",
    "stop",
    "messages",
    "params",
    "instruction",
    "content",
    "status",
    "id",
    "name",
    "role",
];

fn keys() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..WORDS.len()).prop_map(|at| WORDS[at].to_owned()),
        1 => "[a-z]{0,5}",
    ]
}

fn replies() -> impl Strategy<Value = Value> {
    btree_map(keys(), json_values(), 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Good replies of every kind.
const GOOD: [&str; 16] = [
    r#"{"allow": true}"#,
    r#"{"deny": "no"}"#,
    r#"{"finish": "done", "state": {"_x": 1}}"#,
    r#"{"input": "hello", "allow": true, "log": "seen"}"#,
    r#"{"request": {"instruction": null, "messages": [{"role": "user", "text": "x"}]}}"#,
    r#"{"request": {"params": {"temperature": 0.5, "max_tokens": 3}}, "persist": true}"#,
    r#"{"approve": true}"#,
    r#"{"reject": "no"}"#,
    r#"{"modify": {"text": "x", "calls": [{"id": "1", "name": "t", "arguments": {"a": 1}}]}}"#,
    r#"{"jump": "model"}"#,
    r#"{"arguments": {"a": [1, 2]}, "allow": true}"#,
    r#"{"result": {"content": "x", "status": "error"}}"#,
    r#"{"response": {"text": "x", "usage": {"input": 1}, "stop": "end_turn"}}"#,
    r#"{"output": "x", "continue": "go on"}"#,
    r#"{"ask": {"prompt": "may I?", "action": {"rm": "/"}, "expires": "30s"}}"#,
    r#"{"variables": {"a": 1}}"#,
];

/// Whatever was parsed: a guard that goes on has said so, and a failure is a bad reply that says
/// what would have been a good one.
fn check(bytes: &[u8], expect: &Expect) -> Result<(), TestCaseError> {
    match Reply::parse(bytes, expect) {
        Ok(reply) => {
            if expect.needs_decision() {
                prop_assert_ne!(&reply.decision, &Decision::Silent);
            }
            let goes_on = matches!(reply.decision, Decision::Allow | Decision::Approve);
            if goes_on {
                let said: Value = serde_json::from_slice(bytes).expect("it was parsed");
                prop_assert!(said["allow"] == json!(true) || said["approve"] == json!(true));
            }
        }
        Err(error) => {
            prop_assert_eq!(error.kind(), FaultKind::BadReply);
            let message = error.to_string();
            let help = format!("a reply at {} may have", expect.point);
            prop_assert!(message.contains(&help), "{}", message);
            prop_assert!(message.len() < 4_000, "{} bytes", message.len());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_reply_or_a_bad_reply(
        bytes in vec(any::<u8>(), 0..200),
        expect in expects(),
    ) {
        check(&bytes, &expect)?;
    }

    #[test]
    fn any_json_is_a_reply_or_a_bad_reply(value in json_values(), expect in expects()) {
        check(value.to_string().as_bytes(), &expect)?;
    }

    #[test]
    fn any_object_of_known_keys_is_a_reply_or_a_bad_reply(
        value in replies(),
        expect in expects(),
    ) {
        check(value.to_string().as_bytes(), &expect)?;
    }

    #[test]
    fn a_good_reply_with_some_bytes_changed_is_a_reply_or_a_bad_reply(
        which in 0..GOOD.len(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..4),
        expect in expects(),
    ) {
        let mut bytes = GOOD[which].as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len().max(1));
            match how {
                0 if !bytes.is_empty() => bytes[at] = byte,
                1 if !bytes.is_empty() => drop(bytes.remove(at)),
                _ => bytes.insert(at.min(bytes.len()), byte),
            }
        }
        check(&bytes, &expect)?;
    }
}

#[test]
fn every_good_reply_is_taken_somewhere() {
    for text in GOOD {
        let takes = Point::ALL.into_iter().any(|point| {
            let expect = Expect::of_command(point, Role::Other, Stage::Before);
            Reply::parse(text.as_bytes(), &expect).is_ok()
        });
        assert!(takes, "{text}");
    }
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    let expect = Expect::of_command(Point::BeforeAgent, Role::Other, Stage::Before);
    for (open, close) in [("[", "]"), (r#"{"state":"#, "}")] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        let error = Reply::parse(deep.as_bytes(), &expect).expect_err("far too deep");
        assert_eq!(error.kind(), FaultKind::BadReply);
        assert!(error.to_string().contains("recursion limit"), "{error}");
    }
}

fn bad(point: Point, role: Role, text: &str) -> String {
    let expect = Expect::of_command(point, role, Stage::Before);
    Reply::parse(text.as_bytes(), &expect).expect_err(text).to_string()
}

#[test]
fn a_bad_reply_names_the_key_what_was_found_and_what_is_legal() {
    use Point::{AfterModel, BeforeAgent, BeforeModel, OnShutdown, OnStart, WrapToolCall};
    let begin = "a reply at before_agent may have: allow, deny, finish, input, ask, state, \
                 variables, log";
    for (point, text, said) in [
        (BeforeAgent, r#"{"alow": true}"#, format!("the key `alow` is unknown; {begin}")),
        (BeforeAgent, r#"{"deny": 3}"#, format!("the key `deny` is the number 3; expected a text; {begin}")),
        (BeforeAgent, r#"{"allow": false}"#, format!("the key `allow` is false; expected true (to refuse, say `deny` with a reason); {begin}")),
        (BeforeAgent, r#"{"allow": true, "deny": "x"}"#, format!("the reply says both `allow` and `deny`; say one of them; {begin}")),
        (BeforeAgent, r#"{"deny": "x", "input": "y"}"#, format!("the reply says `deny`, so `input` would be lost; leave one of them out; {begin}")),
        (BeforeAgent, "[1, 2]", format!("the reply is a list of 2; expected a JSON object; {begin}")),
        (BeforeAgent, "{}\n {\"deny\": \"x\"}", format!("there is something behind the JSON object of the reply: \"{{\\\"deny\\\": \\\"x\\\"}}\"; {begin}")),
        (OnStart, r#"{"finish": "x"}"#, "the key `finish` is unknown; a reply at on_start may have: allow, deny, state, variables, log".to_owned()),
        (OnShutdown, r#"{"deny": "x"}"#, "the key `deny` is unknown; a reply at on_shutdown may have: state, variables, log".to_owned()),
        (BeforeModel, r#"{"request": {"params": {"temperature": "hot"}}}"#, "the key `request.params.temperature` is the text \"hot\"; expected a number or null".to_owned()),
        (BeforeModel, r#"{"request": {"tools": []}}"#, "the key `request.tools` is unknown; `request` may have instruction, messages, params".to_owned()),
        (BeforeModel, r#"{"request": {"messages": [{"role": "user", "text": "a"}, 3]}}"#, "the key `request.messages[1]` is the number 3".to_owned()),
        (AfterModel, r#"{"jump": "home"}"#, "the key `jump` is the text \"home\"; expected \"model\" or \"end\"".to_owned()),
        (AfterModel, r#"{"modify": {"calls": [{"id": "1", "name": "t", "arguments": 3}]}}"#, "the key `modify.calls[0].arguments` is the number 3; expected an object".to_owned()),
        (WrapToolCall, r#"{"result": {"content": "x", "status": "fine"}}"#, "the key `result.status` is the text \"fine\"; expected ok, error, denied, cancelled or not_executed".to_owned()),
        (WrapToolCall, r#"{"ask": {"prompt": "x", "expires": "30"}}"#, "the key `ask.expires` is the text \"30\"; expected a time as `30s`".to_owned()),
    ] {
        let message = bad(point, Role::Other, text);
        assert!(message.starts_with(&said), "{text}\n  {message}\n  {said}");
    }
}

#[test]
fn a_guard_that_does_not_say_allow_has_not_said_yes() {
    for (text, said) in [
        ("", "it said nothing; a guard must say {\"allow\": true}"),
        (" \n", "it said nothing; a guard must say {\"allow\": true}"),
        ("{}", "it said nothing; a guard must say {\"allow\": true}"),
        (r#"{"log": "hm"}"#, "it said nothing; a guard must say {\"allow\": true}"),
        (r#"{"input": "x"}"#, "it said `input`, but not {\"allow\": true}; a guard must say that"),
    ] {
        let message = bad(Point::BeforeAgent, Role::Guard, text);
        assert!(message.starts_with(said), "{text}\n  {message}");
        let other = Expect::of_command(Point::BeforeAgent, Role::Other, Stage::Before);
        assert!(Reply::parse(text.as_bytes(), &other).is_ok(), "{text}");
    }
    let change = Expect::of_command(Point::OnTransition, Role::Guard, Stage::Before);
    assert!(Reply::parse(b"", &change).is_ok(), "there is nothing to decide");
    let after = Expect::of_command(Point::WrapToolCall, Role::Guard, Stage::After);
    assert!(Reply::parse(b"", &after).is_ok(), "it has decided before");
}

#[test]
fn what_was_found_is_shown_escaped_and_not_in_full() {
    let message = bad(Point::BeforeAgent, Role::Other, &format!("\u{1b}[31m{}", "x".repeat(5_000)));
    assert!(message.contains("\"\\u{1b}[31mxxx"), "{message}");
    assert!(message.len() < 600, "{}", message.len());
    let expect = Expect::of_command(Point::BeforeAgent, Role::Other, Stage::Before);
    let error = Reply::parse(b"{\"a\": \"\xff\"}", &expect).expect_err("no UTF-8");
    assert!(error.to_string().starts_with("the reply is not UTF-8 (at byte 7)"), "{error}");
}

//! Personal data and secrets.

use crate::privacy::support::*;
use crate::support::made;
use serde_json::json;
use std::sync::Arc;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::content::Media;
use tenure_core::drive::Input;
use tenure_core::event::EventBus;
use tenure_core::hook::{self, IntoRegistration};
use tenure_core::message::{Message, ToolStatus};
use tenure_core::{Error, Outcome};
use tenure_hooks::guard::{Detector, Pii, Safety, Strategy};
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Passthrough, Scripted};

fn agent(model: impl tenure_core::model::Model, pii: Pii) -> AgentBuilder {
    Agent::builder("clerk").model(model).with_lifecycle(pii)
}

#[tokio::test]
async fn the_model_never_sees_what_is_taken_out_of_the_input_and_history_keeps_it_so() {
    let agent = agent(Passthrough::new(), Pii::new().output(false)).build().unwrap();
    agent.startup().await.unwrap();
    let report = agent.run("I am ann@example.org").await.unwrap();
    assert_eq!(report.output(), "I am [REDACTED_EMAIL]");
    let said: Vec<_> = agent.history().iter().map(|it| it.text().to_owned()).collect();
    assert_eq!(said, ["I am [REDACTED_EMAIL]", "I am [REDACTED_EMAIL]"]);
    agent.shutdown().await;
}

#[tokio::test]
async fn what_others_said_before_is_cleaned_too() {
    let agent = agent(Passthrough::new(), Pii::new()).build().unwrap();
    agent.startup().await.unwrap();
    let earlier = vec!["bob: write to ann@example.org".into(), "eve: at 10.0.0.1".into()];
    agent.run(Input::text("I will").after(earlier)).await.unwrap();
    let said: Vec<_> = agent.history().iter().map(|it| it.text().to_owned()).collect();
    assert_eq!(said[..2], ["bob: write to [REDACTED_EMAIL]", "eve: at [REDACTED_IP]"], "{said:?}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_long_secret_does_not_get_out_of_a_stream_behind_its_beginning() {
    let secret: &'static str = "aB3xK9".repeat(1_700).leak();
    let mut pieces = vec!["export AWS_SESSION_TOKEN="];
    pieces.extend(secret.as_bytes().chunks(100).map(|it| str::from_utf8(it).unwrap()));
    pieces.extend([" done", " and so on"]);
    let agent = agent(Streaming::new([(pieces, true)]), Pii::new()).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("go");
    let mut said = String::new();
    while let Some(piece) = stream.next().await {
        said.push_str(&piece);
    }
    assert_eq!(said, "export AWS_SESSION_TOKEN=[REDACTED_PASSWORD] done and so on");
    agent.shutdown().await;
}

#[tokio::test]
async fn what_is_blocked_in_the_input_denies_the_turn() {
    let pii = Pii::new().strategy_of(Detector::Password, Strategy::Block);
    let agent = agent(Passthrough::new(), pii).build().unwrap();
    agent.startup().await.unwrap();
    let error = agent.run("my password: hunter2!").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Denied);
    assert_eq!(error.to_string(), "the input has something in it that must not be there: password");
    assert_eq!(agent.run("ann@example.org").await.unwrap().output(), "[REDACTED_EMAIL]");
    agent.shutdown().await;
}

#[tokio::test]
async fn arguments_and_results_are_cleaned_and_excepted_tools_are_not() {
    let notes = Notes::default();
    let to = json!({ "to": "ann@example.org" });
    let model =
        Scripted::empty().calls([("note", to.clone()), ("mail", to)]).text("ask bob@example.org");
    let agent = agent(model, Pii::new().except_tool("ma*"))
        .tool(tool("note", &notes, "seen by bob@example.org"))
        .tool(tool("mail", &notes, "sent to ann@example.org"))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.output(), "ask [REDACTED_EMAIL]");
    let mut ran = notes.all();
    ran.sort();
    assert_eq!(ran, [r#"mail {"to":"ann@example.org"}"#, r#"note {"to":"[REDACTED_EMAIL]"}"#]);
    let history = agent.history();
    let results: Vec<_> =
        history.iter().filter(|it| matches!(it, Message::Tool(_))).map(Message::text).collect();
    assert_eq!(results, ["seen by [REDACTED_EMAIL]", "sent to ann@example.org"]);
    agent.shutdown().await;
}

#[tokio::test]
async fn it_stands_next_to_the_tool_and_sees_what_others_put_in() {
    let notes = Notes::default();
    let model = Scripted::empty().call("note", json!({})).text("done");
    let adds = hook::wrap_tool_call(|_cx, request, next| {
        Box::pin(async move {
            request.arguments["to"] = "ann@example.org".into();
            Ok(next.call(request).await?)
        })
    });
    // It is registered first, and still stands further in.
    let agent = agent(model, Pii::new())
        .with_lifecycle(adds)
        .tool(tool("note", &notes, "ok"))
        .build()
        .unwrap();
    agent.scoped(async |agent| agent.run("go").await).await.unwrap();
    assert_eq!(notes.all(), [r#"note {"to":"[REDACTED_EMAIL]"}"#]);
}

#[tokio::test]
async fn what_is_blocked_in_a_result_is_withheld_and_in_an_answer_denies_the_turn() {
    let notes = Notes::default();
    let model = Scripted::empty()
        .call("note", json!({}))
        .text("ok")
        .call("note", json!({ "to": "ann@example.org" }));
    let agent = agent(model, Pii::new().strategy(Strategy::Block))
        .tool(tool("note", &notes, "from 10.0.0.1"))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.run("go").await.unwrap();
    let history = agent.history();
    let result = history.iter().find_map(|it| match it {
        Message::Tool(result) => Some(result.clone()),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!(result.status, ToolStatus::Denied);
    assert!(
        result.content.text().ends_with("must not be there: ip; the tool has run"),
        "{result:?}"
    );
    // The arguments of a call are part of the answer.
    let error = agent.run("go").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("email"), "{error}");
    assert_eq!(notes.all().len(), 1);
    agent.shutdown().await;
}

const PIECES: [&str; 8] = [
    "Please wri",
    "te to ann@",
    "exam",
    "ple.org",
    " or call +41 44 ",
    "668 18 00",
    ", or ",
    "wait.",
];
const CLEAN: &str = "Please write to [REDACTED_EMAIL] or call [REDACTED_PHONE], or wait.";

#[tokio::test]
async fn a_stream_flows_and_nothing_gets_out_that_is_taken_out() {
    let model = Streaming::new([(PIECES.to_vec(), true)]);
    let agent = agent(model, Pii::new()).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("go");
    let (mut pieces, mut said) = (Vec::new(), String::new());
    while let Some(piece) = stream.next().await {
        said.push_str(&piece);
        assert!(CLEAN.starts_with(&said), "{said}");
        pieces.push(piece);
    }
    assert_eq!(said, CLEAN);
    assert!(pieces.len() >= 5, "it flows: {pieces:?}");
    assert_eq!(pieces[0], "Please ");
    assert_eq!(stream.finish().await.unwrap().output(), CLEAN);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_stream_of_what_is_not_looked_at_is_left_alone() {
    let model = Streaming::new([(PIECES.to_vec(), true)]);
    let agent = agent(model, Pii::new().output(false)).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("go");
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        pieces.push(piece);
    }
    assert_eq!(pieces, PIECES);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_stream_ends_where_something_is_blocked() {
    let model = Streaming::new([(PIECES.to_vec(), true)]);
    let agent = agent(model, Pii::new().strategy(Strategy::Block)).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("go");
    let mut said = String::new();
    while let Some(piece) = stream.next().await {
        said.push_str(&piece);
    }
    assert_eq!(said, "Please write to ");
    assert!(stream.finish().await.unwrap_err().is_denied());
    // What was denied is no part of the conversation.
    assert!(!agent.history().iter().any(|it| it.text().contains("ann@")));
    agent.shutdown().await;
}

/// Has the model answer anew after a failure, if nobody has read anything.
fn again() -> impl IntoRegistration {
    let retry = hook::wrap_model_call(|cx, request, next| {
        Box::pin(async move {
            match next.call(request).await {
                Err(error) if error.model_error().is_some() && !cx.is_text_out() => {
                    Ok(next.call(request).await?)
                }
                result => Ok(result?),
            }
        })
    });
    hook::hook(retry).named("again").keeps_text()
}

#[tokio::test]
async fn an_attempt_whose_text_was_held_back_can_be_made_again() {
    // All of the first attempt is held back: it may become an address.
    let model = Streaming::new([(vec!["ann@exa", "mple"], false), (PIECES.to_vec(), true)]);
    let agent = agent(model, Pii::new()).with_lifecycle(again()).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("go");
    let mut said = String::new();
    while let Some(piece) = stream.next().await {
        said.push_str(&piece);
    }
    assert_eq!(said, CLEAN);
    agent.shutdown().await;
}

#[tokio::test]
async fn an_attempt_that_was_read_is_not_made_again() {
    let model = Streaming::new([(vec!["Please write to ", "ann@exa"], false)]);
    let agent = agent(model, Pii::new()).with_lifecycle(again()).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("go");
    let mut said = String::new();
    while let Some(piece) = stream.next().await {
        said.push_str(&piece);
    }
    assert_eq!(said, "Please write to ");
    assert!(stream.finish().await.unwrap_err().model_error().is_some());
    agent.shutdown().await;
}

#[tokio::test]
async fn a_pattern_of_ones_own_has_its_own_strategy() -> Result<(), Error> {
    let pii = Pii::new()
        .detect([Detector::Email])
        .pattern("case", r"case \d+")?
        .pattern_with("employee", r"EMP-\d{4}", Strategy::Hash)?
        .salt("pepper");
    let agent = agent(Passthrough::new(), pii).build()?;
    let report =
        agent.scoped(async |agent| agent.run("case 12 of EMP-1234, 10.0.0.1").await).await?;
    let output = report.output();
    assert!(output.starts_with("[REDACTED_CASE] of <employee_hash:"), "{output}");
    assert!(output.ends_with(">, 10.0.0.1"), "{output}");
    assert!(Pii::new().pattern("email", "x").is_err());
    Ok(())
}

#[tokio::test]
async fn it_tells_how_much_was_found_and_never_what() {
    let bus = EventBus::new();
    let mut events = bus.watch(256);
    let agent = agent(Passthrough::new(), Pii::new()).events(&bus).build().unwrap();
    agent.scoped(async |agent| agent.run("ann@example.org").await).await.unwrap();
    let mut told = Vec::new();
    while let Some(received) = events.try_recv() {
        told.push(format!("{received:?}"));
    }
    let found: Vec<_> = told.iter().filter(|it| it.contains("pii.found")).collect();
    assert_eq!(found.len(), 1, "{told:?}");
    assert!(found[0].contains("email"));
    assert!(!told.iter().any(|it| it.contains("ann@")), "{told:?}");
}

#[test]
fn it_is_a_guard_with_only_the_points_that_it_needs() {
    use tenure_core::hook::Point;
    let registration = Pii::new().output(false).tool_results(false).into_registration();
    assert!(registration.is_guard());
    assert_eq!(registration.points().iter().collect::<Vec<_>>(), [Point::BeforeAgent]);
    assert!(Pii::new().into_registration().is_innermost());
}

#[tokio::test]
async fn where_it_fails_nothing_passes() {
    // Its own registration, with a body that breaks.
    let broken = hook::after_model(|_, _| Box::pin(async { panic!("out of order") }));
    let registration = Pii::new().into_registration().map_hook(|_| Arc::new(broken));
    let agent = Agent::builder("clerk")
        .model(Passthrough::new())
        .with_lifecycle(registration)
        .build()
        .unwrap();
    let error = agent.scoped(async |agent| agent.run("ann@example.org").await).await.unwrap_err();
    assert!(error.is_denied(), "{error}");
}

#[test]
fn options_are_checked() {
    assert!(made("pii", json!({})).is_ok());
    for (with, field, why) in [
        (json!({ "detect": [] }), "detect", "nothing to look for"),
        (json!({ "detect": ["mail"] }), "detect[0]", "unknown value `mail`"),
        (json!({ "strategy": "hide" }), "strategy", "unknown value `hide`"),
        (json!({ "strategies": { "url": "mask" } }), "strategies.url", "not looked for"),
        (json!({ "apply_to": [] }), "apply_to", "looks nowhere"),
        (
            json!({ "patterns": [{ "name": "a", "pattern": "(" }] }),
            "patterns[0].pattern",
            "no regular expression",
        ),
        (
            json!({ "patterns": [{ "name": "email", "pattern": "a" }] }),
            "patterns[0]",
            "the name of a detector",
        ),
        (json!({ "detects": [] }), "detects", "unknown field"),
    ] {
        let refused = made("pii", with.clone()).unwrap_err();
        assert!(refused.field().starts_with(field), "{with}: {refused}");
        assert!(refused.message().contains(why), "{with}: {refused}");
    }
    let bench = Bench::new();
    let hook = ready::find("pii").unwrap();
    assert!(hook.make(&json!({ "strategy": "hash" }), &bench).is_ok());
    assert!(bench.warnings()[0].starts_with("salt: "), "{:?}", bench.warnings());
}

/// To pass on what cannot be read would be to fail open.
#[tokio::test]
async fn what_no_guard_of_texts_can_read_is_denied() {
    let picture = || Media::new("image/png", *b"bytes").named("cat.png");
    for guard in [Pii::new().into_registration(), Safety::new().input(true).into_registration()] {
        let agent = Agent::builder("agent").model(Passthrough::new()).with_lifecycle(guard);
        let agent = agent.build().unwrap();
        agent.startup().await.unwrap();
        let error = agent.run(picture()).await.unwrap_err();
        assert!(error.is_denied(), "{error}");
        assert!(
            error.to_string().contains("cannot read: [cat.png, image/png, 5 bytes]"),
            "{error}"
        );
    }
}

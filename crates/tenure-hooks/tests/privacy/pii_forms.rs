//! Personal data in other forms: wide characters, the digits of other scripts, signs of no width.

use crate::privacy::support::*;
use serde_json::json;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::message::{Message, ToolStatus};
use tenure_hooks::guard::{Detector, Pii, Strategy};
use tenure_models::{Passthrough, Scripted};

fn agent(model: impl tenure_core::model::Model, pii: Pii) -> AgentBuilder {
    Agent::builder("clerk").model(model).with_lifecycle(pii)
}

#[tokio::test]
async fn the_model_does_not_see_them_in_the_input() {
    let agent = agent(Passthrough::new(), Pii::new().output(false)).build().unwrap();
    agent.startup().await.unwrap();
    for (text, clean) in [
        ("I am ａｎｎ＠ｅｘａｍｐｌｅ．ｏｒｇ", "I am [REDACTED_EMAIL]"),
        ("I am an\u{200b}n@example.org", "I am [REDACTED_EMAIL]"),
        ("４１１１ １１１１ １１１１ １１１１", "[REDACTED_CREDIT_CARD]"),
        ("你好，世界 \u{feff}12", "你好，世界 \u{feff}12"),
    ] {
        assert_eq!(agent.run(text).await.unwrap().output(), clean, "{text:?}");
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn nobody_gets_them_in_answers_arguments_and_results() {
    let notes = Notes::default();
    let model = Scripted::empty()
        .call("note", json!({ "to": "an\u{200b}n＠example.org" }))
        .text("ask b\u{ad}ob@example.org");
    let agent = agent(model, Pii::new().strategy_of(Detector::CreditCard, Strategy::Mask))
        .tool(tool("note", &notes, "paid with ４１１１ １１１１ 1111 1\u{2060}111"))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.output(), "ask [REDACTED_EMAIL]");
    assert_eq!(notes.all(), [r#"note {"to":"[REDACTED_EMAIL]"}"#]);
    let history = agent.history();
    let result = history.iter().find(|it| matches!(it, Message::Tool(_))).unwrap();
    assert_eq!(result.text(), "paid with **** **** **** 1111");
    agent.shutdown().await;
}

#[tokio::test]
async fn they_are_blocked_everywhere() {
    let notes = Notes::default();
    let model = Scripted::empty()
        .call("note", json!({}))
        .text("ok")
        .call("note", json!({ "to": "ａnn@example.org" }))
        .text("write to ann@exam\u{200d}ple.org");
    let agent = agent(model, Pii::new().strategy(Strategy::Block))
        .tool(tool("note", &notes, "from 10.0.\u{200b}0.１"))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let error = agent.run("I am ann＠example.org").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("the input"), "{error}");
    agent.run("go").await.unwrap();
    let history = agent.history();
    let status = history.iter().find_map(|it| match it {
        Message::Tool(result) => Some(result.status),
        _ => None,
    });
    assert_eq!(status, Some(ToolStatus::Denied));
    for _ in ["the arguments", "the text"] {
        let error = agent.run("go").await.unwrap_err();
        assert!(error.is_denied() && error.to_string().contains("email"), "{error}");
    }
    assert_eq!(notes.all().len(), 1);
    agent.shutdown().await;
}

#[tokio::test]
async fn they_do_not_get_out_of_a_stream_whose_pieces_end_within_them() {
    let pieces =
        vec!["Write to ａｎ", "\u{200b}", "ｎ＠exa", "mple．", "org or", " pay ４１１１ 11", "11 "];
    let pieces = [pieces, vec!["１１１１ 11\u{ad}", "11", ", or ", "wait."]].concat();
    let clean = "Write to [REDACTED_EMAIL] or pay [REDACTED_CREDIT_CARD], or wait.";
    let model = Streaming::new([(pieces, true)]);
    let agent = agent(model, Pii::new()).build().unwrap();
    agent.startup().await.unwrap();
    let mut stream = agent.stream("go");
    let (mut count, mut said) = (0, String::new());
    while let Some(piece) = stream.next().await {
        said.push_str(&piece);
        assert!(clean.starts_with(&said), "{said}");
        count += 1;
    }
    assert_eq!(said, clean);
    assert!(count >= 4, "it flows: {count}");
    assert_eq!(stream.finish().await.unwrap().output(), clean);
    agent.shutdown().await;
}

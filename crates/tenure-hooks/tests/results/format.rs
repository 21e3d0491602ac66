//! Answers in a form.

use crate::results::run;
use crate::support::refused;
use serde_json::{Value, json};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::model::ModelErrorKind;
use tenure_hooks::result::{Format, SaveResult};
use tenure_models::Scripted;

fn saying(text: &str) -> AgentBuilder {
    Agent::builder("clerk").model(Scripted::empty().text(text))
}

#[tokio::test]
async fn an_answer_is_wrapped_as_json() {
    for (answer, expected) in [("hello", json!("hello")), ("{\"a\": 1}", json!({ "a": 1 }))] {
        let agent = saying(answer).with_lifecycle(Format::json().compact());
        let (output, failures) = run(agent, "go").await.unwrap();
        let value: Value = serde_json::from_str(&output).unwrap();
        assert_eq!((&value["output"], &value["agent"]), (&expected, &json!("clerk")));
        assert_eq!(value["usage"]["calls"], 1, "{output}");
        assert!(failures.is_empty(), "{failures:?}");
    }
}

#[tokio::test]
async fn the_json_in_an_answer_is_taken_out_of_it() {
    let agent = saying("Sure!\n```json\n{\"a\": [1, 2]}\n```");
    let (output, _) =
        run(agent.with_lifecycle(Format::json_answer().compact()), "go").await.unwrap();
    assert_eq!(output, r#"{"a":[1,2]}"#);
}

#[tokio::test]
async fn an_answer_without_json_stays_and_the_report_says_so() {
    let agent = saying("no idea").with_lifecycle(Format::json_answer());
    let (output, failures) = run(agent, "go").await.unwrap();
    assert_eq!(output, "no idea");
    assert!(failures[0].contains("has no JSON in it"), "{failures:?}");
}

#[tokio::test]
async fn a_stream_has_the_form_that_the_report_has() {
    let agent = saying("# Title\n\n*text*").with_lifecycle(Format::plain()).build().unwrap();
    let read = agent
        .scoped(async |agent| {
            let mut stream = agent.stream("go");
            let mut read = String::new();
            while let Some(text) = stream.next().await {
                read.push_str(&text);
            }
            let report = stream.finish().await?;
            assert_eq!(report.output(), "Title\n\ntext");
            Ok::<_, tenure_core::Error>(read)
        })
        .await
        .unwrap();
    assert_eq!(read, "Title\n\ntext");
}

#[tokio::test]
async fn a_turn_that_failed_has_nothing_to_form() {
    let model = Scripted::empty().error(ModelErrorKind::Overloaded, "busy");
    let agent = Agent::builder("a").model(model).with_lifecycle(Format::json());
    let error = run(agent, "go").await.unwrap_err();
    assert!(error.to_string().contains("busy"), "{error}");
    assert!(error.report().unwrap().failures.iter().all(|it| !it.to_string().contains("format")));
}

#[tokio::test]
async fn what_is_kept_has_the_form_in_whatever_order_they_are_registered() {
    let folder = tempfile::tempdir().unwrap();
    for first in [true, false] {
        let path = folder.path().join(format!("{first}.jsonl"));
        let save = SaveResult::lines(&path);
        let agent = saying("**bold**");
        let agent = match first {
            true => agent.with_lifecycle(save).with_lifecycle(Format::plain()),
            false => agent.with_lifecycle(Format::plain()).with_lifecycle(save),
        };
        let (output, failures) = run(agent, "go").await.unwrap();
        assert_eq!((output.as_str(), failures.len()), ("bold", 0), "{failures:?}");
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(kept["output"], "bold");
    }
}

#[test]
fn options_are_checked() {
    assert_eq!(refused("format", json!({ "to": "yaml" })), "to");
    assert_eq!(refused("format", json!({ "pretty": 1 })), "pretty");
}

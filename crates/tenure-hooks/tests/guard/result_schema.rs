//! Results and answers that have to fit.

use crate::guard::support::*;
use crate::support::refused;
use serde_json::json;
use tenure_core::Outcome;
use tenure_core::agent::Agent;
use tenure_core::hook::IntoRegistration;
use tenure_core::message::ToolStatus::{Denied, Error as Failed, Ok as Done};
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_hooks::guard::{OnMismatch, ResultSchema};
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Script, Scripted};

fn weather(answer: &'static str) -> tenure_core::agent::AgentBuilder {
    let tool = FnTool::new(ToolSpec::new("weather", "Says"), move |_| Ok(answer.into()));
    let script = Script::from_json(&json!([{ "call": "weather" }, "end"])).expect("it works here");
    Agent::builder("agent").model(script).tool(tool)
}

fn degrees() -> ResultSchema {
    let schema = json!({
        "type": "object",
        "properties": { "degrees": { "type": "number" } },
        "required": ["degrees"],
    });
    ResultSchema::new().tool("weath*", &schema).expect("it works here")
}

#[tokio::test]
async fn a_result_that_fits_passes_and_another_is_withheld() {
    let turn = run(weather("{\"degrees\": 21.5}").with_lifecycle(degrees())).await;
    assert_eq!(results(&turn), [(Done, "{\"degrees\": 21.5}".to_owned())]);
    for answer in ["{\"degrees\": \"hidden\"}", "{}", "hidden", "[]", ""] {
        let turn = run(weather(answer).with_lifecycle(degrees())).await;
        let (status, told) = results(&turn).remove(0);
        assert_eq!(status, Failed, "{answer}");
        assert!(told.contains("does not fit its schema"), "{told}");
    }
    let told = results(&run(weather("{\"degrees\": true}").with_lifecycle(degrees())).await);
    assert!(told[0].1.contains("`/degrees`"), "{}", told[0].1);
}

#[tokio::test]
async fn a_mismatch_may_be_a_refusal_or_end_the_turn() {
    let denies = degrees().on_mismatch(OnMismatch::Deny);
    assert_eq!(statuses(&run(weather("x").with_lifecycle(denies)).await), [Denied]);
    let turn = run(weather("x").with_lifecycle(degrees().on_mismatch(OnMismatch::End))).await;
    assert_eq!((outcome(&turn), statuses(&turn)), (Outcome::Denied, vec![Denied]));
}

#[tokio::test]
async fn what_a_tool_says_of_a_failure_is_not_held_against_the_schema() {
    let tool = FnTool::new(ToolSpec::new("weather", "Says"), |_| {
        Err(tenure_core::tool::ToolError::new("no network"))
    });
    let script = Script::from_json(&json!([{ "call": "weather" }, "end"])).unwrap();
    let builder = Agent::builder("agent").model(script).tool(tool).with_lifecycle(degrees());
    assert_eq!(results(&run(builder).await), [(Failed, "no network".to_owned())]);
}

fn answers(texts: &[&str]) -> tenure_core::agent::AgentBuilder {
    Agent::builder("agent").model(Scripted::new(texts.iter().copied()))
}

fn number() -> ResultSchema {
    ResultSchema::new().output(&json!({ "type": "number" })).expect("it works here")
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_rejected() {
    assert_eq!(run(answers(&["42"]).with_lifecycle(number())).await.unwrap().output(), "42");
    let turn = run(answers(&["about 42", "42"]).with_lifecycle(number())).await;
    assert_eq!(outcome(&turn), Outcome::Denied);
    let error = turn.unwrap_err().to_string();
    assert!(error.starts_with("the answer does not fit its schema"), "{error}");
}

#[tokio::test]
async fn a_model_may_be_asked_once_more_and_is_told_why() {
    let model = Scripted::from_fn(|request, call| {
        let last = request.messages.last().map(|last| last.text().to_owned()).unwrap_or_default();
        let asked = last.starts_with("Your answer does not have the form");
        assert_eq!(asked, call % 2 == 1, "{last}");
        Ok(tenure_core::model::ModelResponse::text(if asked { "42" } else { "about 42" }))
    });
    let hook = number().ask_again();
    let agent = Agent::builder("agent").model(model).with_lifecycle(hook).build().unwrap();
    agent.startup().await.unwrap();
    // In every turn once more.
    for _ in 0..2 {
        let report = agent.run("go").await.unwrap();
        assert_eq!((report.output(), report.steps), ("42", 2));
    }
    let said = agent.history().iter().any(|message| message.text().contains("the form"));
    assert!(!said, "the correction is not part of the conversation");
    agent.shutdown().await;

    let stubborn = answers(&["no", "no", "42"]).with_lifecycle(number().ask_again());
    assert_eq!(outcome(&run(stubborn).await), Outcome::Denied, "only once");
}

#[tokio::test]
async fn the_answers_of_clones_are_their_own() {
    let child = answers(&["about 42"]).blueprint().unwrap();
    let model = Scripted::empty().call("agent__agent", json!({ "message": "x" })).text("42");
    let parent = Agent::builder("parent").model(model).agent_tool(&child).with_lifecycle(number());
    let turn = run(parent).await;
    assert_eq!(results(&turn), [(Done, "about 42".to_owned())]);
    assert_eq!(turn.unwrap().output(), "42");
}

#[tokio::test]
async fn nobody_reads_an_answer_that_is_rejected() {
    use futures_util::StreamExt;
    for (answer, read) in [("about 42", ""), ("42", "42")] {
        let agent = answers(&[answer]).with_lifecycle(number()).build().unwrap();
        agent.startup().await.unwrap();
        let pieces: Vec<String> = agent.stream("go").collect().await;
        assert_eq!(pieces.concat(), read);
        agent.shutdown().await;
    }
}

#[test]
fn nothing_is_fetched_for_a_schema() {
    for address in ["http://127.0.0.1:9/x.json", "https://example.com/x", "file:///etc/passwd"] {
        let error = ResultSchema::new().tool("a", &json!({ "$ref": address })).unwrap_err();
        assert!(error.to_string().contains("cannot be used"), "{error}");
    }
    let own = json!({ "$defs": { "n": { "type": "number" } }, "$ref": "#/$defs/n" });
    assert!(ResultSchema::new().tool("a", &own).is_ok());
}

#[tokio::test]
async fn a_schema_may_be_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().root(folder.path());
    std::fs::write(folder.path().join("s.json"), "{ \"type\": \"array\" }").unwrap();
    let make = |file: &str| {
        let with = json!({ "tools": { "weather": { "file": file } } });
        ready::find("result_schema").unwrap().make(&with, &bench)
    };
    let turn = run(weather("{}").with_lifecycle(make("s.json").unwrap())).await;
    assert_eq!(statuses(&turn), [Failed]);
    std::fs::write(folder.path().join("large.json"), " ".repeat((1 << 20) + 1)).unwrap();
    std::fs::write(folder.path().join("bad.json"), "{").unwrap();
    for file in ["large.json", "bad.json", "none.json", ".", "../s.json"] {
        assert_eq!(make(file).unwrap_err().field(), "tools.weather.file", "{file}");
    }
}

#[test]
fn options_are_checked() {
    let field = |with| refused("result_schema", with);
    assert_eq!(field(json!({})), "");
    let bad = json!({ "schema": { "type": "numbre" } });
    assert_eq!(field(json!({ "tools": { "a": bad } })), "tools.a");
    assert_eq!(field(json!({ "output": bad })), "output");
    let good = json!({ "schema": { "type": "number" } });
    assert_eq!(field(json!({ "tools": { "a": good }, "ask_again": true })), "ask_again");
}

#[tokio::test]
async fn two_schemas_of_an_agent_ask_once_more_together() {
    let of = |schema| ResultSchema::new().output(&schema).unwrap().ask_again().into_registration();
    let builder = |replies: [&'static str; 2]| {
        Agent::builder("agent")
            .model(Scripted::new(replies))
            .with_lifecycle(of(json!({ "required": ["a"] })))
            .with_lifecycle(of(json!({ "required": ["b"] })).named("second"))
    };
    let turn = run(builder(["{}", r#"{"a": 1, "b": 2}"#])).await;
    assert_eq!(turn.unwrap().output(), r#"{"a": 1, "b": 2}"#);
    // Each has a say of its own about the second answer, and none asks again.
    for half in [r#"{"a": 1}"#, r#"{"b": 1}"#] {
        assert_eq!(run(builder(["{}", half])).await.unwrap_err().outcome(), Outcome::Denied);
    }
}

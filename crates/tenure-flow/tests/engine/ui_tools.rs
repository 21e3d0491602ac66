//! Tools that show something to a person.

use crate::engine::support::{Log, Plan, agent};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_flow::contract::ErrorStrategy;
use tenure_flow::people::{TakesResponse, UiTool};
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_models::Scripted;

/// Answers with what it was given.
struct Shows;

#[async_trait]
impl Tool for Shows {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("show_plan", "Show the plan")
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        Ok(arguments.clone().into())
    }
}

struct Person {
    answers: Mutex<Vec<Answer>>,
    forms: Arc<Mutex<Vec<Option<Value>>>>,
    is_there: bool,
}

#[async_trait]
impl Asker for Person {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self.forms.lock().expect("no test panics under this lock").push(ask.ask.form.clone());
        Some(self.answers.lock().expect("no test panics under this lock").remove(0))
    }

    fn is_there(&self) -> bool {
        self.is_there
    }
}

struct Asked {
    report: ChatReport,
    /// What the model got to read.
    result: String,
    forms: Vec<Option<Value>>,
    statuses: Vec<String>,
}

/// A chat whose agent calls a UI tool once, and these are the person's answers.
async fn asked(tool: UiTool, answers: &[Answer], is_there: bool) -> Asked {
    let log = Log::new();
    let read = Arc::new(Mutex::new(String::new()));
    let keeps = read.clone();
    let model = Scripted::from_fn(move |request, call| {
        if call == 0 {
            let call = tenure_core::message::ToolCall::new("c1", "show_plan", r#"{"plan":"p"}"#);
            return Ok(tenure_core::model::ModelResponse::calls([call]));
        }
        let last = request.messages.last().map(|it| it.text().to_owned()).unwrap_or_default();
        *keeps.lock().expect("no test panics under this lock") = last;
        Ok(tenure_core::model::ModelResponse::text("done"))
    });
    let forms = Arc::new(Mutex::new(Vec::new()));
    let person = Person { answers: Mutex::new(answers.to_vec()), forms: forms.clone(), is_there };
    let own =
        log.builder("a", model).tool(tool).on_ask(person).blueprint().expect("it can be built");
    let flow = Flow::builder("one").agent(own).events(&log.bus).router(Plan::new(["a"]));
    // What waits for a person is not made again.
    let flow = flow.error_strategy(ErrorStrategy::RETRY).build().expect("a flow");
    let report = flow.run("go").await;
    let result = read.lock().expect("no test panics under this lock").clone();
    let forms = forms.lock().expect("no test panics under this lock").clone();
    Asked { report, result, forms, statuses: log.statuses() }
}

fn tool() -> UiTool {
    UiTool::new(Arc::new(Shows)).component(Some("PlanView")).mode(Some("artifact"))
}

fn respond(text: &str) -> Answer {
    Answer::Respond(text.to_owned())
}

#[tokio::test]
async fn the_answer_is_an_argument_of_the_function() {
    let asked = asked(tool(), &[respond(r#"{"ok":true}"#)], true).await;
    assert_eq!(asked.report.status, ChatStatus::Completed, "{:?}", asked.report.error);
    let given: Value = serde_json::from_str(&asked.result).unwrap();
    assert_eq!(given, json!({ "plan": "p", "ui_response": { "ok": true } }));
    assert_eq!(
        asked.forms,
        [Some(json!({
            "tool": "show_plan", "component": "PlanView", "mode": "artifact",
            "arguments": { "plan": "p" },
        }))]
    );
    assert_eq!(asked.statuses, ["running", "paused", "running", "completed"]);
}

#[tokio::test]
async fn a_function_that_takes_no_answer_gets_none_and_variables_do() {
    let tool = tool().takes_response(TakesResponse::No).on_response(|cx, response| {
        let variables = cx.chat_variables().expect("it is part of a chat");
        variables.set("approved", response["ok"].clone())?;
        Ok(Vec::new())
    });
    let asked = asked(tool, &[respond(r#"{"ok":true}"#)], true).await;
    assert_eq!(asked.result, r#"{"plan":"p"}"#);
    assert_eq!(asked.report.variables["approved"], true);
}

#[tokio::test]
async fn words_an_empty_answer_and_an_edit_are_given_on_as_they_are() {
    for (answer, given) in [
        (respond("make it blue"), json!("make it blue")),
        (respond(""), json!("")),
        (Answer::Edit(json!({ "x": 1 })), json!({ "x": 1 })),
        (Answer::Approve, json!(true)),
    ] {
        let asked = asked(tool(), &[answer], true).await;
        let result: Value = serde_json::from_str(&asked.result).unwrap();
        assert_eq!(result["ui_response"], given);
    }
}

#[tokio::test]
async fn who_rejects_it_denies_the_call_and_the_agent_goes_on() {
    let asked = asked(tool(), &[Answer::Reject("not like this".into())], true).await;
    assert_eq!((asked.report.status, &*asked.result), (ChatStatus::Completed, "not like this"));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let schema = json!({ "type": "object", "required": ["ok"] });
    let fits = tool().schema(Some(schema.clone()));
    let asked_twice = asked(fits, &[respond("blue"), respond(r#"{"ok":1}"#)], true).await;
    assert_eq!(asked_twice.forms.len(), 2);
    let given: Value = serde_json::from_str(&asked_twice.result).unwrap();
    assert_eq!(given["ui_response"], json!({ "ok": 1 }));
    let never = [respond("red"), respond("green"), respond("blue")];
    let asked = asked(tool().schema(Some(schema)), &never, true).await;
    assert!(asked.result.contains("no answer had the form"), "{}", asked.result);
    assert_eq!((asked.report.status, asked.forms.len()), (ChatStatus::Completed, 3));
}

#[tokio::test]
async fn without_anybody_there_the_chat_is_paused_and_the_agent_lives_to_its_end() {
    let asked = asked(tool(), &[], false).await;
    assert_eq!(asked.report.status, ChatStatus::Paused, "{:?}", asked.report.error);
    assert_eq!((asked.report.turns, asked.report.metrics.retries), (1, 0));
    assert_eq!(asked.result, "", "the model does not get to work around it");
    assert_eq!(asked.statuses, ["running", "paused"]);
}

#[tokio::test]
async fn a_tool_that_ends_the_turn_leaves_the_agent_ready_and_its_history_valid() {
    struct Ends;
    #[async_trait]
    impl Tool for Ends {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("ends", "Ends the turn")
        }
        async fn call(&self, _cx: ToolCx<'_>, _: &Value) -> Result<ToolOutput, ToolError> {
            Err(ToolError::ends_turn("that was it"))
        }
    }
    let model = Scripted::empty().call("ends", json!({})).text("again");
    let agent = Agent::builder("a").model(model).tool(Ends).build().expect("a flow");
    agent.startup().await.unwrap();
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.kind(), tenure_core::ErrorKind::Tool);
    assert!(!error.is_fatal());
    // Every call has its result, and the next turn is like any other.
    assert_eq!(agent.run("go").await.unwrap().output(), "again");
    agent.shutdown().await;
}

#[test]
fn it_says_what_the_function_says() {
    assert_eq!(&*tool().spec().name, "show_plan");
    assert!(format!("{:?}", tool()).contains("PlanView"));
    let _ = agent("a", Scripted::empty());
}

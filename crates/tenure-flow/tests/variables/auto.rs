//! `auto_tool_mode`: the tool of an agent is called with what it answers.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::event::{EventBus, Received};
use tenure_core::hook::{self, Policy};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::ModelResponse;
use tenure_core::tool::{FnTool, ToolError, ToolOutput, ToolSpec};
use tenure_flow::output::{
    FieldSpec, FieldType, ModelSpec, Output, Outputs, OutputsSpec, arguments, auto_tool, unfilled,
};
use tenure_flow::route::RoundRobin;
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_models::Scripted;

const ANSWER: &str = "{\"title\": \"Tea\", \"price\": 3, \"note\": \"hot\"}";

fn outputs() -> Arc<Outputs> {
    let fields = vec![
        FieldSpec::new("title", FieldType::Str),
        FieldSpec::new("price", FieldType::Int),
        FieldSpec::new("note", FieldType::Str),
    ];
    let registry = BTreeMap::from([("clerk".to_owned(), Some("Offer".to_owned()))]);
    let spec = OutputsSpec::new(vec![ModelSpec::new("Offer", fields)], registry);
    Arc::new(Outputs::new(spec).expect("it is good"))
}

fn output() -> Arc<Output> {
    outputs().get("clerk").expect("it has one").clone()
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "title": {}, "price": {} },
            "required": ["title", "price"], "additionalProperties": false })
}

type Calls = Arc<Mutex<Vec<Value>>>;
/// The messages that a model got in each call.
type Seen = Arc<Mutex<Vec<Vec<Message>>>>;

/// A clerk that answers so, and whose tool does so.
fn clerk(
    answers: &[&str],
    tool: impl Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
) -> (AgentBuilder, Calls, Seen) {
    let (calls, seen) = (Calls::default(), Seen::default());
    let answers: Vec<String> = answers.iter().map(|it| (*it).to_owned()).collect();
    let model = Scripted::from_fn({
        let seen = seen.clone();
        move |request, call| {
            assert!(request.tools.is_empty(), "its model sees no tools");
            seen.lock().expect("it is whole").push(request.messages.iter().cloned().collect());
            Ok(ModelResponse::text(answers[call % answers.len()].clone()))
        }
    });
    let body = {
        let calls = calls.clone();
        move |arguments: &Value| {
            calls.lock().expect("it is whole").push(arguments.clone());
            tool(arguments)
        }
    };
    let tool = FnTool::new(ToolSpec::new("offer", "Offers").parameters(schema()), body);
    let agent = Agent::builder("clerk")
        .model(model)
        .tool(tool)
        .with_lifecycle(auto_tool(&output(), "offer"));
    (agent, calls, seen)
}

async fn run(agent: AgentBuilder, turns: usize) -> ChatReport {
    let flow = Flow::builder("shop")
        .agent(agent.blueprint().expect("it can be built"))
        .router(RoundRobin)
        .max_turns(turns)
        .outputs(outputs())
        .build();
    flow.expect("it can be built").run("offer something").await
}

#[tokio::test]
async fn the_tool_is_called_once_with_the_fields_it_takes_and_the_answer_is_the_output() {
    let (agent, calls, seen) = clerk(&[ANSWER], |_| Ok("offered".into()));
    let report = run(agent, 1).await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    assert_eq!(report.output, ANSWER);
    assert_eq!(*calls.lock().unwrap(), [json!({ "title": "Tea", "price": 3 })]);
    assert_eq!(seen.lock().unwrap().len(), 1, "the model is not asked again");
    assert_eq!(report.usage.calls, 1);
}

#[tokio::test]
async fn the_next_turn_is_told_what_the_tool_said_and_not_of_calls() {
    let (agent, calls, seen) = clerk(&[ANSWER], |_| Ok("offered".into()));
    run(agent, 2).await;
    assert_eq!(calls.lock().unwrap().len(), 2);
    let seen = seen.lock().unwrap();
    let second: Vec<_> = seen[1].iter().map(Message::text).collect();
    assert_eq!(
        second,
        ["offer something", ANSWER, "`offer` was called and said: offered", "Continue."]
    );
    assert!(seen[1].iter().all(|message| message.calls().is_empty()));
}

#[tokio::test]
async fn hooks_around_tools_see_the_call_and_events_tell_of_it() {
    let guarded: Calls = Arc::default();
    let guard = hook::wrap_tool_call({
        let guarded = guarded.clone();
        move |_, request, next| {
            guarded.lock().unwrap().push(request.arguments.clone());
            request.arguments["price"] = json!(4);
            Box::pin(async move { Ok(next.call(request).await?) })
        }
    });
    let bus = EventBus::new();
    let mut events = bus.subscribe(1000);
    let (agent, calls, _) = clerk(&[ANSWER], |_| Ok("offered".into()));
    run(agent.with_lifecycle(guard).events(&bus), 1).await;
    assert_eq!(*guarded.lock().unwrap(), [json!({ "title": "Tea", "price": 3 })]);
    assert_eq!(calls.lock().unwrap()[0]["price"], json!(4));
    let mut names = Vec::new();
    while let Some(Received::Event(event)) = events.try_recv() {
        names.push(event.name());
    }
    assert!(names.iter().any(|name| name.starts_with("tool.")), "{names:?}");
}

#[tokio::test]
async fn a_guard_that_denies_ends_the_turn_as_denied_and_the_tool_is_not_called() {
    let guard =
        hook::wrap_tool_call(|_, _, _| Box::pin(async { Ok(ToolOutput::denied("too cheap")) }));
    let (agent, calls, _) = clerk(&[ANSWER], |_| Ok("offered".into()));
    let guard = hook::hook(guard).policy(Policy::Deny);
    let report = run(agent.with_lifecycle(guard), 1).await;
    assert!(calls.lock().unwrap().is_empty());
    assert!(report.error.as_ref().is_some_and(|error| error.is_denied()), "{:?}", report.error);
    let said = report.error.unwrap().to_string();
    assert!(said.contains("`offer` was not called: too cheap"), "{said}");
}

#[tokio::test]
async fn a_tool_that_fails_fails_the_turn_with_what_it_said() {
    let (agent, calls, seen) = clerk(&[ANSWER], |_| Err(ToolError::new("out of stock")));
    let report = run(agent, 1).await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert_eq!((calls.lock().unwrap().len(), seen.lock().unwrap().len()), (1, 1));
    let said = report.error.expect("it failed").to_string();
    assert!(said.contains("`offer`, called with what the agent answered, failed: "), "{said}");
    assert!(said.contains("out of stock"), "{said}");
}

#[tokio::test]
async fn an_answer_of_another_form_is_corrected_before_the_tool_is_called() {
    let (agent, calls, seen) = clerk(&["tea?", ANSWER], |_| Ok("offered".into()));
    let report = run(agent, 1).await;
    assert_eq!(report.output, ANSWER);
    assert_eq!((calls.lock().unwrap().len(), seen.lock().unwrap().len()), (1, 2));
}

#[tokio::test]
async fn calls_that_the_model_makes_up_are_not_made() {
    let model = Scripted::from_fn(|_, call| {
        let mut response = ModelResponse::text(ANSWER);
        if call == 0 {
            response.calls = vec![ToolCall::new("x", "offer", "{\"title\": \"made up\"}")];
        }
        Ok(response)
    });
    let calls: Calls = Arc::default();
    let body = {
        let calls = calls.clone();
        move |arguments: &Value| {
            calls.lock().unwrap().push(arguments.clone());
            Ok("offered".into())
        }
    };
    let tool = FnTool::new(ToolSpec::new("offer", "Offers").parameters(schema()), body);
    let agent = Agent::builder("clerk")
        .model(model)
        .tool(tool)
        .with_lifecycle(auto_tool(&output(), "offer"));
    run(agent, 1).await;
    assert_eq!(*calls.lock().unwrap(), [json!({ "title": "Tea", "price": 3 })]);
}

#[tokio::test]
async fn an_agent_without_the_tool_fails_and_names_it() {
    let (agent, _, _) = clerk(&[ANSWER], |_| Ok("offered".into()));
    let agent = agent.with_lifecycle(auto_tool(&output(), "sell").named("second"));
    let report = run(agent, 1).await;
    let said = report.error.expect("it failed").to_string();
    assert!(said.contains("the agent has no tool `sell`"), "{said}");
}

#[test]
fn fields_go_to_parameters_by_name() {
    let answer = json!({ "title": "Tea", "price": 3, "note": "hot" });
    let answer = answer.as_object().unwrap();
    let taken = |schema: Value| Value::Object(arguments(&schema, answer));
    assert_eq!(taken(schema()), json!({ "title": "Tea", "price": 3 }));
    let open = json!({ "type": "object", "properties": {}, "additionalProperties": true });
    assert_eq!(taken(open), json!(answer));
    assert_eq!(taken(json!({ "type": "object", "properties": {} })), json!({}));
    assert_eq!(taken(json!({})), json!(answer));
    assert!(unfilled(&schema(), &output()).is_empty());
    let more = json!({ "type": "object", "properties": {}, "required": ["title", "color"] });
    assert_eq!(unfilled(&more, &output()), ["color"]);
}

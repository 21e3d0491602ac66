//! What `#[lifecycle]` and `#[tool]` promise.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::Duration;
use tenure::agent::Agent;
use tenure::context::{InstanceCx, ModelCx, PhaseCx, ToolCx, TurnCx};
use tenure::drive::Input;
use tenure::hook::{AgentLifecycle, Flow, HookError, Point, Points};
use tenure::message::{Message, ToolCall, ToolResult, ToolStatus};
use tenure::model::{Model, ModelError, ModelRequest, ModelResponse};
use tenure::tool::{Effect, Tool, ToolError, ToolParam, ToolSpec};
use tenure::{lifecycle, tool};

// ---- #[lifecycle]

struct Two;

#[lifecycle]
impl AgentLifecycle for Two {
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    async fn before_agent(&self, _cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }
}

struct Conditional;

#[lifecycle]
impl AgentLifecycle for Conditional {
    #[cfg(test)]
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    #[cfg(not(test))]
    async fn on_transition(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        Ok(())
    }
}

struct Generic<T>(T);

#[lifecycle]
impl<T> AgentLifecycle for Generic<T>
where
    T: Send + Sync + 'static,
{
    async fn on_transition(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        let _ = &self.0;
        Ok(())
    }
}

struct Chosen;

#[lifecycle]
impl AgentLifecycle for Chosen {
    fn points(&self) -> Points {
        Point::OnShutdown.into()
    }

    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }
}

struct Written;

macro_rules! a_hook_of_some_kind {
    () => {
        fn name(&self) -> &str {
            "written"
        }
    };
}

#[lifecycle]
impl AgentLifecycle for Written {
    a_hook_of_some_kind!();
}

struct Nothing;

#[lifecycle]
impl AgentLifecycle for Nothing {}

#[test]
fn the_mask_is_what_the_impl_has() {
    let expected: [(&dyn AgentLifecycle, Points); 6] = [
        (&Two, [Point::OnStart, Point::BeforeAgent].into_iter().collect()),
        (&Conditional, Point::OnStart.into()),
        (&Generic("text"), Point::OnTransition.into()),
        (&Chosen, Point::OnShutdown.into()),
        (&Written, Points::ALL),
        (&Nothing, Points::NONE),
    ];
    for (hook, points) in expected {
        assert_eq!(hook.points(), points, "{}", hook.name());
    }
}

// ---- #[tool]

/// The weather of the next days,
/// as the service tells it.
///
/// Not for the past.
#[tool(effect = "idempotent", limit = "1.5s")]
async fn forecast(
    /// The city,
    /// in English.
    city: String,
    days: u32,
    /// What to tell beside the temperature.
    extras: Option<Vec<String>>,
) -> Result<String, ToolError> {
    match city.as_str() {
        "Atlantis" => Err(ToolError::new("no such city")),
        _ => Ok(format!("{city}, {days}, {extras:?}")),
    }
}

/// A type that says how it looks, and what it is when it is missing.
#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scale {
    Celsius,
    Kelvin,
}

impl ToolParam for Scale {
    fn schema() -> Value {
        json!({ "enum": ["celsius", "kelvin"], "description": "A scale." })
    }

    fn missing() -> Option<Self> {
        Some(Self::Celsius)
    }
}

/// A type that may be anything.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Anything(Value);

impl ToolParam for Anything {
    fn schema() -> Value {
        json!(true)
    }
}

#[tool(name = "convert-degrees", description = "Converts degrees.")]
fn convert(
    /// The scale to convert to.
    r#type: Scale,
    /// What the thermometer says.
    reading: Anything,
) -> String {
    let unit = match r#type {
        Scale::Celsius => "°C",
        Scale::Kelvin => "K",
    };
    format!("{} {unit}", reading.0)
}

/// Says which call it is.
#[tool]
async fn call_id(cx: ToolCx<'_>) -> String {
    cx.call_id().to_owned()
}

#[test]
fn a_tool_says_of_itself_what_its_function_says() {
    let expected = ToolSpec::new(
        "forecast",
        "The weather of the next days, as the service tells it.\n\nNot for the past.",
    )
    .parameters(json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "description": "The city, in English." },
            "days": { "type": "integer" },
            "extras": {
                "type": "array",
                "items": { "type": "string" },
                "description": "What to tell beside the temperature.",
            },
        },
        "required": ["city", "days"],
        "additionalProperties": false,
    }))
    .effect(Effect::Idempotent)
    .limit(Duration::from_millis(1500));
    assert_eq!(forecast.spec(), expected);
}

#[test]
fn a_tool_says_what_it_writes() {
    /// Keeps a note.
    #[tool(effect = "keyed", writes = ["notes", "seen"])]
    fn note() -> String {
        String::new()
    }

    let spec = note.spec();
    assert_eq!((spec.effect, spec.limit), (Effect::Keyed, None));
    assert_eq!(spec.writes, ["notes", "seen"]);
}

#[test]
fn a_parameter_says_more_than_its_type() {
    let expected = ToolSpec::new("convert-degrees", "Converts degrees.").parameters(json!({
        "type": "object",
        "properties": {
            "type": {
                "enum": ["celsius", "kelvin"],
                "description": "The scale to convert to.",
            },
            "reading": { "allOf": [true], "description": "What the thermometer says." },
        },
        "required": ["reading"],
        "additionalProperties": false,
    }));
    assert_eq!(convert.spec(), expected);
}

#[test]
fn a_tool_without_parameters_takes_an_empty_object() {
    let expected = ToolSpec::new("call_id", "Says which call it is.").parameters(json!({
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": false,
    }));
    assert_eq!(call_id.spec(), expected);
}

#[tokio::test]
async fn good_arguments_reach_the_function() {
    for (tool, arguments, expected) in [
        (
            "forecast",
            json!({ "city": "Bonn", "days": 2, "extras": ["wind"] }),
            r#"Bonn, 2, Some(["wind"])"#,
        ),
        ("forecast", json!({ "city": "Bonn", "days": 2 }), "Bonn, 2, None"),
        ("forecast", json!({ "city": "Bonn", "days": 2, "extras": null }), "Bonn, 2, None"),
        ("convert-degrees", json!({ "type": "kelvin", "reading": 3 }), "3 K"),
        ("convert-degrees", json!({ "reading": null }), "null °C"),
        ("call_id", json!({}), "the call"),
    ] {
        assert_eq!(answer(tool, &arguments).await, Ok(expected.to_owned()), "{arguments}");
    }
}

#[tokio::test]
async fn a_wrong_argument_is_named_with_what_was_found_and_expected() {
    for (tool, arguments, expected) in [
        (
            "forecast",
            json!({ "city": "Bonn", "days": "x" }),
            r#"argument `days`: invalid type: string "x", expected u32"#,
        ),
        (
            "forecast",
            json!({ "city": "Bonn", "days": -1 }),
            "argument `days`: invalid value: integer `-1`, expected u32",
        ),
        (
            "forecast",
            json!({ "city": null, "days": 1 }),
            "argument `city`: invalid type: null, expected a string",
        ),
        ("forecast", json!({ "days": 1 }), "argument `city` is missing"),
        (
            "forecast",
            json!({ "city": "Bonn", "days": 1, "foo": 1 }),
            "unknown argument `foo`; this tool takes city, days, extras",
        ),
        (
            "forecast",
            json!({ "town": "Bonn", "days": true }),
            "unknown argument `town`; this tool takes city, days, extras\n\
             argument `city` is missing\n\
             argument `days`: invalid type: boolean `true`, expected u32",
        ),
        (
            "convert-degrees",
            json!({ "type": "rankine", "reading": 1 }),
            "argument `type`: unknown variant `rankine`, expected `celsius` or `kelvin`",
        ),
        ("call_id", json!({ "foo": 1 }), "unknown argument `foo`; this tool takes no arguments"),
    ] {
        assert_eq!(answer(tool, &arguments).await, Err(expected.to_owned()), "{arguments}");
    }
}

#[tokio::test]
async fn the_error_of_the_function_is_the_error_of_the_call() {
    let answer = answer("forecast", &json!({ "city": "Atlantis", "days": 1 })).await;
    assert_eq!(answer, Err("no such city".to_owned()));
}

/// Calls one tool, and says what it was told.
struct CallOnce {
    call: ToolCall,
    told: mpsc::Sender<ToolResult>,
}

#[async_trait]
impl Model for CallOnce {
    async fn call(
        &self,
        request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let Some(Message::Tool(result)) = request.messages.last() else {
            return Ok(ModelResponse::calls([self.call.clone()]));
        };
        self.told.send(result.clone()).expect("the test waits for it");
        Ok(ModelResponse::text("done"))
    }
}

/// What a model gets to read that makes this call: an answer, or an error.
async fn answer(tool: &str, arguments: &Value) -> Result<String, String> {
    let (told, result) = mpsc::channel();
    let call = ToolCall::new("the call", tool, arguments.to_string());
    let agent = Agent::builder("tester")
        .model(CallOnce { call, told })
        .tool(forecast)
        .tool(convert)
        .tool(call_id)
        .build()
        .expect("a valid agent");
    agent.startup().await.expect("nothing to fail at");
    agent.run("go").await.expect("the error of a tool is not that of a turn");
    agent.shutdown().await;

    let result = result.try_recv().expect("the model was told");
    match result.status {
        ToolStatus::Ok => Ok(result.content.into_text()),
        ToolStatus::Error => Err(result.content.into_text()),
        other => panic!("neither an answer nor an error: {other:?}"),
    }
}

//! Structured outputs: models, schemas, and what becomes of an answer of another form.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tenure_core::ErrorKind;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::model::ModelResponse;
use tenure_flow::output::{FieldSpec, FieldType, ModelSpec, Outputs, OutputsSpec, check};
use tenure_flow::{ChatStatus, Flow};
use tenure_models::Scripted;

fn field(name: &str, ty: FieldType) -> FieldSpec {
    FieldSpec::new(name, ty)
}

fn with(mut field: FieldSpec, change: impl FnOnce(&mut FieldSpec)) -> FieldSpec {
    change(&mut field);
    field
}

fn list(ty: FieldType) -> FieldType {
    FieldType::List(Box::new(ty))
}

fn named(name: &str) -> FieldType {
    FieldType::Model(name.to_owned())
}

/// A plan of steps, each of which may have steps of its own.
fn models() -> Vec<ModelSpec> {
    let kinds = vec![json!("buy"), json!("sell")];
    let mut step = ModelSpec::new(
        "Step",
        vec![
            field("title", FieldType::Str),
            field("kind", FieldType::Literal(kinds)),
            with(field("parts", list(named("Step"))), |it| it.default = Some(json!([]))),
            field("cost", FieldType::Union(vec![FieldType::Float, FieldType::Null])),
        ],
    );
    step.description = Some("One step".to_owned());
    let mut plan = ModelSpec::new(
        "Plan",
        vec![
            with(field("name", FieldType::Str), |it| it.description = Some("Its name".to_owned())),
            field("steps", list(named("Step"))),
            field("days", FieldType::Int),
            field("sure", FieldType::Bool),
            with(field("size", FieldType::Str), |it| {
                it.allowed_values = vec![json!("small"), json!("big")];
            }),
            field("extra", FieldType::Dict),
        ],
    );
    plan.required = Some(vec!["name".to_owned(), "steps".to_owned()]);
    vec![plan, step]
}

fn outputs() -> Arc<Outputs> {
    let registry = BTreeMap::from([
        ("planner".to_owned(), Some("Plan".to_owned())),
        ("talker".to_owned(), None),
    ]);
    Arc::new(Outputs::new(OutputsSpec::new(models(), registry)).expect("they are good"))
}

fn step(title: &str) -> Value {
    json!({ "title": title, "kind": "buy", "cost": null })
}

#[test]
fn a_model_becomes_a_schema_with_what_it_is_made_of() {
    let outputs = outputs();
    assert!(outputs.get("talker").is_none() && outputs.get("nobody").is_none());
    let planner = outputs.get("planner").expect("it has a model");
    assert_eq!(planner.model(), "Plan");
    assert_eq!(
        **planner.schema(),
        json!({
            "title": "Plan",
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Its name" },
                "steps": { "type": "array", "items": { "$ref": "#/$defs/Step" } },
                "days": { "type": "integer" },
                "sure": { "type": "boolean" },
                "size": { "type": "string", "enum": ["small", "big"] },
                "extra": { "type": "object", "additionalProperties": true },
            },
            "required": ["name", "steps"],
            "additionalProperties": false,
            "$defs": {
                "Step": {
                    "title": "Step",
                    "description": "One step",
                    "type": "object",
                    "properties": {
                        "title": { "type": "string" },
                        "kind": { "type": "string", "enum": ["buy", "sell"] },
                        "parts": { "type": "array", "items": { "$ref": "#/$defs/Step" },
                                   "default": [] },
                        "cost": { "anyOf": [{ "type": "number" }, { "type": "null" }] },
                    },
                    "required": ["title", "kind", "cost"],
                    "additionalProperties": false,
                },
            },
        })
    );
}

#[test]
fn an_answer_is_read_with_its_defaults_and_what_is_wrong_is_said_at_its_place() {
    let outputs = outputs();
    let planner = outputs.get("planner").unwrap();
    let read = |value: Value| planner.read(&value.to_string());
    let mut nested = step("outer");
    nested["parts"] = json!([step("inner")]);
    let answer = read(json!({ "name": "p", "steps": [nested], "days": 3.0, "size": "big" }));
    let answer = answer.expect("it is good");
    assert_eq!(answer["steps"][0]["parts"][0]["parts"], json!([]));
    assert!(planner.read("```json\n{\"name\": \"p\", \"steps\": []}\n```").is_ok());
    assert!(
        read(json!({ "name": "p", "steps": [], "days": null })).is_ok(),
        "days may be left out"
    );
    for (value, said) in [
        (json!([]), "the answer must be an object (Plan), but is []"),
        (json!({ "steps": [] }), "`name` is missing; it must be a text"),
        (json!({ "name": 3, "steps": [] }), "`name` must be a text, but is 3"),
        (json!({ "name": "p", "steps": {} }), "`steps` must be a list, but is {}"),
        (json!({ "name": "p", "steps": [], "days": 1.5 }), "`days` must be a whole number"),
        (json!({ "name": "p", "steps": [], "sure": "yes" }), "`sure` must be true or false"),
        (
            json!({ "name": "p", "steps": [], "size": "huge" }),
            "`size` must be \"small\" or \"big\"",
        ),
        (json!({ "name": "p", "steps": [], "extra": [] }), "`extra` must be an object, but is []"),
        (
            json!({ "name": "p", "steps": [], "color": 1 }),
            "`color` is unknown; the fields of Plan are `name`, `steps`",
        ),
        (
            json!({ "name": "p", "steps": [{ "title": "t", "kind": "rent", "cost": "1" }] }),
            "`steps[0].kind` must be \"buy\" or \"sell\", but is \"rent\"; `steps[0].cost` must be \
             a number or null, but is \"1\"",
        ),
    ] {
        let error = read(value).expect_err(said);
        assert!(error.contains(said), "{error}");
    }
    assert!(planner.read("no").unwrap_err().starts_with("it is no JSON: "));
}

#[test]
fn what_is_wrong_with_models_is_said_at_once() {
    let broken = ModelSpec::new(
        "Broken",
        vec![
            field("a", named("Stepp")),
            field("b", FieldType::Union(Vec::new())),
            field("b", FieldType::Literal(Vec::new())),
            with(field("c", FieldType::Int), |it| it.default = Some(json!("x"))),
            with(field("d", FieldType::Str), |it| it.allowed_values = vec![json!(1)]),
        ],
    );
    let mut all = models();
    all.extend([broken, ModelSpec::new("list", vec![field("x", FieldType::Str)])]);
    let mut none = ModelSpec::new("Nothing", Vec::new());
    none.required = Some(vec!["x".to_owned()]);
    all.push(none);
    let registry = BTreeMap::from([("planner".to_owned(), Some("Plann".to_owned()))]);
    let found = check(&OutputsSpec::new(all, registry));
    let said: Vec<_> = found.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "a model cannot be called `list`, which is a type",
            "`Broken.a` is of the type `Stepp`, which there is not",
            "`Broken.b` is a union without variants",
            "the field `Broken.b` is there twice",
            "`Broken.b` is a literal without values",
            "the default of `Broken.c` is \"x\", which is not of its type",
            "`Broken.d` allows 1, which is not of its type",
            "the model `Nothing` has no fields",
            "`x` is required of `Nothing`, but is no field of it",
            "agent `planner` answers with `Plann`, which is no model",
        ]
    );
    assert_eq!(found[1].help, "did you mean `Step`?");
    assert_eq!(found[9].help, "did you mean `Plan`?");
}

#[test]
fn a_model_whose_answers_would_never_end_is_refused() {
    let spec = |ty| {
        OutputsSpec::new(vec![ModelSpec::new("Node", vec![field("next", ty)])], BTreeMap::new())
    };
    let found = check(&spec(named("Node")));
    assert_eq!(found[0].message, "an answer of the model `Node` would never end: it needs itself");
    assert!(check(&spec(list(named("Node")))).is_empty());
    assert!(check(&spec(FieldType::Union(vec![named("Node"), FieldType::Null]))).is_empty());
}

/// What a model was told last in each call, and whether it got a schema.
type Seen = Arc<Mutex<Vec<(String, bool)>>>;

/// An agent that gives these answers, and what its model saw.
fn planner(answers: &[&str]) -> (Blueprint, Seen) {
    let seen = Seen::default();
    let answers: Vec<String> = answers.iter().map(|it| (*it).to_owned()).collect();
    let model = Scripted::from_fn({
        let seen = seen.clone();
        move |request, call| {
            let last = request.messages.last().map(|it| it.text().to_owned()).unwrap_or_default();
            seen.lock().expect("it is whole").push((last, request.params.output_schema.is_some()));
            Ok(ModelResponse::text(answers[call].clone()))
        }
    });
    (Agent::builder("planner").model(model).blueprint().expect("it can be built"), seen)
}

fn flow(agent: Blueprint) -> Flow {
    Flow::builder("plans")
        .agent(agent)
        .max_turns(1)
        .outputs(outputs())
        .build()
        .expect("it can be built")
}

#[tokio::test]
async fn a_good_answer_is_kept_by_agent_and_the_model_got_the_schema() {
    let (agent, seen) = planner(&["{\"name\": \"p\", \"steps\": []}"]);
    let report = flow(agent).run("plan it").await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    assert_eq!(
        report.variables["structured_outputs"],
        json!({ "planner": { "name": "p", "steps": [] } })
    );
    assert_eq!(*seen.lock().unwrap(), [("plan it".to_owned(), true)]);
}

#[tokio::test]
async fn a_bad_answer_is_shown_to_the_model_and_corrected() {
    let (agent, seen) =
        planner(&["a plan", "{\"name\": 1, \"steps\": []}", "{\"name\": \"p\", \"steps\": []}"]);
    let report = flow(agent).run("plan it").await;
    assert_eq!(report.turns, 1);
    assert_eq!(
        report.messages.last().map(|it| &*it.text),
        Some("{\"name\": \"p\", \"steps\": []}")
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert!(seen[1].0.starts_with("Your answer could not be read: it is no JSON"), "{seen:?}");
    assert!(seen[2].0.contains("`name` must be a text, but is 1"), "{seen:?}");
}

#[tokio::test]
async fn a_model_that_never_gets_it_right_fails_the_turn_after_two_corrections() {
    let (agent, seen) = planner(&["no", "no", "no", "never asked"]);
    let report = flow(agent).run("plan it").await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert_eq!(seen.lock().unwrap().len(), 3);
    let error = report.error.expect("it failed");
    assert_eq!(error.kind(), ErrorKind::Output);
    let said = error.to_string();
    assert!(said.contains("agent `planner`: the model's answer has another form"), "{said}");
    assert!(!report.variables.contains_key("structured_outputs"));
}

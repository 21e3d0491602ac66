//! The options of `adapt`.

use crate::judge::support::*;
use serde_json::{Value, json};
use tenure_core::agent::Agent;
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Passthrough, Scripted, Slow};
use tenure_testkit::Recorder;

fn bench() -> Bench {
    Bench::new()
        .with_model("best", Slow::of(Scripted::from_fn(|_, _| Ok(reply("best")))))
        .with_model("fast", Scripted::from_fn(|_, _| Ok(reply("fast"))))
        .own("best")
}

fn reply(text: &str) -> tenure_core::model::ModelResponse {
    tenure_core::model::ModelResponse::text(text)
}

fn with(change: Value) -> Value {
    let mut with = json!({ "goals": { "latency_p95": "2s" }, "models": ["best", "fast"] });
    for (key, value) in change.as_object().expect("it works here") {
        with[key] = value.clone();
    }
    with
}

#[test]
fn bad_options_are_refused_with_their_field() {
    for (change, field) in [
        (json!({ "goals": {} }), "goals"),
        (json!({ "goals": { "latency": "2s" } }), "goals.latency"),
        (json!({ "goals": { "latency_p95": "2" } }), "goals.latency_p95"),
        (json!({ "goals": { "error_rate": 1.0 } }), "goals.error_rate"),
        (json!({ "goals": { "cost_per_turn": 0 } }), "goals.cost_per_turn"),
        (json!({ "models": [] }), ""),
        (json!({ "models": ["best", "nobody"] }), "models[1]"),
        (json!({ "models": ["best", "best"] }), "models[1]"),
        (json!({ "concurrency": { "min": 0, "max": 4 } }), "concurrency"),
        (json!({ "concurrency": { "min": 5, "max": 4 } }), "concurrency"),
        (json!({ "retries": { "min": 0, "max": 11 } }), "retries"),
        (json!({ "retries": 3 }), "retries"),
        (json!({ "window": 0 }), "window"),
        (json!({ "min_samples": 30 }), "min_samples"),
        (json!({ "latency_of": "hooks" }), "latency_of"),
    ] {
        let refused = ready::find("adapt").unwrap().make(&with(change.clone()), &bench());
        let refusal = refused.unwrap_err();
        assert_eq!(refusal.field(), field, "{change}: {refusal}");
    }
}

#[test]
fn an_own_model_that_is_not_the_first_choice_is_warned_of() {
    let warned = |models: Value| {
        let bench = bench();
        let made = ready::find("adapt").unwrap().make(&with(json!({ "models": models })), &bench);
        assert!(made.is_ok());
        bench.warnings()
    };
    assert!(warned(json!(["best", "fast"])).is_empty());
    let warnings = warned(json!(["fast", "best"]));
    assert!(warnings[0].starts_with("models[0]: the first choice is `fast`"), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn options_make_a_hook_that_adapts_unless_it_is_frozen() {
    let last = async |frozen: bool| {
        let with = with(json!({ "min_samples": 1, "frozen": frozen }));
        let hook = ready::find("adapt").unwrap().make(&with, &bench()).unwrap();
        let blueprint =
            Agent::builder("a").model(Passthrough::new()).with_lifecycle(hook).blueprint().unwrap();
        let mut said = Vec::new();
        for _ in 0..2 {
            let agent = blueprint.instance();
            let report = agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
            said.push(report.output().to_owned());
        }
        said
    };
    assert_eq!(last(false).await, ["best", "fast"]);
    assert_eq!(last(true).await, ["best", "best"]);
}

#[tokio::test]
async fn its_events_carry_what_was_measured() {
    let (bus, recorder) = Recorder::with_bus();
    let with =
        with(json!({ "goals": { "latency_p50": "1ms" }, "models": ["best"], "min_samples": 1 }));
    let bench = Bench::new().with_model(
        "best",
        Slow::of(Scripted::new(["fine"])).by(std::time::Duration::from_millis(5)),
    );
    let hook = ready::find("adapt").unwrap().make(&with, &bench).unwrap();
    let agent = Agent::builder("a").model(Passthrough::new()).events(&bus).with_lifecycle(hook);
    ask(agent, "hello").await.unwrap();
    let considered = recorder.announced("adaptation.considered");
    assert_eq!(considered[0]["goal"], "latency_p50");
    assert!(considered[0]["measured"].as_f64().unwrap() >= 0.005, "{considered:?}");
}

//! The options of `critic`.

use crate::judge::support::*;
use serde_json::{Value, json};
use tenure_core::agent::Agent;
use tenure_hooks::ready::{self, Bench, Refusal};
use tenure_models::Scripted;
use tenure_testkit::Recorder;

fn bench() -> Bench {
    Bench::new()
        .with_model("creator", Scripted::new(["fine"]))
        .with_model("judge", Scripted::new([APPROVE]))
        .own("creator")
}

fn refused(with: Value) -> Refusal {
    ready::find("critic").expect("it works here").make(&with, &bench()).expect_err("it is refused")
}

#[test]
fn bad_options_are_refused_with_their_field() {
    let critic = |name: &str| json!({ "name": name, "model": "judge" });
    for (with, field) in [
        (json!({}), "model"),
        (json!({ "model": "nobody" }), "model"),
        (json!({ "model": "judge", "instruction": " " }), "instruction"),
        (json!({ "model": "judge", "judge": "some" }), "judge"),
        (json!({ "model": "judge", "rounds": 11 }), "rounds"),
        (json!({ "model": "judge", "rounds": -1 }), "rounds"),
        (json!({ "model": "judge", "quorum": 2 }), "quorum"),
        (json!({ "model": "judge", "quorum": 0 }), "quorum"),
        (json!({ "model": "judge", "timeout": "40" }), "timeout"),
        (json!({ "model": "judge", "consensus": "weighted", "threshold": 1.0 }), "threshold"),
        (json!({ "model": "judge", "critics": [critic("a")] }), "model"),
        (json!({ "critics": [critic("a"), critic("a")] }), "critics[1].name"),
        (json!({ "critics": [critic("")] }), "critics[0].name"),
        (json!({ "critics": [{ "name": "a", "model": "nobody" }] }), "critics[0].model"),
        (
            json!({
                "consensus": "weighted",
                "critics": [{ "name": "a", "model": "judge", "weight": 0 }],
            }),
            "critics[0].weight",
        ),
        // What would have no effect.
        (
            json!({ "critics": [{ "name": "a", "model": "judge", "weight": 2 }] }),
            "critics[0].weight",
        ),
        (json!({ "model": "judge", "threshold": 0.9 }), "threshold"),
        (json!({ "model": "judge", "consensus": "unanimous", "threshold": 0.5 }), "threshold"),
        (json!({ "model": "judge", "context": "shared", "user_messages": 3 }), "user_messages"),
    ] {
        let refusal = refused(with.clone());
        assert_eq!(refusal.field(), field, "{with}: {refusal}");
        assert!(!refusal.message().is_empty());
    }
}

#[test]
fn a_critic_with_the_creators_model_and_context_is_warned_of() {
    let warned = |with: Value| {
        let bench = bench();
        assert!(ready::find("critic").unwrap().make(&with, &bench).is_ok());
        bench.warnings()
    };
    let panel = |model: &str, context: &str| {
        let critics = json!([{ "name": "a", "model": model }]);
        warned(json!({ "critics": critics, "context": context }))
    };
    let both = panel("creator", "shared");
    assert_eq!(both.len(), 1);
    assert!(both[0].starts_with("critics[0]: the critic has the model of the agent"), "{both:?}");
    assert!(panel("creator", "own").is_empty());
    assert!(panel("judge", "shared").is_empty());
    assert_eq!(warned(json!({ "model": "creator", "context": "shared" })).len(), 1);
}

#[tokio::test]
async fn options_make_a_critic_that_judges() {
    let with = json!({
        "critics": [{ "name": "a", "model": "judge", "instruction": "Be kind.", "weight": 2 }],
        "consensus": "weighted",
        "judge": "all",
        "on_rejected": "best",
        "user_messages": 3,
    });
    let (bus, recorder) = Recorder::with_bus();
    let hook = ready::find("critic").unwrap().make(&with, &bench()).unwrap();
    let agent =
        Agent::builder("a").model(Scripted::new(["fine"])).events(&bus).with_lifecycle(hook);
    assert_eq!(ask(agent, "hello").await.unwrap().output(), "fine");
    assert_eq!(recorder.announced("critic.voted").len(), 1);
}

#[test]
fn the_schema_shows_the_defaults() {
    let schema = ready::find("critic").unwrap().schema();
    let properties = &schema["properties"];
    assert_eq!(properties["rounds"]["default"], 2);
    assert_eq!(properties["on_failure"]["default"], "deny");
    assert_eq!(properties["timeout"]["default"], "40s");
    assert_eq!(properties["model"]["format"], "model", "{properties}");
}

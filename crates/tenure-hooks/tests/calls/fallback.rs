//! Other models that answer when one fails, and answers that were withheld.

use crate::calls::support::*;
use serde_json::json;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::{self, HookError, Policy};
use tenure_core::model::ModelErrorKind::{self, *};
use tenure_core::model::{ModelError, ModelParams};
use tenure_core::step::MemoryStepLog;
use tenure_core::{Error, Outcome};
use tenure_hooks::calls::{Fallback, Refusal, Retry};
use tenure_hooks::ready::{self, Bench};
use tenure_models::Passthrough;
use tenure_testkit::Recorder;

fn reliable(model: &Play, fallback: Fallback) -> AgentBuilder {
    Agent::builder("reliable").model(model.clone()).with_lifecycle(fallback)
}

async fn run(builder: AgentBuilder) -> Result<String, Error> {
    let agent = builder.build().expect("it works here");
    let result = agent.scoped(async |agent| agent.run("hello").await).await;
    result.map(|report| report.output().to_owned())
}

async fn streamed(builder: AgentBuilder) -> (Vec<String>, Result<String, Error>) {
    let agent = builder.build().expect("it works here");
    agent.startup().await.expect("it works here");
    let mut stream = agent.request("hello").stream();
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        pieces.push(piece);
    }
    let result = stream.finish().await.map(|report| report.output().to_owned());
    agent.shutdown().await;
    (pieces, result)
}

fn kind_of(error: &Error) -> Option<ModelErrorKind> {
    error.model_error().map(ModelError::kind)
}

#[tokio::test]
async fn the_first_model_that_answers_answers_and_is_named() {
    let own = Play::named("own", [fails(Auth)]);
    let second = Play::named("second", [fails(Overloaded)]);
    let third = Play::named("third", [says(&["yes"])]);
    let (bus, recorder) = Recorder::with_bus();
    let fallback = Fallback::to(second.clone()).then(third.clone()).then(Play::new([]));
    assert_eq!(run(reliable(&own, fallback).events(&bus)).await.unwrap(), "yes");
    assert_eq!((own.calls(), second.calls(), third.calls()), (1, 1, 1));
    let switches = recorder.announced("fallback");
    assert_eq!(
        switches,
        [
            json!({ "from": "own", "to": "second", "kind": "auth", "error": "Auth" }),
            json!({ "from": "second", "to": "third", "kind": "overloaded", "error": "Overloaded" }),
        ]
    );
    assert_eq!(recorder.announced("fallback.answered"), [json!({ "model": "third" })]);
}

#[tokio::test]
async fn a_model_that_answers_is_left_alone() {
    let (bus, recorder) = Recorder::with_bus();
    let own = Play::new([says(&["yes"])]);
    let agent = reliable(&own, Fallback::to(Play::new([]))).events(&bus);
    assert_eq!(run(agent).await.unwrap(), "yes");
    assert!(recorder.announced("fallback.answered").is_empty());
}

#[tokio::test]
async fn if_all_fail_the_last_error_goes_on_outward() {
    let own = Play::new([fails(Auth)]);
    let error = run(reliable(&own, Fallback::to(Play::new([fails(Timeout)])))).await.unwrap_err();
    assert_eq!(kind_of(&error), Some(Timeout));
    assert!(error.report().unwrap().failures.is_empty(), "it is not the hook's failure");
}

#[tokio::test]
async fn what_no_model_would_accept_and_what_is_no_failure_of_a_model_stays() {
    let never = || Fallback::to(Play::new([]));
    let error = run(reliable(&Play::new([fails(BadRequest)]), never())).await.unwrap_err();
    assert_eq!(kind_of(&error), Some(BadRequest));

    let only = never().on([Auth]);
    let error = run(reliable(&Play::new([fails(Overloaded)]), only)).await.unwrap_err();
    assert_eq!(kind_of(&error), Some(Overloaded));

    let guard = hook::wrap_model_call(|_, _, _| Box::pin(async { Err(HookError::new("broken")) }));
    let guard = hook::hook(guard).named("guard").policy(Policy::Deny).inside("fallback");
    let error = run(reliable(&Play::new([]), never()).with_lifecycle(guard)).await.unwrap_err();
    assert!(error.is_denied(), "{error}");
}

#[tokio::test]
async fn the_name_of_a_model_of_the_first_one_is_not_sent_to_another() {
    let mut params = ModelParams::default();
    params.model = Some("large".into());
    let own = Play::new([fails(Overloaded)]);
    let other = Play::new([says(&["yes"])]);
    run(reliable(&own, Fallback::to(other.clone())).params(params)).await.unwrap();
    assert_eq!(own.asked()[0].params_model.as_deref(), Some("large"));
    assert_eq!(other.asked()[0].params_model, None);
}

#[tokio::test(start_paused = true)]
async fn each_model_is_retried_by_itself() {
    let own = Play::new([fails(Overloaded), fails(Overloaded)]);
    let other = Play::new([fails(Overloaded), says(&["yes"])]);
    // Whatever the order in which they are registered.
    let agent = Agent::builder("a").model(own.clone()).with_lifecycle(Retry::new().attempts(2));
    let agent = agent.with_lifecycle(Fallback::to(other.clone()));
    assert_eq!(run(agent).await.unwrap(), "yes");
    assert_eq!((own.calls(), other.calls()), (2, 2));
}

#[tokio::test]
async fn a_stream_falls_back_before_its_first_word_and_never_after_it() {
    let own = Play::new([fails(Overloaded)]);
    let other = Play::new([says(&["one ", "two"])]);
    let (pieces, result) = streamed(reliable(&own, Fallback::to(other))).await;
    assert_eq!(
        (pieces, result.unwrap()),
        (vec!["one ".into(), "two".into()], "one two".to_owned())
    );

    let own = Play::new([breaks(&["half "], ModelError::new(Truncated, "cut"))]);
    let (pieces, result) = streamed(reliable(&own, Fallback::to(Play::new([])))).await;
    assert_eq!((pieces, kind_of(&result.unwrap_err())), (vec!["half ".into()], Some(Truncated)));
}

#[tokio::test]
async fn a_resumed_run_is_served_what_the_other_model_said_and_announces_nothing_again() {
    let log = MemoryStepLog::new();
    let own = Play::named("own", [fails(Overloaded), says(&["done"])]);
    let other = Play::named("other", [calls(&["none"])]);
    let agent = reliable(&own, Fallback::to(other)).build().unwrap();
    agent.startup().await.unwrap();
    agent.request("hello").recorded(&steps(&log)).run().await.unwrap();
    agent.shutdown().await;

    let last = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
    let (own, other) = (Play::named("own", [says(&["done"])]), Play::named("other", []));
    let (bus, recorder) = Recorder::with_bus();
    let agent = reliable(&own, Fallback::to(other.clone())).events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    let report = agent.request("hello").recorded(&steps(&log.cut_after(last))).run().await.unwrap();
    agent.shutdown().await;
    assert_eq!((report.output(), own.calls(), other.calls()), ("done", 1, 0));
    assert!(recorder.announced("fallback").is_empty());
    assert!(recorder.announced("fallback.answered").is_empty());
}

#[tokio::test]
async fn a_withheld_answer_is_an_error_that_a_fallback_deals_with() {
    let agent = |own: &Play| Agent::builder("a").model(own.clone()).with_lifecycle(Refusal::new());
    let error = run(agent(&Play::new([withheld(&[])]))).await.unwrap_err();
    assert_eq!(kind_of(&error), Some(Other));
    assert!(error.to_string().contains("`play` withheld"), "{error}");

    let own = Play::new([withheld(&[])]);
    let both = agent(&own).with_lifecycle(Fallback::to(Play::new([says(&["gladly"])])));
    let both = both.with_lifecycle(Retry::new());
    assert_eq!((run(both).await.unwrap().as_str(), own.calls()), ("gladly", 1));
}

#[tokio::test]
async fn a_withheld_answer_becomes_an_answer_of_ones_own() {
    let agent = |own: Play| {
        let refusal = Refusal::new().answer("{{ model }} will not say.");
        Agent::builder("a").model(own).with_lifecycle(refusal)
    };
    assert_eq!(run(agent(Play::new([withheld(&["I "])]))).await.unwrap(), "play will not say.");
    assert_eq!(run(agent(Play::new([says(&["I will"])]))).await.unwrap(), "I will");

    let (pieces, result) = streamed(agent(Play::new([withheld(&[])]))).await;
    assert_eq!(
        (pieces.concat(), result.unwrap()),
        ("play will not say.".into(), "play will not say.".into())
    );
    // What was read stays.
    let (pieces, result) = streamed(agent(Play::new([withheld(&["I ", "am"])]))).await;
    let whole = "I am\n\nplay will not say.";
    assert_eq!((pieces.concat().as_str(), result.unwrap().as_str()), (whole, whole));
    assert_eq!(pieces[..2], ["I ", "am"]);
    // And what is not withheld is not held back.
    let (pieces, _) = streamed(agent(Play::new([says(&["a ", "b ", "c"])]))).await;
    assert_eq!(pieces, ["a ", "b ", "c"]);
}

#[tokio::test]
async fn a_text_that_cannot_be_filled_fails_the_turn() {
    let refusal = Refusal::new().answer("{{ nobody }}");
    let agent = Agent::builder("a").model(Play::new([withheld(&[])])).with_lifecycle(refusal);
    let error = run(agent).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert!(error.to_string().contains("undefined"), "{error}");
}

#[test]
fn options_are_checked() {
    let bench = Bench::new().with_model("other", Passthrough::new()).own("passthrough");
    let make = |with| ready::find("fallback").unwrap().make(&with, &bench);
    assert!(make(json!({ "models": ["other"], "on": ["auth"] })).is_ok());
    for (bad, field) in [
        (json!({}), "models"),
        (json!({ "models": ["nobody"] }), "models[0]"),
        (json!({ "models": ["other", "other"] }), "models[1]"),
        (json!({ "models": ["other"], "on": [] }), "on"),
    ] {
        assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{bad}");
    }
    assert!(bench.warnings().is_empty());
    assert!(make(json!({ "models": ["passthrough"] })).is_ok());
    assert!(bench.warnings()[0].contains("own model"), "{:?}", bench.warnings());

    let make = |with| ready::find("refusal").unwrap().make(&with, &bench);
    assert!(make(json!({})).is_ok());
    assert_eq!(make(json!({ "answer": "{{ who }}" })).unwrap_err().field(), "answer");
    let schema = ready::find("fallback").unwrap().schema();
    assert_eq!(schema["properties"]["models"]["items"]["format"], "model");
}

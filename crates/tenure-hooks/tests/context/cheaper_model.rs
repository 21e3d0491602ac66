//! Another model where the agent's own is more than it takes.

use crate::context::stage::five_steps;
use crate::support::{hearing, made, refused};
use serde_json::{Value, json};
use tenure_core::agent::Agent;
use tenure_core::hook::{self, Flow, Registration};
use tenure_core::model::{Cost, Model, ModelResponse, Usage};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::context::{CheaperModel, ModelRule};
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Passthrough, Scripted};
use tenure_testkit::{RecordedModel, Recorder};

/// A hook that may choose the model `small`, and what that hears.
fn hook_with(with: Value) -> (Registration, RecordedModel) {
    let heard = hearing(|_| ModelResponse::text("small"));
    let bench = Bench::new().with_model("small", heard.clone());
    (
        ready::find("cheaper_model")
            .expect("it works here")
            .make(&with, &bench)
            .expect("it works here"),
        heard,
    )
}

async fn answers(with: Value, input: &str) -> String {
    let (hook, _) = hook_with(with);
    let own = Scripted::from_fn(|_, _| Ok(ModelResponse::text("own")));
    let agent = Agent::builder("a").model(own).instruction("Be kind.").with_lifecycle(hook);
    let agent = agent.build().expect("it works here");
    let report = agent.scoped(async |agent| agent.run(input).await).await.expect("it works here");
    report.output().to_owned()
}

#[tokio::test]
async fn small_requests_go_to_a_small_model() {
    let long = "word ".repeat(100);
    for rule in ["below_chars", "below_tokens"] {
        let with = json!({ "rules": [{ "model": "small", rule: 60 }] });
        assert_eq!(answers(with.clone(), "hi").await, "small", "{rule}");
        assert_eq!(answers(with, &long).await, "own", "{rule}");
    }
    // The eight characters of the instruction count.
    let with = json!({ "rules": [{ "model": "small", "below_chars": 10 }] });
    assert_eq!(answers(with.clone(), "x").await, "small");
    assert_eq!(answers(with, "xx").await, "own");
}

#[tokio::test]
async fn a_rule_holds_only_if_all_of_it_does_and_the_first_counts() {
    let with =
        |when: &str| json!({ "rules": [{ "model": "small", "below_chars": 100, "when": when }] });
    assert_eq!(answers(with("'quick' in input"), "a quick one").await, "small");
    assert_eq!(answers(with("'quick' in input"), "a slow one").await, "own");
    assert_eq!(answers(with("'quick' in input"), &"quick ".repeat(50)).await, "own");
    let with = json!({ "rules": [
        { "model": "passthrough", "when": "step == 1" },
        { "model": "small", "below_chars": 100 },
    ] });
    assert_eq!(answers(with, "hello").await, "hello");
}

#[tokio::test]
async fn a_condition_that_cannot_be_decided_fails_the_turn() {
    let (hook, _) = hook_with(json!({ "rules": [{ "model": "small", "when": "state.x > 1" }] }));
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(hook).build().unwrap();
    let error = agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
    assert!(error.to_string().contains("`state.x > 1` cannot be decided"), "{error}");
}

#[tokio::test]
async fn later_steps_go_to_another_model_and_each_choice_is_announced() {
    let (bus, recorder) = Recorder::with_bus();
    let (hook, heard) = hook_with(json!({ "rules": [{ "model": "small", "after_steps": 3 }] }));
    let (agent, own) = five_steps();
    let agent = agent.events(&bus).with_lifecycle(hook).build().unwrap();
    let report = agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    assert_eq!(report.output(), "small");
    assert_eq!((own.requests().len(), heard.requests().len()), (3, 1));
    assert_eq!(recorder.count("model.chosen"), 1);
}

#[tokio::test]
async fn once_a_share_of_the_budget_is_spent_another_model_answers() {
    let with = json!({ "budget": 1.0, "rules": [{ "model": "small", "spent": 0.5 }] });
    let (hook, heard) = hook_with(with);
    let own = hearing(|_| {
        let cost = Cost::from_nano_usd(200_000_000);
        let call = tenure_core::message::ToolCall::new("", "tick", "{}");
        ModelResponse::calls([call]).with_usage(Usage { cost, ..Usage::new(1, 1) })
    });
    let agent = Agent::builder("a").model(own.clone()).tool(crate::context::stage::tool("tick"));
    let agent = agent.with_lifecycle(hook).build().unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    // Three calls are 60 cents of a dollar.
    assert_eq!((own.requests().len(), heard.requests().len()), (3, 1));
}

#[tokio::test]
async fn what_another_hook_has_chosen_stays() {
    let chosen: std::sync::Arc<dyn Model> =
        std::sync::Arc::new(Scripted::from_fn(|_, _| Ok(ModelResponse::text("theirs"))));
    let chooses = hook::before_model(move |_, request| {
        request.use_model(chosen.clone());
        Box::pin(async { Ok(Flow::Continue) })
    });
    let cheaper = CheaperModel::new().rule(ModelRule::new(Passthrough::new()).below_chars(99));
    let agent = Agent::builder("a")
        .model(Passthrough::new())
        .with_lifecycle(hook::hook(chooses).named("chooses"))
        .with_lifecycle(cheaper)
        .build()
        .unwrap();
    let report = agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    assert_eq!(report.output(), "theirs");
}

#[tokio::test]
async fn blanks_are_collapsed_for_the_call_only() {
    let heard = hearing(|_| ModelResponse::text("a  b"));
    let agent = Agent::builder("a")
        .model(heard.clone())
        .with_lifecycle(made("cheaper_model", json!({ "collapse": true })).unwrap())
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.run("one   two\n\n\n\nthree").await.unwrap();
    let report = agent.run("fine").await.unwrap();
    agent.shutdown().await;
    let heard = heard.requests();
    let said: Vec<_> = heard[1].messages.iter().map(|it| it.text().to_owned()).collect();
    assert_eq!(said, ["one two\n\nthree", "a  b", "fine"]);
    assert_eq!(report.history().get(0).unwrap().text(), "one   two\n\n\n\nthree");
}

#[tokio::test]
async fn a_run_that_goes_on_uses_the_models_that_were_chosen() {
    // The condition would say something else the second time: an odd or an even moment.
    let with =
        || json!({ "rules": [{ "model": "small", "when": "now.unix % 2 == 0 or step > 2" }] });
    let build = || {
        let (hook, small) = hook_with(with());
        let (agent, own) = five_steps();
        (agent.with_lifecycle(hook).build().unwrap(), own, small)
    };
    let log = MemoryStepLog::new();
    let (agent, ..) = build();
    agent.startup().await.unwrap();
    let report = agent.request("hello").steps(log.clone()).run().await.unwrap();
    let steps = report.steps;
    agent.shutdown().await;
    tokio::time::sleep(std::time::Duration::from_millis(1000)).await;
    let (agent, own, small) = build();
    agent.startup().await.unwrap();
    let report = agent.request("hello").steps(log.resumed()).run().await.unwrap();
    assert_eq!((report.output(), report.steps), ("small", steps));
    assert_eq!((own.requests().len(), small.requests().len()), (0, 0));
    agent.shutdown().await;
}

#[test]
fn options_are_checked() {
    let rule = |rule: Value| json!({ "rules": [rule] });
    assert_eq!(refused("cheaper_model", json!({})), "rules");
    assert_eq!(refused("cheaper_model", rule(json!({ "model": "passthrough" }))), "rules[0]");
    let unknown = rule(json!({ "model": "nobody", "below_chars": 1 }));
    assert_eq!(refused("cheaper_model", unknown), "rules[0].model");
    let when = rule(json!({ "model": "passthrough", "when": "steps > 1" }));
    assert_eq!(refused("cheaper_model", when), "rules[0].when");
    let share = rule(json!({ "model": "passthrough", "spent": 2.0 }));
    assert_eq!(refused("cheaper_model", share), "rules[0].spent");
    let of_what = rule(json!({ "model": "passthrough", "spent": 0.5 }));
    assert_eq!(refused("cheaper_model", of_what), "rules[0].spent");
    assert_eq!(refused("cheaper_model", json!({ "budget": 0.0, "collapse": true })), "budget");
}

//! Which rule counts for a tool, and for which calls an approval does.

use crate::privacy::support::*;
use serde_json::{Value, json};
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::model::ModelResponse;
use tenure_hooks::people::{Approval, ApprovalRule, Remember};
use tenure_hooks::ready::{self, Bench};
use tenure_models::Scripted;

/// The tools that somebody was asked about, of these that were called.
async fn asked_about(
    hook: impl tenure_core::hook::IntoRegistration,
    tools: &[&str],
) -> Vec<String> {
    let (notes, asked) = (Notes::default(), Notes::default());
    let asks = asked.clone();
    let made = calls(tools.iter().map(|tool| (*tool, json!({}))));
    let mut builder = Agent::builder("clerk")
        .model(ByTurn(vec![made, ModelResponse::text("done")]))
        .with_lifecycle(hook)
        .on_ask(move |ask: &PendingAsk| {
            asks.add(ask.tool.as_deref().unwrap_or_default());
            Some(Answer::Reject("no".into()))
        });
    for name in tools {
        builder = builder.tool(tool(name, &notes, "done"));
    }
    let agent = builder.build().expect("it works here");
    agent.scoped(async |agent| agent.run("go").await).await.expect("it works here");
    assert_eq!(asked.all().len() + notes.all().len(), tools.len(), "asked about, or made");
    asked.all()
}

fn by_options(tools: Value) -> tenure_core::hook::Registration {
    let hook = ready::find("approval").expect("there is such a hook");
    hook.make(&json!({ "tools": tools }), &Bench::new()).expect("they are good")
}

#[tokio::test]
async fn where_two_names_fit_equally_well_a_person_is_asked() {
    for tools in
        [json!({ "*_all": true, "del_*": false }), json!({ "*_all": false, "del_*": true })]
    {
        assert_eq!(
            asked_about(by_options(tools.clone()), &["del_all"]).await,
            ["del_all"],
            "{tools}"
        );
    }
    // One that asks always beats one that asks sometimes.
    let never_holds = || ApprovalRule::new().when("false").expect("it is a condition");
    for hook in [
        Approval::new().tool("*_all").tool_with("del_*", never_holds()),
        Approval::new().tool_with("*_all", never_holds()).tool("del_*"),
        Approval::new().tool_with("del_all", never_holds()).tool("del_all").never("del_all"),
    ] {
        assert_eq!(asked_about(hook, &["del_all"]).await, ["del_all"]);
    }
}

#[tokio::test]
async fn a_whole_name_beats_one_with_a_wildcard_and_the_longer_one_the_shorter() {
    let tools = ["pay", "pay_all"];
    for hook in
        [Approval::new().never("pay").tool("pay*"), Approval::new().tool("pay*").never("pay")]
    {
        assert_eq!(asked_about(hook, &tools).await, ["pay_all"]);
    }
    let hook = Approval::new().tool("pay").never("pay*");
    assert_eq!(asked_about(hook, &tools).await, ["pay"]);
    let hook = Approval::new().tool("p*").never("pay_*");
    assert_eq!(asked_about(hook, &tools).await, ["pay"]);
}

#[tokio::test]
async fn an_approval_is_not_remembered_for_another_tool() {
    let (notes, asked) = (Notes::default(), Notes::default());
    let asks = asked.clone();
    let same = json!({ "to": "bob" });
    let model = Scripted::empty()
        .call("pay", same.clone())
        .call("pay", same.clone())
        .call("dismiss", same)
        .text("done");
    let agent = Agent::builder("clerk")
        .model(model)
        .with_lifecycle(Approval::new().tool("*").remember(Remember::ForThread))
        .tool(tool("pay", &notes, "paid"))
        .tool(tool("dismiss", &notes, "dismissed"))
        .on_ask(move |ask: &PendingAsk| {
            asks.add(ask.tool.as_deref().unwrap_or_default());
            Some(Answer::Approve)
        })
        .build()
        .unwrap();
    agent.scoped(async |agent| agent.run("go").await).await.unwrap();
    assert_eq!(asked.all(), ["pay", "dismiss"]);
    assert_eq!(notes.all().len(), 3);
}

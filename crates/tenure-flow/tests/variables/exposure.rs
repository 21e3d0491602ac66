//! What agents get to read.

use crate::variables::support::{exposing, recording, sets, state};
use serde_json::json;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, Flow as Go};
use tenure_flow::Flow;
use tenure_flow::route::RoundRobin;
use tenure_flow::variables::{Exposure, Kind, Variables};
use tenure_models::Scripted;

fn shop() -> Arc<Variables> {
    let definitions = vec![
        state("region", Kind::Str, "eu").described("where it is sold"),
        state("count", Kind::Int, 1),
        state("hidden", Kind::Str, "nobody reads this"),
    ];
    let seller = vec!["region".to_owned(), "count".to_owned()];
    Arc::new(exposing(definitions, vec![Exposure::new("seller", seller)]))
}

#[tokio::test]
async fn two_turns_show_the_values_of_their_time_and_nothing_adds_up() {
    let variables = shop();
    let (seller, seen) = recording("seller", "Sell.", &["sold"], &variables);
    let bump = hook::before_chat(|cx| {
        Box::pin(async move {
            let variables = cx.chat_variables().expect("it is a chat");
            variables.set("scratch", "not declared")?;
            Ok(Go::Continue)
        })
    });
    let flow = Flow::builder("shop")
        .agent(seller)
        .with_lifecycle(bump)
        .router(RoundRobin)
        .max_turns(2)
        .variables(variables)
        .build()
        .unwrap();
    let report = flow.run("go").await;
    assert_eq!(report.turns, 2);
    let expected = "Sell.\n\n<context_variables>\nregion (where it is sold): \"eu\"\ncount: 1\n\
                    </context_variables>";
    assert_eq!(*seen.lock().unwrap(), [expected, expected]);
}

#[tokio::test]
async fn a_change_is_seen_in_the_same_turn_and_placeholders_are_filled() {
    let variables = shop();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let model = Scripted::from_fn({
        let seen = seen.clone();
        move |request, _| {
            let instruction = request.instruction.as_deref().unwrap_or_default();
            seen.lock().unwrap().push(instruction.to_owned());
            Ok(tenure_core::model::ModelResponse::text("sold"))
        }
    });
    let seller = Agent::builder("seller")
        .model(model)
        .instruction("Sell ${count} in {{region}}, not ${hidden}.")
        .with_lifecycle(variables.exposure("seller").expect("it gets some"))
        .with_lifecycle(sets("count", json!(9)))
        .blueprint()
        .unwrap();
    let flow = Flow::builder("shop").agent(seller).max_turns(1).variables(variables).build();
    flow.unwrap().run("go").await;
    assert_eq!(*seen.lock().unwrap(), ["Sell 9 in eu, not ${hidden}."]);
}

#[tokio::test]
async fn a_hook_that_keeps_the_request_does_not_make_the_list_add_up() {
    let variables = shop();
    let keep = hook::before_model(|_, request| {
        Box::pin(async move {
            request.persist();
            Ok(Go::Continue)
        })
    });
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let model =
        Scripted::from_fn({
            let seen = seen.clone();
            move |request, call| {
                seen.lock().unwrap().push(request.instruction.as_deref().unwrap_or("").to_owned());
                Ok(match call {
                    0 => tenure_core::model::ModelResponse::calls([
                        tenure_core::message::ToolCall::new("1", "none", "{}"),
                    ]),
                    _ => tenure_core::model::ModelResponse::text("sold"),
                })
            }
        });
    let seller = Agent::builder("seller")
        .model(model)
        .instruction("Sell.")
        .with_lifecycle(variables.exposure("seller").expect("it gets some"))
        .with_lifecycle(keep)
        .blueprint()
        .unwrap();
    let flow = Flow::builder("shop").agent(seller).max_turns(1).variables(variables).build();
    flow.unwrap().run("go").await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[1].matches("<context_variables>").count(), 1);
}

#[test]
fn an_agent_that_gets_none_has_no_entry() {
    let variables = shop();
    assert!(variables.exposure("seller").is_some());
    assert!(variables.exposure("buyer").is_none());
}

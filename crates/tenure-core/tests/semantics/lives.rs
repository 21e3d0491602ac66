//! G3 and G7 over several lives of a run: decisions stay decided, and what was written stays written,
//! also where several things went on at the same time.

use crate::semantics::support::*;
use serde_json::json;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::chat::Chat;
use tenure_core::hook::{self, After, Flow, Policy};
use tenure_core::step::{MemoryStepLog, Steps};
use tenure_core::tool::Effect;
use tenure_core::{Error, Outcome};

fn steps(log: &MemoryStepLog) -> Steps {
    Steps::new(Arc::new(log.clone()))
}

#[tokio::test(start_paused = true)]
async fn g3_a_refusal_is_not_asked_for_again_in_the_next_life() {
    let (log, asked, ends) = (MemoryStepLog::new(), Count::default(), Log::default());
    let model = script([]);
    let agent = || {
        let (asked, ends) = (asked.clone(), ends.clone());
        // A guard that would let it pass the second time.
        let guard = hook::before_agent(move |_, _| {
            let refuses = asked.up() == 1;
            Box::pin(async move {
                if refuses { Err(Error::denied("no").into()) } else { Ok(Flow::Continue) }
            })
        });
        let tells = hook::after_agent(move |_, end| {
            ends.add(end.outcome().to_string());
            Box::pin(async { Ok(After::Done) })
        });
        let builder = Agent::builder("agent").model(model.clone()).with_lifecycle(tells);
        builder.with_lifecycle(hook::hook(guard).policy(Policy::Deny))
    };
    for log in [log.clone(), log.resumed()] {
        let result = started(agent()).await.request("go").recorded(&steps(&log)).run().await;
        let error = result.unwrap_err();
        assert_eq!((error.outcome(), error.to_string()), (Outcome::Denied, "no".to_owned()));
    }
    assert_eq!((asked.get(), model.calls()), (1, 0));
    assert_eq!(ends.take(), ["denied"], "it was told once");
}

/// A chat of one agent with these tools, recorded.
async fn chatted(log: &MemoryStepLog, replies: Vec<Reply>, tools: [AsyncTool; 2]) -> Chat {
    let [one, two] = tools.map(|tool| tool.effect(Effect::Idempotent));
    let builder = Agent::builder("agent").model(script(replies)).tool(one).tool(two);
    let agent = started(builder).await;
    let chat = Chat::new("c", [agent.clone()]);
    chat.record(&steps(log));
    let at = steps(log).at("turn");
    let result = chat
        .run(async |chat| agent.request("go").in_chat(chat).recorded(&at).run().await.map(drop))
        .await;
    assert!(result.end.error.is_none(), "{:?}", result.end.error);
    chat
}

#[tokio::test(start_paused = true)]
async fn g7_of_calls_that_ran_together_the_later_write_stays_the_later_one() {
    let counts = |name: &'static str, wait: u64| {
        tool(name, move |cx, _| {
            Box::pin(async move {
                tokio::time::sleep(ms(wait)).await;
                let variables = cx.chat_variables().expect("it is in a chat");
                let now = variables.get("n").and_then(|n| n.as_u64()).unwrap_or(0);
                variables.set("n", now + 1)?;
                Ok("counted".into())
            })
        })
    };
    let tools = || [counts("slow", 50), counts("fast", 5)];
    let log = MemoryStepLog::new();
    let first = chatted(&log, vec![call(&["slow", "fast"]), say("done")], tools()).await;
    assert_eq!(first.variable("n"), Some(json!(2)));
    // The second call was done first, and both are on record.
    let last = log.keys().iter().rposition(|key| &*key.kind == "tool").expect("two calls");
    let second = chatted(&log.cut_after(last + 1), vec![say("done")], tools()).await;
    assert_eq!(second.variable("n"), Some(json!(2)));
}

#[tokio::test(start_paused = true)]
async fn g7_a_write_beside_a_call_that_is_served_is_recorded_all_the_same() {
    let tools = || {
        let fetches = tool("a", |cx, _| {
            Box::pin(async move {
                let fetched = cx.step("fetch", async {
                    tokio::time::sleep(ms(50)).await;
                    Ok(1_u64)
                });
                fetched.await?;
                cx.chat_variables().expect("it is in a chat").set("x", 1)?;
                tokio::time::sleep(ms(50)).await;
                Ok("fetched".into())
            })
        });
        let quick = tool("b", |cx, _| {
            Box::pin(async move {
                tokio::time::sleep(ms(5)).await;
                cx.chat_variables().expect("it is in a chat").set("y", 1)?;
                Ok("done".into())
            })
        });
        [fetches, quick]
    };
    let log = MemoryStepLog::new();
    chatted(&log, vec![call(&["a", "b"]), say("done")], tools()).await;
    let fetched = log.keys().iter().position(|key| &*key.kind == "step").expect("a step");
    let second = log.cut_after(fetched + 1);
    let chat = chatted(&second, vec![say("done")], tools()).await;
    assert_eq!(chat.variable("x"), Some(json!(1)), "in the second life");
    let last = second.keys().iter().rposition(|key| &*key.kind == "tool").expect("two calls");
    let chat = chatted(&second.cut_after(last + 1), vec![say("done")], tools()).await;
    assert_eq!(chat.variable("x"), Some(json!(1)), "and in the third");
}

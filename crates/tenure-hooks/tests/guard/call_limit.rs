//! How many calls there may be.

use crate::guard::support::*;
use crate::support::refused;
use serde_json::json;
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::IntoRegistration;
use tenure_core::message::ToolStatus::{Denied, Ok as Done};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::guard::{AtLimit, CallLimit};
use tenure_hooks::ready::{self, Bench};

#[tokio::test]
async fn calls_beyond_the_limit_are_denied_and_the_others_go_on() {
    let seen = Seen::default();
    let limit = CallLimit::new().tools_per_run("search", 3).at_limit(AtLimit::Continue);
    let both =
        json!({ "calls": [{ "call": "search" }, { "call": "shell" }, { "call": "search" }] });
    let replies = json!([both, both, both, "end"]);
    let turn = run(scripted(&seen, replies).with_lifecycle(limit)).await;
    assert_eq!((seen.of("search"), seen.of("shell")), (3, 3));
    let expected = [Done, Done, Done, Done, Done, Denied, Denied, Done, Denied];
    assert_eq!(statuses(&turn), expected);
    let told = &results(&turn)[5].1;
    assert_eq!(told, "the limit of 3 calls of search in a run is reached");
    assert_eq!(turn.unwrap().output(), "end");
}

#[tokio::test]
async fn the_turn_ends_with_a_text_or_as_denied() {
    let seen = Seen::default();
    let limit = || CallLimit::new().tools_per_run("*", 2).text("that is enough");
    let replies = || json!([calls("search", 3), "never said"]);
    let turn = run(scripted(&seen, replies()).with_lifecycle(limit())).await;
    assert_eq!(statuses(&turn), [Done, Done, Denied]);
    assert_eq!(turn.unwrap().output(), "that is enough");

    let strict = limit().at_limit(AtLimit::Error);
    let turn = run(scripted(&seen, replies()).with_lifecycle(strict)).await;
    assert_eq!(outcome(&turn), Outcome::Denied);
    assert_eq!(seen.count(), 4);
    let error = turn.unwrap_err().to_string();
    assert_eq!(error, "the limit of 2 calls of tools in a run is reached");
}

#[tokio::test]
async fn model_calls_are_bounded() {
    let seen = Seen::default();
    let limit = CallLimit::new().models_per_run(2);
    let replies = json!([calls("search", 1), calls("search", 1), calls("search", 1), "end"]);
    let report = run(scripted(&seen, replies).with_lifecycle(limit)).await.unwrap();
    let text = "the limit of 2 model calls in a run is reached (2 were made)";
    assert_eq!((report.output(), seen.count(), report.usage.calls), (text, 2, 2));
}

async fn turns(builder: AgentBuilder, count: usize) -> (Agent, Vec<String>) {
    let agent = builder.build().expect("it works here");
    agent.startup().await.expect("it works here");
    let mut outputs = Vec::new();
    for _ in 0..count {
        outputs.push(match agent.run("go").await {
            Ok(report) => report.output().to_owned(),
            Err(error) => error.to_string(),
        });
    }
    (agent, outputs)
}

#[tokio::test]
async fn a_thread_counts_over_all_runs_of_the_conversation() {
    let seen = Seen::default();
    let limit = CallLimit::new().tools_per_thread("search", 3).at_limit(AtLimit::Continue);
    let replies = json!([calls("search", 2), "end"]);
    let builder = scripted(&seen, replies).with_lifecycle(limit);
    let (agent, outputs) = turns(builder, 3).await;
    assert_eq!((seen.count(), outputs), (3, vec!["end".to_owned(); 3]));
    agent.shutdown().await;

    let limit = CallLimit::new().models_per_thread(3).text("no more");
    let replies = json!([calls("search", 1), "end"]);
    let builder = scripted(&seen, replies).with_lifecycle(limit);
    let (agent, outputs) = turns(builder, 3).await;
    assert_eq!(outputs, ["end", "no more", "no more"]);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_run_that_goes_on_counts_nothing_twice() {
    let replies = json!([calls("search", 2), calls("search", 2), calls("search", 2), "end"]);
    let agent = |seen: &Seen| {
        let limit = CallLimit::new().tools_per_run("search", 5).at_limit(AtLimit::Continue);
        scripted(seen, replies.clone()).with_lifecycle(limit)
    };
    let (log, seen) = (MemoryStepLog::new(), Seen::default());
    let whole = statuses(&recorded(agent(&seen), &log).await);
    assert_eq!((whole.as_slice(), seen.count()), (&[Done, Done, Done, Done, Done, Denied][..], 5));
    for cut in 0..log.keys().len() {
        let (died, again) = (log.cut_after(cut), Seen::default());
        let recorded_calls = died.keys().iter().filter(|key| &*key.kind == "tool").count();
        let turn = recorded(agent(&again), &died).await;
        assert_eq!(statuses(&turn), whole, "after {cut} steps");
        assert_eq!(again.count() + recorded_calls, 5, "after {cut} steps");
        assert_eq!(turn.unwrap().output(), "end");
    }
}

#[tokio::test]
async fn counts_that_cannot_be_read_deny() {
    let seen = Seen::default();
    let limit = CallLimit::new().models_per_run(9);
    let agent = scripted(&seen, json!(["end"])).with_lifecycle(limit).build().unwrap();
    agent.startup().await.unwrap();
    agent.set_state("_call_limit", "nonsense").unwrap();
    assert_eq!(agent.run("go").await.unwrap_err().outcome(), Outcome::Denied);
    agent.shutdown().await;
}

#[test]
fn options_are_checked() {
    let made = |with| ready::find("call_limit").unwrap().make(&with, &Bench::new());
    assert!(made(json!({ "models": { "run": 3 }, "tools": { "a": { "thread": 0 } } })).is_ok());
    let field = |with| refused("call_limit", with);
    assert_eq!(field(json!({})), "");
    assert_eq!(field(json!({ "models": { "run": 0 } })), "models");
    assert_eq!(field(json!({ "models": { "run": 3, "thread": 2 } })), "models.run");
    assert_eq!(field(json!({ "models": { "run": 3 }, "exit": "continue" })), "exit");
    assert_eq!(field(json!({ "tools": { "a": {} } })), "tools.a");
    let text = |exit: &str| json!({ "models": { "run": 3 }, "exit": exit, "text": "Enough." });
    assert_eq!(field(text("error")), "text");
    assert!(made(text("end")).is_ok());
    assert_eq!(field(json!({ "tools": { "": { "run": 1 } } })), "tools.");
}

#[tokio::test]
async fn two_limits_of_an_agent_count_by_themselves() {
    let seen = Seen::default();
    let limit = || CallLimit::new().models_per_run(3).tools_per_run("*", 2).into_registration();
    let replies = json!([calls("search", 1), calls("search", 1), "end"]);
    let builder =
        scripted(&seen, replies).with_lifecycle(limit()).with_lifecycle(limit().named("second"));
    assert_eq!(run(builder).await.unwrap().output(), "end");
    assert_eq!(seen.count(), 2);
}

//! How much may be spent.

use crate::guard::support::*;
use crate::support::refused;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::event::EventBus;
use tenure_core::hook::{self, HookAction, IntoRegistration};
use tenure_core::memory::{InMemory, Memory};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Cost, Model, ModelRequest, ModelResponse, Usage};
use tenure_core::state::{Ownership, StateOwnership};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::guard::{Budget, Ledger};
use tenure_hooks::ready::{self, Bench};
use tenure_models::Scripted;
use tenure_testkit::Recorder;

/// A model whose every call reads 60 tokens and writes 40 for ten cents. It calls `search` so often
/// before it is done.
fn dear(rounds: usize, unpriced: bool) -> Scripted {
    Scripted::from_fn(move |request, _| {
        let made = request.messages.iter().fold(0, |made, message| match message {
            Message::User { .. } => 0,
            message => made + usize::from(!message.calls().is_empty()),
        });
        let mut response = match made < rounds {
            true => {
                let id = format!("c{made}");
                ModelResponse::calls([ToolCall::new(id, "search", r#"{"message":"x"}"#)])
            }
            false => ModelResponse::text("end"),
        };
        let cost = if unpriced { Cost::ZERO } else { Cost::from_nano_usd(100_000_000) };
        response.usage = Usage { cost, unpriced: unpriced.into(), ..Usage::new(60, 40) };
        Ok(response)
    })
}

fn agent(seen: &Seen, rounds: usize) -> AgentBuilder {
    Agent::builder("agent").model(dear(rounds, false)).tool(seen.tool("search"))
}

#[tokio::test]
async fn a_run_is_over_when_its_budget_is() {
    let seen = Seen::default();
    let turn = run(agent(&seen, 9).with_lifecycle(Budget::new().usd_per_run(0.25))).await;
    assert_eq!((outcome(&turn), seen.count()), (Outcome::Denied, 3));
    let error = turn.unwrap_err().to_string();
    assert_eq!(error, "the budget of $0.25 for a run is used up: $0.30 spent");

    let tokens = Budget::new().tokens_per_run(200).ends_turn().text("that was all");
    let report = run(agent(&seen, 9).with_lifecycle(tokens)).await.unwrap();
    assert_eq!((report.output(), report.usage.total()), ("that was all", 200));
}

#[tokio::test]
async fn a_call_is_not_made_that_there_is_no_room_for() {
    let seen = Seen::default();
    let expected = Budget::new().usd_per_run(0.25).expect(100, 0.1);
    let report = run(agent(&seen, 9).with_lifecycle(expected)).await.unwrap_err();
    assert!(report.report().unwrap().usage.cost <= Cost::from_nano_usd(250_000_000), "{report}");
    assert_eq!(seen.count(), 2);

    let mut most = tenure_core::model::ModelParams::default();
    most.max_tokens = Some(150);
    let expected = Budget::new().tokens_per_run(240).expect_max_tokens();
    let turn = run(agent(&seen, 9).params(most).with_lifecycle(expected)).await;
    let error = turn.unwrap_err().to_string();
    assert!(error.contains("no room for a call of 150: 100 spent"), "{error}");
}

#[tokio::test]
async fn what_other_hooks_spend_counts_too() {
    let seen = Seen::default();
    let judge: Arc<dyn Model> = Arc::new(dear(0, false));
    let judges = hook::after_model(move |cx, _response| {
        let judge = judge.clone();
        Box::pin(async move {
            cx.call_model("judge", &judge, ModelRequest::default()).await?;
            Ok(HookAction::Continue)
        })
    });
    let builder =
        agent(&seen, 9).with_lifecycle(judges).with_lifecycle(Budget::new().tokens_per_run(300));
    let error = run(builder).await.unwrap_err();
    assert!(error.to_string().contains("400 spent"), "{error}");
}

#[tokio::test]
async fn a_thread_adds_up_its_runs() {
    let seen = Seen::default();
    let budget = Budget::new().tokens_per_thread(250);
    let agent = agent(&seen, 0).with_lifecycle(budget).build().unwrap();
    agent.startup().await.unwrap();
    for _ in 0..3 {
        assert_eq!(agent.run("go").await.unwrap().output(), "end");
    }
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.to_string(), "the budget of 250 tokens for a thread is used up: 300 spent");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_day_adds_up_all_instances_that_share_it() {
    let (seen, ledger) = (Seen::default(), Ledger::new());
    let budget = || Budget::new().usd_per_day(0.25, &ledger);
    for _ in 0..3 {
        run(agent(&seen, 0).with_lifecycle(budget())).await.unwrap();
    }
    assert_eq!(ledger.today().cost.to_string(), "$0.30");
    assert_eq!(outcome(&run(agent(&seen, 0).with_lifecycle(budget())).await), Outcome::Denied);
    let own = Budget::new().usd_per_day(0.25, &Ledger::new());
    assert!(run(agent(&seen, 0).with_lifecycle(own)).await.is_ok());
}

#[tokio::test]
async fn what_a_clone_spends_is_counted_once() {
    let (seen, ledger) = (Seen::default(), Ledger::new());
    let child = Agent::builder("child").model(dear(0, false)).blueprint().unwrap();
    let parent = Agent::builder("parent")
        .model(dear(1, false))
        .agent_tool_with(&child, tenure_core::clone::ChildOptions::default().named("search"))
        .with_lifecycle(Budget::new().tokens_per_day(1000, &ledger));
    let report = run(parent).await.unwrap();
    assert_eq!((report.usage.total(), ledger.today().tokens), (300, 300));
    assert_eq!(seen.count(), 0);
}

#[tokio::test]
async fn calls_without_a_price_are_denied_ignored_or_priced() {
    let seen = Seen::default();
    let agent = || Agent::builder("agent").model(dear(2, true)).tool(seen.tool("search"));
    let error = run(agent().with_lifecycle(Budget::new().usd_per_run(1.0))).await.unwrap_err();
    assert!(error.to_string().contains("no known price"), "{error}");
    let ignores = Budget::new().usd_per_run(1.0).ignore_unpriced();
    assert!(run(agent().with_lifecycle(ignores)).await.is_ok());
    // 60 * 5000 + 40 * 10000 dollars per million are 70 cents a call.
    let priced = Budget::new().usd_per_run(1.0).price_unpriced(5000.0, 10_000.0);
    let error = run(agent().with_lifecycle(priced)).await.unwrap_err();
    assert!(error.to_string().contains("$1.40 spent"), "{error}");
    let tokens = Budget::new().tokens_per_run(1000);
    assert!(run(agent().with_lifecycle(tokens)).await.is_ok(), "only dollars need prices");
}

#[tokio::test]
async fn it_warns_once_before_it_denies() {
    let (seen, bus) = (Seen::default(), EventBus::new());
    let recorder = Recorder::new(&bus);
    let budget = Budget::new().tokens_per_run(1000).warn_at(0.3);
    run(agent(&seen, 6).with_lifecycle(budget).events(&bus)).await.unwrap();
    assert_eq!(recorder.count("budget.warned"), 1);
}

#[tokio::test]
async fn a_run_that_goes_on_pays_nothing_twice() {
    let seen = Seen::default();
    let agent = |ledger: &Ledger| {
        let budget = Budget::new().tokens_per_day(10_000, ledger).tokens_per_run(10_000);
        agent(&seen, 3).with_lifecycle(budget)
    };
    let (log, ledger) = (MemoryStepLog::new(), Ledger::new());
    recorded(agent(&ledger), &log).await.unwrap();
    assert_eq!(ledger.today().tokens, 400);
    for cut in 0..log.keys().len() {
        let (died, next) = (log.cut_after(cut), Ledger::new());
        let seen_then = died.keys().iter().filter(|key| &*key.kind == "after_model").count();
        recorded(agent(&next), &died).await.unwrap();
        let fresh = next.today().tokens;
        let most = 400 - 100 * seen_then as u64;
        assert!(fresh <= most, "after {cut} steps {fresh} of {most} are paid again");
    }
}

#[tokio::test]
async fn a_day_is_remembered_where_the_agent_has_a_memory_for_it() {
    let (seen, memory) = (Seen::default(), InMemory::new());
    let agent = || {
        let budget = Budget::new().tokens_per_day(250, &Ledger::new()).remembered("day");
        agent(&seen, 0)
            .memory(memory.clone())
            .ownership(Ownership::new().declare("day", StateOwnership::Memory))
            .with_lifecycle(budget)
    };
    for _ in 0..3 {
        run(agent()).await.unwrap();
    }
    let error = run(agent()).await.unwrap_err().to_string();
    assert!(error.contains("for a day is used up: 300 spent"), "{error}");
    let null = InMemory::new();
    null.store("agent", [("day".to_owned(), Value::Null)].into()).await.unwrap();
    let error = run(agent().memory(null)).await.unwrap_err().to_string();
    assert!(error.contains("`day` is no spending of a day"), "{error}");
    let forgetful = Budget::new().tokens_per_day(9, &Ledger::new()).remembered("day");
    let turn = run(self::agent(&seen, 0).with_lifecycle(forgetful)).await;
    assert_eq!(outcome(&turn), Outcome::Denied, "there is no memory");
}

#[tokio::test]
async fn options_with_one_name_share_a_day() {
    let (seen, bench) = (Seen::default(), Bench::new());
    let make = |name: &str| {
        let with: Value = json!({ "day": { "tokens": 150 }, "name": name });
        ready::find("budget").unwrap().make(&with, &bench).unwrap()
    };
    for name in ["a", "a", "b"] {
        run(agent(&seen, 0).with_lifecycle(make(name))).await.unwrap();
    }
    assert!(run(agent(&seen, 0).with_lifecycle(make("a"))).await.is_err());
    assert!(run(agent(&seen, 0).with_lifecycle(make("b"))).await.is_ok());
}

#[test]
fn options_are_checked() {
    let field = |with| refused("budget", with);
    assert_eq!(field(json!({})), "");
    assert_eq!(field(json!({ "run": { "usd": 0 } })), "run.usd");
    assert_eq!(field(json!({ "thread": { "tokens": 0 } })), "thread.tokens");
    assert_eq!(field(json!({ "run": { "usd": 1 }, "warn_at": 80 })), "warn_at");
    assert_eq!(field(json!({ "run": { "usd": 1 }, "remember": "x" })), "remember");
    assert_eq!(field(json!({ "run": { "usd": 1 }, "text": "Enough." })), "text");
    let denied = json!({ "run": { "usd": 1 }, "text": "Enough.", "on_exceed": "deny" });
    assert_eq!(field(denied), "text");
    let ended = json!({ "run": { "usd": 1 }, "text": "Enough.", "on_exceed": "end" });
    assert!(ready::find("budget").unwrap().make(&ended, &Bench::new()).is_ok());
    let price = json!({ "price": { "input": -1, "output": 1 } });
    assert_eq!(field(json!({ "run": { "usd": 1 }, "unpriced": price })), "unpriced.price");
}

#[tokio::test]
async fn two_budgets_of_an_agent_count_by_themselves_and_the_day_once() {
    let seen = Seen::default();
    let ledger = Ledger::new();
    let builder = agent(&seen, 2)
        .with_lifecycle(Budget::new().usd_per_run(0.35).tokens_per_day(350, &ledger))
        .with_lifecycle(
            Budget::new()
                .usd_per_thread(0.35)
                .usd_per_day(0.35, &ledger)
                .into_registration()
                .named("second"),
        );
    let report = run(builder).await.unwrap();
    assert_eq!((report.output(), seen.count()), ("end", 2));
    assert_eq!(ledger.today().tokens, 300);
}

#[tokio::test]
async fn a_price_that_nobody_knew_earlier_denies_in_the_thread_and_the_day() {
    let free = || Agent::builder("agent").model(dear(0, true));
    let thread = free().with_lifecycle(Budget::new().usd_per_thread(5.0)).build().unwrap();
    thread.startup().await.unwrap();
    assert!(thread.run("go").await.is_ok());
    let error = thread.run("go").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("of the thread"), "{error}");
    thread.shutdown().await;

    let ledger = Ledger::new();
    let day = || Budget::new().usd_per_day(5.0, &ledger);
    assert!(run(free().with_lifecycle(day())).await.is_ok());
    let error = run(free().with_lifecycle(day())).await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("of the day"), "{error}");
    assert!(run(free().with_lifecycle(day().ignore_unpriced())).await.is_ok());
}

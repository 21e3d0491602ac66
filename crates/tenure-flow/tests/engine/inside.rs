//! Chats that run inside of others: what models may say of them, whose time stands still, and which
//! ids they have.

use crate::engine::support::{Log, Plan, agent};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::ask::{Answer, Ask, Asker, PendingAsk};
use tenure_core::context::TurnCx;
use tenure_core::drive::Input;
use tenure_core::hook::{self, AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_core::model::{ModelError, ModelErrorKind, ModelResponse};
use tenure_core::{CancelToken, ErrorKind};
use tenure_flow::journey::{InputContract, Journey, MergeMode, OnPartialFailure};
use tenure_flow::nested::NestedFlow;
use tenure_flow::variables::{Definition, Kind, Source, State, Variables};
use tenure_flow::{ChatStatus, Flow, FlowBuilder};
use tenure_models::{Hanging, Passthrough, Scripted};

const SECOND: Duration = Duration::from_secs(1);

/// A flow whose first agent says this, which begins the journey.
fn parent(log: &Log, said: Value, child: Flow, journey: Journey) -> FlowBuilder {
    let plans = Scripted::from_fn(move |_, _| Ok(ModelResponse::text(said.to_string())));
    Flow::builder("parent")
        .events(&log.bus)
        .workflow(child)
        .agent(log.agent("plans", plans))
        .agent(agent("sums", Passthrough::new()))
        .router(Plan::new(["plans"]))
        .journey(journey)
}

fn journey() -> Journey {
    Journey::new("build", "plans", "child", "sums")
}

fn one(name: &str, own: Blueprint) -> Flow {
    let first = Box::leak(own.config().name.to_string().into_boxed_str());
    Flow::builder(name).agent(own).router(Plan::new([first])).build().expect("a flow")
}

#[tokio::test]
async fn a_part_sets_only_what_the_contract_leaves_to_it() {
    const NAMES: [&str; 4] = ["user_id", "app_id", "approved", "page"];
    let seen: Arc<Mutex<Vec<Vec<Option<Value>>>>> = Arc::default();
    let keeps = seen.clone();
    let spy = hook::before_agent(move |cx, _| {
        let variables = cx.chat_variables().expect("it is a turn of a chat");
        let values = NAMES.map(|name| variables.get(name)).to_vec();
        keeps.lock().expect("it is whole").push(values);
        Box::pin(async { Ok(Go::Continue) })
    });
    let c = Agent::builder("c").model(Passthrough::new()).with_lifecycle(spy);
    let child = one("child", c.blueprint().expect("it can be built"));
    let mut journey = journey();
    let contract = ["page", "user_id"].map(str::to_owned).to_vec();
    journey.fan_out.input_contract = InputContract::new(Vec::new(), contract);
    journey.fan_out.child_context_seed.insert("approved".to_owned(), json!(false));
    let own = json!({ "user_id": "root", "app_id": "other", "approved": true, "page": 7 });
    let said = json!({ "tasks": [{ "task": "x", "context": own }] });
    let flow = parent(&Log::new(), said, child, journey).build().expect("a flow");
    let report = flow.chat().user("ada").app("shop").message("go").run().await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let expected = [json!("ada"), json!("shop"), json!(false), json!(7)].map(Some).to_vec();
    assert_eq!(*seen.lock().expect("it is whole"), [expected]);
}

#[tokio::test]
async fn results_are_not_put_where_nobody_may_write() {
    let state = |kind| {
        Source::State(State::new(match kind {
            Kind::Dict => json!({}),
            _ => json!([]),
        }))
    };
    let here = std::env::current_dir().expect("there is one");
    let variables = Variables::new(
        vec![
            Definition::new("fixed", Kind::List, Source::Static(json!([]))),
            Definition::new("object", Kind::Dict, state(Kind::Dict)),
            Definition::new("list", Kind::List, state(Kind::List)),
        ],
        Vec::new(),
        &here,
        &here,
    );
    let variables = Arc::new(variables.expect("they are good"));
    let build = |inject_as: &str, mode, seed: Option<&str>| {
        let mut journey = journey();
        journey.fan_in.inject_as = inject_as.to_owned();
        journey.fan_in.merge_mode = mode;
        if let Some(name) = seed {
            journey.fan_out.child_context_seed.insert(name.to_owned(), json!("root"));
        }
        let child = one("child", agent("c", Passthrough::new()));
        let flow = parent(&Log::new(), json!(["x"]), child, journey);
        flow.variables(variables.clone()).build()
    };
    for (inject_as, mode, seed, part) in [
        ("user_id", MergeMode::CollectAll, None, "`user_id`, which is set by the platform"),
        ("fixed", MergeMode::CollectAll, None, "`fixed`, which is read-only"),
        ("object", MergeMode::CollectAll, None, "`object`, which cannot be what merge_mode"),
        ("list", MergeMode::Concatenate, None, "`list`, which cannot be what merge_mode"),
        ("list", MergeMode::CollectAll, Some("app_id"), "child_context_seed gives `app_id`"),
    ] {
        let error = build(inject_as, mode, seed).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
    for (inject_as, mode) in [
        ("list", MergeMode::CollectAll),
        ("object", MergeMode::Structured),
        ("undeclared", MergeMode::Concatenate),
    ] {
        let flow = build(inject_as, mode, None).expect("a flow");
        let report = flow.chat().message("go").run().await;
        assert_eq!(report.status, ChatStatus::Completed, "{inject_as}: {:?}", report.error);
        assert!(report.variables.contains_key(inject_as));
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_chats_with_one_id_the_second_is_refused_while_the_first_runs() {
    let log = Log::new();
    let hangs = log.agent("a", Hanging::new());
    let ends = Arc::new(AtomicUsize::new(0));
    let counted = ends.clone();
    let flow = Flow::builder("one").agent(hangs).farewell(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {})
    });
    let flow = flow.build().expect("a flow");
    let token = CancelToken::new();
    let first = flow.chat().id("c").message("go").cancel_on(&token).run();
    let second = async {
        tokio::time::sleep(SECOND).await;
        let report = flow.chat().id("c").message("go").run().await;
        assert_eq!((report.status, report.turns), (ChatStatus::Failed, 0));
        let error = report.error.expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("the chat `c` of the workflow `one` runs already"));
        assert_eq!(ends.load(Ordering::Relaxed), 0, "what is the first one's is left alone");
        token.cancel();
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.status, ChatStatus::Cancelled);
    // The id is free again.
    let token = CancelToken::new();
    token.cancel();
    let third = flow.chat().id("c").message("go").cancel_on(&token).run().await;
    assert_eq!(third.status, ChatStatus::Cancelled, "{:?}", third.error);
}

#[tokio::test]
async fn a_chat_that_nobody_can_begin_is_refused_with_the_names_of_those_there_are() {
    let two = || Flow::builder("child").agent(agent("a", Passthrough::new()));
    let two = two().agent(agent("b", Passthrough::new())).max_turns(2).build().expect("a flow");
    let report = two.chat().initial_agent("ghost").message("go").run().await;
    assert_eq!((report.status, report.turns), (ChatStatus::Failed, 0));
    let error = report.error.expect("it is refused").to_string();
    assert!(error.contains("`ghost`") && error.contains("a, b"), "{error}");
    // A part of an output is what a model said, so it is no better.
    let said = json!([{ "message": "x", "initial_agent": "ghost" }]);
    let flow = parent(&Log::new(), said, two, journey()).build().expect("a flow");
    let report = flow.run("go").await;
    let result = &report.variables["child_results"][0];
    assert_eq!(result["status"], "failed", "{result}");
    assert!(result["error"].as_str().expect("a text").contains("a, b"), "{result}");
}

/// Asks before every turn.
struct Asks;

#[async_trait]
impl AgentLifecycle for Asks {
    fn points(&self) -> Points {
        Point::BeforeAgent.into()
    }

    fn name(&self) -> &str {
        "asks"
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Go, HookError> {
        cx.ask(Ask::input("which colour?")).await?;
        Ok(Go::Continue)
    }
}

/// Thinks for two minutes.
struct Thinks;

#[async_trait]
impl Asker for Thinks {
    async fn answer(&self, _: &PendingAsk) -> Option<Answer> {
        tokio::time::sleep(120 * SECOND).await;
        Some(Answer::Respond("blue".into()))
    }
}

fn asking(model: impl tenure_core::model::Model) -> Blueprint {
    let own = Agent::builder("a").model(model).model_limit(3600 * SECOND);
    own.with_lifecycle(Asks).on_ask(Thinks).blueprint().expect("it can be built")
}

#[tokio::test(start_paused = true)]
async fn a_person_in_an_inner_chat_takes_their_time_and_the_outer_one_waits() {
    for (answers, status) in [(true, ChatStatus::Completed), (false, ChatStatus::Failed)] {
        let inner = match answers {
            true => one("inner", asking(Passthrough::new())),
            // After the question the time of the turn runs on.
            false => one("inner", asking(Hanging::new())),
        };
        let sub = NestedFlow::new(inner).agent("sub").turn_limit(30 * SECOND);
        let log = Log::new();
        let flow = Flow::builder("outer").events(&log.bus).router(Plan::new(["sub"]));
        let flow = flow.agent(sub.blueprint().expect("it can be built")).build().expect("a flow");
        let began = tokio::time::Instant::now();
        let report = flow.run("go").await;
        assert_eq!(report.status, status, "{:?}", report.error);
        let least = if answers { 120 } else { 150 };
        let took = began.elapsed();
        assert!(took >= least * SECOND && took < (least + 10) * SECOND, "{took:?}");
        assert_eq!(log.statuses(), ["running", "paused", "running", status.as_str()]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_an_inner_chat_that_waits_for_a_person() {
    let inner = one("inner", asking(Passthrough::new()));
    let sub = NestedFlow::new(inner).agent("sub").blueprint().expect("it can be built");
    let log = Log::new();
    let flow = Flow::builder("outer").events(&log.bus).agent(sub).router(Plan::new(["sub"]));
    let flow = flow.build().expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        token.cancel();
    };
    let began = tokio::time::Instant::now();
    let (report, ()) = tokio::join!(flow.chat().message("go").cancel_on(&token).run(), cancel);
    assert_eq!(report.status, ChatStatus::Cancelled, "{:?}", report.error);
    assert!(began.elapsed() < 2 * SECOND);
    assert_eq!(log.statuses().last().map(String::as_str), Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn a_person_in_a_child_takes_their_time_and_the_journeys_stands_still() {
    for (answers, status) in [(true, "completed"), (false, "timed_out")] {
        let child = match answers {
            true => one("child", asking(Passthrough::new())),
            false => one("child", asking(Hanging::new())),
        };
        let mut journey = journey();
        journey.fan_out.timeout = Some(30 * SECOND);
        let log = Log::new();
        let flow = parent(&log, json!(["x"]), child, journey).build().expect("a flow");
        let report = flow.run("go").await;
        assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
        assert_eq!(report.variables["child_results"][0]["status"], status);
        assert_eq!(log.statuses(), ["running", "paused", "running", "completed"]);
    }
}

#[tokio::test(start_paused = true)]
async fn children_whose_time_is_up_are_not_made_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let fails = Scripted::from_fn(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(ModelError::new(ModelErrorKind::Auth, "it broke"))
    });
    let slow = Agent::builder("b").model(Hanging::new()).model_limit(3600 * SECOND);
    let child = Flow::builder("child")
        .agent(agent("a", fails))
        .agent(slow.blueprint().expect("it can be built"))
        .build()
        .expect("a flow");
    let mut journey = journey();
    journey.fan_out.timeout = Some(5 * SECOND);
    journey.fan_in.on_partial_failure = OnPartialFailure::RetryFailed;
    let said = json!([{ "message": "x" }, { "message": "y", "initial_agent": "b" }]);
    let log = Log::new();
    let flow = parent(&log, said, child, journey).build().expect("a flow");
    let report = flow.run("go").await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(calls.load(Ordering::Relaxed), 1, "there is no time left to try again");
    let children = log.announced(&["journey.child"]);
    let started = children.iter().filter(|(_, data)| data["status"] == "started").count();
    assert_eq!(started, 2);
}

#[tokio::test]
async fn of_an_agents_journeys_the_one_made_least_often_is_made() {
    let log = Log::new();
    let child = || {
        let model = Scripted::from_fn(|_, _| Ok(ModelResponse::text("done")));
        Flow::builder("child").agent(agent("c", model)).max_turns(1).build().expect("a flow")
    };
    let flow = parent(&log, json!(["x"]), child(), journey());
    let flow = flow.journey(Journey::new("polish", "plans", "child", "sums"));
    let flow = flow.router(Plan::new(["plans", "plans", "plans", "plans"]));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let made = log.announced(&["journey.fan_out"]);
    let made: Vec<_> = made.iter().map(|(_, data)| data["journey"].as_str()).collect();
    assert_eq!(made, ["build", "polish", "build", "polish"].map(Some));
}

//! Fan-out and fan-in.

use crate::engine::support::{Log, Plan, agent, said};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::CancelToken;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::model::{ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_flow::journey::{
    InputContract, Journey, MergeMode, OnPartialFailure, OutputContract, SpawnMode,
};
use tenure_flow::route::Target;
use tenure_flow::{ChatStatus, Flow, FlowBuilder};
use tenure_models::{Hanging, Passthrough, Scripted};

/// A child flow that answers with JSON about what it was asked: `bad` fails, `hang` hangs.
fn child() -> Flow {
    let model = Scripted::from_fn(|request, _| {
        let text = request.messages.last().map(|it| it.text().to_owned()).unwrap_or_default();
        match text.as_str() {
            "bad" => Err(ModelError::new(ModelErrorKind::Auth, "it broke")),
            other => Ok(ModelResponse::text(json!({ other: 1, "all": [other] }).to_string())),
        }
    });
    let waits = agent("waits", Hanging::new());
    let flow = Flow::builder("child").agent(agent("does", model)).agent(waits);
    flow.router(First).build().expect("a flow")
}

/// The initial agent speaks once.
struct First;

#[async_trait::async_trait]
impl tenure_flow::route::Router for First {
    async fn route(
        &self,
        cx: &tenure_flow::route::RouteCx<'_>,
    ) -> Result<tenure_flow::route::RoutingDecision, tenure_core::Error> {
        use tenure_flow::route::RoutingDecision;
        Ok(match (cx.turn, cx.initial) {
            (0, Some(initial)) => RoutingDecision::agent(initial.clone(), "it begins"),
            (0, None) => RoutingDecision::agent(cx.agents[0].clone(), "it is the first"),
            _ => RoutingDecision::end("it has spoken"),
        })
    }

    fn name(&self) -> &str {
        "first"
    }
}

fn journey() -> Journey {
    Journey::new("build", "plans", "child", "sums_up")
}

/// A flow whose first agent plans, and whose second one sums up.
fn parent(log: &Log, plan: Value, journeys: impl IntoIterator<Item = Journey>) -> FlowBuilder {
    let plans = Scripted::from_fn(move |_, _| Ok(ModelResponse::text(plan.to_string())));
    let flow = Flow::builder("parent").events(&log.bus).workflow(child());
    let flow =
        flow.agent(log.agent("plans", plans)).agent(log.agent("sums_up", Passthrough::new()));
    journeys.into_iter().fold(flow.router(Plan::new(["plans"])), FlowBuilder::journey)
}

const EVENTS: [&str; 5] =
    ["journey.fan_out", "journey.child", "journey.fan_in", "select_speaker", "orchestrator.route"];

#[tokio::test]
async fn children_run_at_the_same_time_and_their_results_come_back() {
    let log = Log::new();
    let plan = json!({ "tasks": [{ "name": "first", "message": "x" }, { "message": "y" }] });
    let report =
        parent(&log, plan, [journey()]).build().expect("a flow").chat().id("c").run().await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(
        report.variables["child_results"],
        json!([
            {
                "child": "c/build/1", "name": "first", "workflow": "child",
                "status": "completed", "output": { "all": ["x"], "x": 1 },
            },
            {
                "child": "c/build/2", "name": "child_2", "workflow": "child",
                "status": "completed", "output": { "all": ["y"], "y": 1 },
            },
        ])
    );
    // Who resumes is told, and nobody has to ask who is next.
    let (speaker, told) = said(&report)[2];
    assert_eq!(speaker, "sums_up");
    assert!(told.contains("Results of `build`: [{"), "{told}");
    let events = log.announced(&EVENTS);
    let names: Vec<_> = events.iter().map(|(name, _)| *name).collect();
    let expected = [
        "orchestrator.route",
        "select_speaker",
        "journey.fan_out",
        "journey.child",
        "journey.child",
        "journey.child",
        "journey.child",
        "journey.fan_in",
        "orchestrator.route",
        "select_speaker",
        "orchestrator.route",
    ];
    assert_eq!(names, expected);
    assert_eq!(events[7].1["succeeded"], 2);
    assert_eq!(events[8].1["reason"], "journey `build`: 2 of 2 succeeded");
}

#[tokio::test]
async fn results_become_one_as_the_merge_mode_says() {
    let text = |name: &str| json!({ name: 1, "all": [name] }).to_string();
    for (mode, expected) in [
        (MergeMode::Structured, json!({ "all": ["x", "y"], "x": 1, "y": 1 })),
        (MergeMode::Concatenate, json!([text("x"), text("y")].join("\n\n"))),
    ] {
        let log = Log::new();
        let mut journey = journey();
        journey.fan_in.merge_mode = mode;
        journey.fan_in.inject_as = "merged".to_owned();
        let report =
            parent(&log, json!(["x", "y"]), [journey]).build().expect("a flow").run("go").await;
        assert_eq!(report.variables["merged"], expected, "{mode}");
    }
}

#[tokio::test]
async fn what_it_means_that_some_failed_is_declared() {
    for (policy, status, made) in [
        (OnPartialFailure::ResumeWithAvailable, ChatStatus::Completed, 3),
        (OnPartialFailure::FailAll, ChatStatus::Failed, 3),
        (OnPartialFailure::RetryFailed, ChatStatus::Completed, 4),
    ] {
        let log = Log::new();
        let mut journey = journey();
        journey.fan_in.on_partial_failure = policy;
        let flow = parent(&log, json!(["x", "bad", "y"]), [journey]).build().expect("a flow");
        let report = flow.run("go").await;
        assert_eq!(report.status, status, "{policy}: {:?}", report.error);
        let children = log.announced(&["journey.child"]);
        let started = children.iter().filter(|(_, data)| data["status"] == "started").count();
        assert_eq!(started, made, "{policy}");
        if status == ChatStatus::Failed {
            let error = report.error.unwrap().to_string();
            assert!(error.contains("child_2 failed") && error.contains("it broke"), "{error}");
            continue;
        }
        let results = &report.variables["child_results"];
        let statuses: Vec<_> =
            (0..3).map(|at| results[at]["status"].as_str().expect("a text")).collect();
        assert_eq!(statuses, ["completed", "failed", "completed"], "{policy}");
        assert!(results[1]["error"].as_str().expect("a text").contains("it broke"));
    }
}

#[tokio::test]
async fn a_child_that_failed_once_is_made_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let model = Scripted::from_fn(move |_, _| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Err(ModelError::new(ModelErrorKind::Overloaded, "later")),
        _ => Ok(ModelResponse::text("done")),
    });
    let log = Log::new();
    let flaky =
        Flow::builder("flaky").agent(agent("a", model)).router(First).build().expect("a flow");
    let mut journey = Journey::new("build", "plans", "flaky", "sums_up");
    journey.fan_in.on_partial_failure = OnPartialFailure::RetryFailed;
    let flow = parent(&log, json!(["x"]), [journey]).workflow(flaky).build().expect("a flow");
    let report = flow.run("go").await;
    assert_eq!(report.variables["child_results"][0]["output"], "done");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_person_decides_if_the_journey_says_so() {
    for (answers, status, questions) in [
        (vec!["resume"], ChatStatus::Completed, 1),
        (vec!["retry", "what?", "fail"], ChatStatus::Failed, 3),
    ] {
        let log = Log::new();
        let mut journey = journey();
        journey.fan_in.on_partial_failure = OnPartialFailure::PromptUser;
        let asked = Arc::new(AtomicUsize::new(0));
        let (count, given) = (asked.clone(), answers.clone());
        let flow = parent(&log, json!(["bad", "x"]), [journey]).user(true);
        let flow = flow.on_ask(move |_: &PendingAsk| {
            let at = count.fetch_add(1, Ordering::Relaxed);
            Some(Answer::Respond(given[at].to_owned()))
        });
        let report = flow.build().expect("a flow").run("go").await;
        assert_eq!(report.status, status, "{answers:?}: {:?}", report.error);
        assert_eq!(asked.load(Ordering::Relaxed), questions, "{answers:?}");
    }
    // Nobody to ask is known before.
    let log = Log::new();
    let mut alone = journey();
    alone.fan_in.on_partial_failure = OnPartialFailure::PromptUser;
    let error = parent(&log, json!([]), [alone]).build().unwrap_err().to_string();
    assert!(error.contains("prompt_user needs a person"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn when_the_time_is_up_the_chat_goes_on_with_what_there_is() {
    let log = Log::new();
    let mut journey = journey();
    journey.fan_out.timeout = Some(Duration::from_secs(5));
    let plan = json!([{ "message": "x" }, { "message": "y", "initial_agent": "waits" }]);
    let began = tokio::time::Instant::now();
    let report = parent(&log, plan, [journey]).build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let results = &report.variables["child_results"];
    assert_eq!(results[0]["status"], "completed");
    assert_eq!(results[1]["status"], "timed_out");
    let fan_in = log.announced(&["journey.fan_in"]);
    assert_eq!(fan_in[0].1["timed_out"], true);
    assert_eq!(fan_in[0].1["failed"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_the_parent_cancels_all_children_before_it_ends() {
    let log = Log::new();
    let hangs = log.agent("waits", Hanging::new());
    let slow = Flow::builder("slow").events(&log.bus).agent(hangs).build().expect("a flow");
    let journey = Journey::new("build", "plans", "slow", "sums_up");
    let flow = parent(&log, json!(["x", "y"]), [journey]).workflow(slow).build().expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel();
    };
    let chat = flow.chat().message("go").cancel_on(&token).run();
    let (report, ()) = tokio::join!(chat, cancel);
    assert_eq!((report.status, report.turns), (ChatStatus::Cancelled, 1));
    let events = log.events();
    let cancelled: Vec<_> = events
        .iter()
        .filter(|event| event.name() == "orchestrator.cancelled")
        .map(|event| event.agent.to_string())
        .collect();
    assert_eq!(cancelled, ["slow.workflow", "slow.workflow", "parent.workflow"]);
}

#[tokio::test]
async fn a_fan_out_that_cannot_be_made_says_why_and_the_chat_goes_on() {
    let mut needs = journey();
    needs.fan_out.input_contract = InputContract::new(vec!["brand".into()], vec![]);
    let mut blocked = journey();
    blocked.requires = vec!["other".into()];
    let other = Journey::new("other", "sums_up", "child", "plans");
    let mut unnamed = journey();
    unnamed.fan_out.workflow = None;
    for (name, journeys, plan, part) in [
        ("missing", vec![needs], json!(["x"]), "\"brand\""),
        ("blocked", vec![blocked, other], json!(["x"]), "it requires [\"other\"]"),
        ("words", vec![journey()], json!("just words"), "no structured output"),
        ("empty", vec![journey()], json!([]), "no parts"),
        ("unnamed", vec![unnamed], json!(["x"]), "which workflow"),
        ("unknown", vec![journey()], json!([{ "workflow": "ghost" }]), "no workflow `ghost`"),
    ] {
        let log = Log::new();
        let report = parent(&log, plan, journeys).build().expect("a flow").run("go").await;
        assert_eq!((report.status, report.turns), (ChatStatus::Completed, 1), "{name}");
        let events = log.announced(&["journey.fan_out", "journey.child", "journey.fan_in"]);
        assert_eq!(events.len(), 1, "{name}: {events:?}");
        let reason = events[0].1["aborted"].as_str().expect("a text");
        assert!(reason.contains(part), "{name}: {reason}");
        assert!(!report.variables.contains_key("child_results"), "{name}");
    }
}

#[tokio::test]
async fn children_get_what_the_contract_and_the_seed_give_them() {
    let gives = Scripted::from_fn(|_, _| Ok(ModelResponse::text("words")));
    let sees =
        Flow::builder("sees").agent(agent("a", gives)).router(First).build().expect("a flow");
    let log = Log::new();
    let mut journey = Journey::new("build", "plans", "sees", "sums_up");
    journey.fan_out.spawn_mode = SpawnMode::GeneratorSubrun;
    journey.fan_out.max_children = 2;
    let left_to_parts = ["tone", "unset", "page", "kind"].map(str::to_owned).to_vec();
    let contract = InputContract::new(vec!["brand".into()], left_to_parts);
    journey.fan_out.input_contract = contract;
    journey.fan_out.child_context_seed.insert("kind".into(), json!("page"));
    journey.fan_in.output_contract = OutputContract::new(
        vec!["brand".into(), "kind".into(), "page".into(), "app_id".into()],
        vec!["unset".into()],
    );
    // With subruns the workflow is the journey's, whatever a part says.
    let plan = json!([
        { "message": "x", "workflow": "ghost", "context": { "page": 1 } },
        { "message": "y", "context": { "kind": "own", "page": 2 } },
        { "message": "more than max_children" },
    ]);
    let flow = parent(&log, plan, [journey]).workflow(sees).build().expect("a flow");
    let chat = flow.chat().app("shop").variable("brand", "tea").message("go");
    let report = chat.run().await;
    let results = &report.variables["child_results"];
    assert_eq!(results.as_array().unwrap().len(), 2, "{results}");
    let (_, fan_out) = &log.announced(&["journey.fan_out"])[0];
    assert_eq!(fan_out["dropped"], 1, "{fan_out}");
    let of = |kind: &str, page: u64| {
        json!({
            "output": "words", "brand": "tea", "kind": kind, "page": page, "app_id": "shop",
        })
    };
    assert_eq!(results[0]["output"], of("page", 1));
    assert_eq!(results[1]["output"], of("own", 2));
}

#[tokio::test]
async fn a_result_that_lacks_what_the_contract_requires_has_failed() {
    let log = Log::new();
    let mut journey = journey();
    journey.fan_in.output_contract = OutputContract::new(vec!["x".into()], vec![]);
    let report =
        parent(&log, json!(["x", "y"]), [journey]).build().expect("a flow").run("go").await;
    let results = &report.variables["child_results"];
    assert_eq!(results[0]["output"], json!({ "all": ["x"], "x": 1 }));
    assert!(results[1]["error"].as_str().expect("a text").contains("lacks [\"x\"]"), "{results}");
}

#[tokio::test]
async fn journeys_are_made_again_and_wait_for_those_they_require() {
    let log = Log::new();
    let first = journey();
    let mut second = Journey::new("polish", "plans", "child", "sums_up");
    second.requires = vec!["build".into()];
    let plan = vec![Target::Agent("plans".into()); 3];
    let flow = parent(&log, json!(["x"]), [second, first]);
    let flow = flow.router(Plan(plan, std::sync::Mutex::new(0))).build().expect("a flow");
    let report = flow.chat().id("c").message("go").run().await;
    assert_eq!((report.status, report.turns), (ChatStatus::Completed, 6), "{:?}", report.error);
    let made: Vec<_> = log
        .announced(&["journey.fan_out"])
        .into_iter()
        .map(|(_, data)| data["children"][0]["child"].as_str().expect("a text").to_owned())
        .collect();
    // The one that is made least often comes first, as soon as it can.
    assert_eq!(made, ["c/build/1", "c/polish/1", "c/polish.2/1"]);
}

#[tokio::test]
async fn a_workflow_may_be_its_own_child_up_to_a_depth() {
    let log = Log::new();
    let plans = Scripted::from_fn(|_, _| Ok(ModelResponse::text(r#"["again"]"#)));
    let mut journey = Journey::new("deeper", "plans", "parent", "sums_up");
    journey.fan_in.on_partial_failure = OnPartialFailure::FailAll;
    let flow = Flow::builder("parent").agent(log.agent("plans", plans)).journey(journey);
    let flow = flow.agent(log.agent("sums_up", Passthrough::new())).router(First);
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Failed);
    let error = report.error.unwrap().to_string();
    assert!(error.contains("inside of each other"), "{error}");
}

#[test]
fn what_is_wrong_with_journeys_is_said_when_the_flow_is_built() {
    let log = Log::new();
    let ghost = Journey::new("build", "ghost", "nowhere", "nobody");
    let mut circle = Journey::new("circle", "plans", "child", "sums_up");
    circle.requires = vec!["circle".into(), "unknown".into()];
    circle.fan_in.inject_as = " ".to_owned();
    let mut subrun = journey();
    subrun.fan_out.spawn_mode = SpawnMode::GeneratorSubrun;
    subrun.fan_out.workflow = None;
    let error = parent(&log, json!([]), [ghost, circle, subrun]).build().unwrap_err().to_string();
    for part in [
        "trigger agent `ghost`",
        "resume agent `nobody`",
        "no workflow `nowhere`",
        "requires `unknown`",
        "requires itself",
        "inject_as is empty",
        "another journey has the same id",
        "generator_subrun needs a generator_workflow",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_children_cost_is_counted_however_the_journey_ends() {
    // The child that asks twice: its first agent answers, its second one does what is asked.
    let two = Flow::builder("child").agent(agent("a", Scripted::new(["thinks"; 9])));
    let model = |request: &ModelRequest, _| match request.messages.last().map(|it| it.text()) {
        Some("a: thinks") => Err(ModelError::new(ModelErrorKind::Auth, "it broke")),
        _ => Ok(ModelResponse::text("well")),
    };
    let two = two.agent(agent("b", Scripted::from_fn(model))).max_turns(2);
    let two = two.build().expect("a flow");
    for (policy, status) in [
        (OnPartialFailure::FailAll, ChatStatus::Failed),
        (OnPartialFailure::ResumeWithAvailable, ChatStatus::Completed),
    ] {
        let log = Log::new();
        let mut journey = journey();
        journey.fan_in.on_partial_failure = policy;
        let flow = parent(&log, json!(["x", "y"]), [journey]).workflow(two.clone());
        let report = flow.build().expect("a flow").run("go").await;
        assert_eq!(report.status, status, "{:?}", report.error);
        // The plan, one answer in each child, and the sum where it comes to that.
        let calls = if status == ChatStatus::Failed { 3 } else { 4 };
        assert_eq!(report.usage.calls, calls, "{policy:?}");
    }
}

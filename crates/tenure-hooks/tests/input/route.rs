//! Requests that go elsewhere.

use crate::support::refused;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::agent::{Agent, AgentRegistry};
use tenure_core::ask::{Answer, Ask};
use tenure_core::event::EventBus;
use tenure_core::hook::{self, Flow, hook};
use tenure_core::model::{ModelErrorKind, ModelResponse, Usage};
use tenure_core::step::MemoryStepLog;
use tenure_core::{CancelToken, Outcome};
use tenure_hooks::input::{Route, Way};
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Failing, Hanging, Passthrough, Scripted, Slow};
use tenure_testkit::Recorder;

type Agents = Arc<AgentRegistry>;

fn desk(agents: &Agents, route: Route) -> Agent {
    let desk = Agent::builder("desk").model(Passthrough::new()).registry(agents.clone());
    desk.with_lifecycle(route).build().expect("it works here")
}

fn billing(agents: &Agents, said: &str) -> Agent {
    let said = said.to_owned();
    let model = Scripted::from_fn(move |_, _| {
        Ok(ModelResponse::text(said.clone()).with_usage(Usage::new(30, 12)))
    });
    Agent::builder("billing").model(model).registry(agents.clone()).build().expect("it works here")
}

fn to_billing() -> Route {
    Route::new()
        .way(Way::to_agent("money", "billing").matching("(?i)invoice").expect("it works here"))
}

async fn start(agents: &[&Agent]) {
    for agent in agents {
        agent.startup().await.expect("it works here");
    }
}

async fn stop(agents: &[&Agent]) {
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn another_agent_answers_and_what_it_costs_is_part_of_the_turn() {
    let agents = Agents::default();
    let (other, desk) = (billing(&agents, "Paid."), desk(&agents, to_billing()));
    start(&[&other, &desk]).await;
    let report = desk.run("Where is my invoice?").await.unwrap();
    assert_eq!((report.output(), report.steps), ("Paid.", 0));
    assert_eq!(report.usage.total(), 42);
    assert_eq!(desk.usage().total(), 42);
    // The other agent keeps the conversation, and so does this one.
    assert_eq!(other.history().len(), 2);
    assert_eq!(report.history().last().unwrap().text(), "Paid.");
    assert_eq!(desk.run("hello").await.unwrap().output(), "hello");
    stop(&[&desk, &other]).await;
}

#[tokio::test]
async fn the_answer_of_another_agent_is_streamed() {
    let agents = Agents::default();
    let (other, desk) = (billing(&agents, "It is paid."), desk(&agents, to_billing()));
    start(&[&other, &desk]).await;
    let mut stream = desk.stream("invoice");
    let mut said = String::new();
    while let Some(piece) = stream.next().await {
        said.push_str(&piece);
    }
    assert_eq!(said, "It is paid.");
    assert_eq!(stream.finish().await.unwrap().output(), "It is paid.");
    stop(&[&desk, &other]).await;
}

#[tokio::test]
async fn a_condition_routes_and_one_that_cannot_be_decided_fails_the_turn() {
    let agents = Agents::default();
    let way = Way::to_agent("money", "billing").when("input | length > 10").unwrap();
    let (other, front) = (billing(&agents, "Paid."), desk(&agents, Route::new().way(way)));
    start(&[&other, &front]).await;
    assert_eq!(front.run("a long question").await.unwrap().output(), "Paid.");
    assert_eq!(front.run("short").await.unwrap().output(), "short");
    stop(&[&front]).await;
    let way = Way::to_agent("money", "billing").when("variables.team == 'x'").unwrap();
    let front = desk(&agents, Route::new().way(way));
    start(&[&front]).await;
    let error = front.run("hello").await.unwrap_err();
    assert!(error.to_string().contains("variables.team"), "{error}");
    stop(&[&front, &other]).await;
}

#[tokio::test]
async fn a_model_chooses_a_label_and_is_asked_again_if_it_gives_none() {
    let agents = Agents::default();
    let (bus, recorder) = Recorder::with_bus();
    let chooser = Scripted::empty()
        .text("the one about money")
        .text(r#"{"label": "sales"}"#)
        .text(r#"{"label": "money"}"#)
        .text("nothing")
        .error(ModelErrorKind::Overloaded, "busy")
        .text("nothing at all");
    let route = Route::new()
        .way(Way::to_agent("money", "billing").about("Bills and refunds"))
        .way(Way::here("chat").about("Everything else"))
        .classify_with(chooser)
        .attempts(3);
    let other = billing(&agents, "Paid.");
    let desk = Agent::builder("desk")
        .model(Passthrough::new())
        .registry(agents.clone())
        .events(&bus)
        .with_lifecycle(route)
        .build()
        .unwrap();
    start(&[&other, &desk]).await;
    let report = desk.run("What do I owe?").await.unwrap();
    assert_eq!(report.output(), "Paid.");
    // Three calls of the chooser, and the other agent's.
    assert_eq!(report.usage.calls, 4);
    // A chooser that fails and says nothing of use leaves the request where it is.
    assert_eq!(desk.run("Good day").await.unwrap().output(), "Good day");
    assert_eq!(recorder.count("route.chosen"), 1);
    stop(&[&desk, &other]).await;
}

#[tokio::test]
async fn what_nothing_takes_goes_the_default_way() {
    let agents = Agents::default();
    let route = Route::new()
        .way(Way::to_agent("money", "billing").about("Bills"))
        .classify_with(Failing::new(ModelErrorKind::Overloaded))
        .otherwise("money");
    let (other, desk) = (billing(&agents, "Paid."), desk(&agents, route));
    start(&[&other, &desk]).await;
    assert_eq!(desk.run("anything").await.unwrap().output(), "Paid.");
    stop(&[&desk, &other]).await;
}

#[tokio::test]
async fn another_model_may_answer_for_the_agent() {
    let bench = Bench::new().with_model(
        "deep",
        Scripted::from_fn(|request, _| {
            Ok(ModelResponse::text(format!("thought about {}", request.messages.len())))
        }),
    );
    let with = json!({ "ways": [{ "label": "deep", "matches": ["prove"], "model": "deep" }] });
    let hook = ready::find("route").unwrap().make(&with, &bench).unwrap();
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(hook).build().unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("prove it").await.unwrap().output(), "thought about 1");
    assert_eq!(agent.run("hello").await.unwrap().output(), "hello");
    agent.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_an_error_that_says_who_is() {
    let agents = Agents::default();
    let (other, front) = (billing(&agents, "Paid."), desk(&agents, to_billing()));
    let way = Way::to_agent("x", "biling").matching("invoice").unwrap();
    let typo = Agent::builder("typo")
        .model(Passthrough::new())
        .registry(agents.clone())
        .with_lifecycle(Route::new().way(way))
        .build()
        .unwrap();
    start(&[&other, &front, &typo]).await;
    let error = typo.run("invoice").await.unwrap_err().to_string();
    assert!(error.contains("`biling`") && error.contains("there are: billing, desk"), "{error}");
    stop(&[&front, &other, &typo]).await;
    let alone = Agent::builder("alone").model(Passthrough::new()).with_lifecycle(to_billing());
    let error = format!("{:?}", alone.build().unwrap().startup().await.unwrap_err());
    assert!(error.contains("in no registry"), "{error}");
}

#[tokio::test]
async fn requests_that_would_go_round_are_refused() {
    let agents = Agents::default();
    let hop = |name: &'static str, to: &str, depth| {
        let way = Way::to_agent("on", to).matching(".").unwrap();
        Agent::builder(name)
            .model(Passthrough::new())
            .registry(agents.clone())
            .with_lifecycle(Route::new().way(way).max_depth(depth))
            .build()
            .unwrap()
    };
    let (a, b) = (hop("a", "b", 3), hop("b", "a", 3));
    start(&[&a, &b]).await;
    let error = a.run("hello").await.unwrap_err().to_string();
    assert!(error.contains("circle: a -> b -> a"), "{error}");
    stop(&[&a, &b]).await;
    let (c, d, e) = (hop("c", "d", 1), hop("d", "e", 1), billing(&agents, "x"));
    start(&[&c, &d, &e]).await;
    let error = c.run("hello").await.unwrap_err().to_string();
    assert!(error.contains("`max_depth` is 1"), "{error}");
    stop(&[&c, &d, &e]).await;
}

#[tokio::test]
async fn what_the_other_agent_fails_with_fails_the_turn() {
    let agents = Agents::default();
    let other = Agent::builder("billing")
        .model(Failing::new(ModelErrorKind::Auth).saying("no key"))
        .registry(agents.clone())
        .build()
        .unwrap();
    let desk = desk(&agents, to_billing());
    start(&[&other, &desk]).await;
    let error = desk.run("invoice").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert!(error.to_string().contains("`billing` did not answer: no key"), "{error}");
    stop(&[&desk, &other]).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_is_given_up() {
    let agents = Agents::default();
    let other =
        Agent::builder("billing").model(Hanging::new()).registry(agents.clone()).build().unwrap();
    let desk = desk(&agents, to_billing().limit(Duration::from_secs(3)));
    start(&[&other, &desk]).await;
    let error = desk.run("invoice").await.unwrap_err();
    assert!(error.to_string().contains("did not end within its limit"), "{error}");
    other.ready().await.unwrap();
    stop(&[&desk, &other]).await;
}

#[tokio::test]
async fn a_cancel_reaches_the_other_agent() {
    for recorded in [false, true] {
        let agents = Agents::default();
        let (bus, mut recorder) = Recorder::with_bus();
        let other = Agent::builder("billing")
            .model(Hanging::new())
            .registry(agents.clone())
            .events(&bus)
            .build()
            .unwrap();
        let desk = desk(&agents, to_billing());
        start(&[&other, &desk]).await;
        let token = CancelToken::new();
        let mut request = desk.request("invoice").cancel_on(&token);
        if recorded {
            request = request.steps(MemoryStepLog::new());
        }
        let cancel = async {
            recorder.wait_for(|event| event.name() == "model.started").await.unwrap();
            token.cancel();
        };
        let (ended, ()) = futures_util::future::join(request.run(), cancel).await;
        assert!(ended.unwrap_err().is_cancelled());
        let ended = recorder.wait_for(|event| event.name() == "agent.turn.ended").await.unwrap();
        let ended = serde_json::to_value(&*ended).unwrap().to_string();
        assert!(ended.contains("cancelled"), "{ended}");
        other.ready().await.unwrap();
        stop(&[&desk, &other]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_other_agent_waits_for_a_person_no_time_counts() {
    let agents = Agents::default();
    let bus = EventBus::new();
    let asks = hook::before_agent(|cx, _| {
        Box::pin(async move {
            match cx.ask(Ask::approval("May I?", json!({}))).await? {
                Answer::Approve => Ok(Flow::Continue),
                _ => Ok(Flow::Finish("no".into())),
            }
        })
    });
    let other = Agent::builder("billing")
        .model(Scripted::new(["Paid."]))
        .registry(agents.clone())
        .events(&bus)
        .with_lifecycle(hook(asks).named("asks"))
        .build()
        .unwrap();
    let _listener = bus.subscribe(usize::MAX);
    let desk = desk(&agents, to_billing().limit(Duration::from_secs(1)));
    start(&[&other, &desk]).await;
    let answer = async {
        // Longer than the hook has.
        tokio::time::sleep(Duration::from_secs(1000)).await;
        let ask = other.pending_asks().remove(0);
        other.answer(&ask.id, Answer::Approve);
    };
    let (report, ()) = futures_util::future::join(desk.run("invoice"), answer).await;
    assert_eq!(report.unwrap().output(), "Paid.");
    stop(&[&desk, &other]).await;
}

#[tokio::test]
async fn a_run_that_goes_on_has_the_other_agent_answer_once() {
    // What both agents have said before is known to the second life only by the record.
    let calls = Arc::new(AtomicUsize::new(0));
    let log = MemoryStepLog::new();
    let mut total = 0;
    let mut cut = 0;
    loop {
        let agents = Agents::default();
        let counting = calls.clone();
        let model = Scripted::from_fn(move |request, _| {
            counting.fetch_add(1, Ordering::Relaxed);
            Ok(ModelResponse::text(format!("Paid, after {}.", request.messages.len())))
        });
        let other =
            Agent::builder("billing").model(model).registry(agents.clone()).build().unwrap();
        let chooser = Scripted::from_fn(|_, _| Ok(ModelResponse::text(r#"{"label": "money"}"#)));
        let route = Route::new()
            .way(Way::to_agent("money", "billing").about("Bills"))
            .classify_with(chooser);
        let desk = desk(&agents, route);
        start(&[&other, &desk]).await;
        if cut == 0 {
            other.run("before").await.unwrap();
            calls.store(0, Ordering::Relaxed);
            let report = desk.request("owed?").steps(log.clone()).run().await.unwrap();
            assert_eq!(report.output(), "Paid, after 3.");
            assert_eq!(calls.load(Ordering::Relaxed), 1);
            total = log.keys().len();
        } else {
            calls.store(0, Ordering::Relaxed);
            let steps = log.cut_after(cut);
            let was_made = steps
                .keys()
                .iter()
                .any(|key| &*key.kind == "model" && key.path.contains("route:billing"));
            let begun = steps.keys().iter().any(|key| key.path.contains("route:billing"));
            let report = desk.request("owed?").steps(steps).run().await.unwrap();
            let after = if begun { "Paid, after 3." } else { "Paid, after 1." };
            assert_eq!(report.output(), after, "cut {cut} of {total}");
            assert_eq!(calls.load(Ordering::Relaxed), usize::from(!was_made), "cut {cut}");
            assert!(report.usage.calls >= 1, "cut {cut}");
        }
        stop(&[&desk, &other]).await;
        cut += 1;
        if cut > total {
            break;
        }
    }
    assert!(total >= 5, "{total}");
}

#[tokio::test]
async fn a_run_that_goes_on_uses_the_model_that_was_chosen() {
    let build = || {
        let way = Way::to_model("deep", Scripted::from_fn(|_, _| Ok(ModelResponse::text("deep"))));
        let route = Route::new().way(way.matching("prove").unwrap());
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(route).build().unwrap()
    };
    let log = MemoryStepLog::new();
    let agent = build();
    agent.startup().await.unwrap();
    agent.request("prove it").steps(log.clone()).run().await.unwrap();
    agent.shutdown().await;
    for cut in 0..=log.keys().len() {
        let agent = build();
        agent.startup().await.unwrap();
        let report = agent.request("prove it").steps(log.cut_after(cut)).run().await.unwrap();
        assert_eq!(report.output(), "deep", "cut {cut}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_busy_agent_answers_on_a_fork() {
    let agents = Agents::default();
    let slow = Slow::of(Scripted::from_fn(|_, _| Ok(ModelResponse::text("Paid."))));
    let other = Agent::builder("billing")
        .model(slow.by(Duration::from_millis(300)))
        .registry(agents.clone())
        .build()
        .unwrap();
    let desk = desk(&agents, to_billing());
    start(&[&other, &desk]).await;
    let both = futures_util::future::join(other.run("direct"), desk.run("invoice")).await;
    assert_eq!(both.0.unwrap().output(), "Paid.");
    assert_eq!(both.1.unwrap().output(), "Paid.");
    stop(&[&desk, &other]).await;
}

#[test]
fn options_are_checked() {
    let way = |more: serde_json::Value| json!({ "ways": [more] });
    assert_eq!(refused("route", json!({})), "ways");
    assert_eq!(refused("route", way(json!({ "agent": "b" }))), "ways[0].label");
    let both = json!({ "label": "x", "agent": "b", "model": "passthrough" });
    assert_eq!(refused("route", way(both)), "ways[0].model");
    let unknown = json!({ "label": "x", "model": "nobody" });
    assert_eq!(refused("route", way(unknown)), "ways[0].model");
    let when = json!({ "label": "x", "agent": "b", "when": "inptu" });
    assert_eq!(refused("route", way(when)), "ways[0].when");
    let twice = json!([{ "label": "x", "agent": "b" }, { "label": "x", "agent": "c" }]);
    assert_eq!(refused("route", json!({ "ways": twice })), "ways[1].label");
    let no_about = json!({ "ways": [{ "label": "x", "agent": "b" }], "model": "passthrough" });
    assert_eq!(refused("route", no_about), "ways[0].about");
    let default = json!({ "ways": [{ "label": "x", "agent": "b" }], "default": "y" });
    assert_eq!(refused("route", default), "default");
    let zero = json!({ "ways": [{ "label": "x", "agent": "b" }], "max_depth": 0 });
    assert_eq!(refused("route", zero), "max_depth");
    let model = json!({ "ways": [{ "label": "x", "about": "x" }], "model": "nobody" });
    assert_eq!(refused("route", model), "model");
    for (field, value) in [("prompt", json!("Choose.")), ("attempts", json!(2))] {
        let mut alone = json!({ "ways": [{ "label": "x", "about": "x", "agent": "b" }] });
        alone[field] = value;
        assert_eq!(refused("route", alone.clone()), field, "without a model that chooses");
        alone["model"] = "passthrough".into();
        assert!(ready::find("route").unwrap().make(&alone, &Bench::new()).is_ok(), "{alone}");
    }
}

#[test]
fn an_agent_that_will_not_be_there_is_refused_where_that_is_known() {
    let with = json!({ "ways": [
        { "label": "here", "matches": ["x"] },
        { "label": "money", "matches": ["invoice"], "agent": "billng" },
    ] });
    let route = ready::find("route").unwrap();
    let refused = route.make(&with, &Bench::new().agents(["desk", "billing"])).unwrap_err();
    assert_eq!(refused.field(), "ways[1].agent");
    let said = "there is no agent `billng` among those that are loaded: billing, desk";
    assert_eq!(refused.message(), said);
    assert!(route.make(&with, &Bench::new().agents(["desk", "billng"])).is_ok());
    assert!(route.make(&with, &Bench::new()).is_ok(), "nobody knows yet");
}

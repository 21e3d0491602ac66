//! How a chat goes that nobody disturbs.

use crate::engine::support::{Log, Plan, Spy, agent, said};
use serde_json::json;
use tenure_core::event::EventKind;
use tenure_flow::contract::Stage;
use tenure_flow::route::RoundRobin;
use tenure_flow::{ChatStatus, Flow};
use tenure_models::{Passthrough, Scripted};

#[tokio::test]
async fn agents_speak_in_turn_and_hear_each_other() {
    let echo = |name| agent(name, Passthrough::new());
    let flow = Flow::builder("two").agent(echo("a")).agent(echo("b")).router(RoundRobin);
    let report = flow.max_turns(3).build().expect("a flow").run("hello").await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    let second = "hello\na: hello";
    let third = "b: hello\na: hello";
    assert_eq!(said(&report), [("user", "hello"), ("a", "hello"), ("b", second), ("a", third)]);
    assert_eq!(report.variables["workflow_name"], "two");
    assert_eq!(report.turns, 3);
}

#[tokio::test]
async fn the_order_of_a_chat_is_told_by_its_events() {
    for count in [1, 2, 10] {
        let log = Log::new();
        let spy = Spy::default();
        let mut flow = Flow::builder("all").events(&log.bus).with_lifecycle(spy.clone());
        let names: Vec<_> = (0..count).map(|at| format!("a{at}")).collect();
        for name in &names {
            let own = log.builder(name, Passthrough::new()).with_lifecycle(spy.clone());
            flow = flow.agent(own.blueprint().expect("it can be built"));
        }
        let report = flow.max_turns(count).build().expect("a flow").run("hello").await;
        assert_eq!(report.status, ChatStatus::MaxTurns);
        // The chat's own entry and those of the agents: each once, around everything.
        let notes = spy.notes();
        let chats = count + 1;
        assert_eq!(spy.count("before_chat"), chats, "{notes:?}");
        assert_eq!(spy.count("after_chat max_turns"), chats, "{notes:?}");
        for name in &names {
            assert_eq!(spy.count(&format!("before_agent {name}")), 1, "{notes:?}");
            assert_eq!(spy.count(&format!("after_agent {name} ok")), 1, "{notes:?}");
        }
        let last = |what: &str| notes.iter().rposition(|note| note.starts_with(what)).unwrap();
        let first = |what: &str| notes.iter().position(|note| note.starts_with(what)).unwrap();
        assert!(last("start") < first("before_chat"), "{notes:?}");
        assert!(last("before_chat") < first("before_agent"), "{notes:?}");
        assert!(last("after_agent") < first("after_chat"), "{notes:?}");
        assert!(last("after_chat") < first("shutdown"), "{notes:?}");
        // Each turn is announced before it begins.
        let wanted = [
            "orchestrator.route",
            "select_speaker",
            "orchestrator.execute",
            "agent.turn.started",
            "agent.turn.ended",
            "chat.message",
        ];
        let events = log.names();
        let turns: Vec<_> = events.into_iter().filter(|name| wanted.contains(name)).collect();
        // The user's first message comes before, the route that finds no turn left after.
        assert_eq!(turns[0], "chat.message");
        for turn in turns[1..turns.len() - 1].chunks(wanted.len()) {
            assert_eq!(turn, wanted);
        }
        assert_eq!(turns.len(), 2 + count * wanted.len());
        assert_eq!(turns.last(), Some(&"orchestrator.route"));
    }
}

#[tokio::test]
async fn agents_stop_in_the_reverse_order_of_their_start() {
    let log = Log::new();
    let flow = Flow::builder("two").events(&log.bus).user(true);
    let flow =
        flow.agent(log.agent("a", Passthrough::new())).helper(log.agent("h", Passthrough::new()));
    let flow = flow.agent(log.agent("b", Passthrough::new())).router(Plan::new([]));
    flow.build().expect("a flow").run("hello").await;
    let (mut started, mut stopped) = (Vec::new(), Vec::new());
    for event in log.events() {
        match event.kind {
            EventKind::Startup { .. } => started.push(event.agent),
            EventKind::Shutdown { .. } => stopped.push(event.agent),
            _ => {}
        }
    }
    // Each is told when it begins and when it is over.
    started.dedup();
    stopped.dedup();
    stopped.reverse();
    let names: Vec<_> = started.iter().map(|name| &**name).collect();
    assert_eq!(names, ["two.workflow", "h", "a", "b", "user"]);
    assert_eq!(started, stopped);
}

#[tokio::test]
async fn the_same_script_gives_the_same_events() {
    let run = || async {
        let log = Log::new();
        let flow = Flow::builder("two").events(&log.bus);
        let flow = flow.agent(log.agent("a", Scripted::new(["one", "three"])));
        let flow = flow.agent(log.agent("b", Scripted::new(["two"]))).router(RoundRobin);
        flow.max_turns(3).build().expect("a flow").chat().id("same").message("go").run().await;
        let of = |event: tenure_core::event::Event| match event.kind {
            EventKind::Announced { name, mut data } => {
                if let Some(metrics) = data.get_mut("metrics") {
                    metrics["busy_ms"] = json!(null);
                }
                (name, data)
            }
            kind => (kind.name(), json!(null)),
        };
        log.events().into_iter().map(of).collect::<Vec<_>>()
    };
    let first = run().await;
    assert!(first.len() > 30, "{first:?}");
    assert_eq!(first, run().await);
}

#[tokio::test]
async fn the_report_is_complete_and_can_be_printed() {
    let flow = Flow::builder("one").agent(agent("a", Scripted::new(["done"])));
    let flow = flow.router(Plan::new(["a"])).build().expect("a flow");
    let chat = flow.chat().id("c1").user("u").app("p").message("go").variable("k", 1);
    let report = chat.run().await;
    assert_eq!((report.status, report.stage), (ChatStatus::Completed, Stage::Complete));
    let mut json = report.to_json();
    for key in ["duration_ms", "usage", "metrics"] {
        assert!(!json[key].is_null(), "{key}");
        json.as_object_mut().unwrap().remove(key);
    }
    json["turn_summaries"][0].as_object_mut().unwrap().remove("duration_ms");
    assert_eq!(
        json,
        json!({
            "workflow": "one", "chat_id": "c1", "status": "completed", "outcome": "ok",
            "error": null, "output": "done", "turns": 1, "stage": "complete", "failures": [],
            "messages": [
                { "speaker": "user", "text": "go", "turn": 0, "hidden": false },
                { "speaker": "a", "text": "done", "turn": 1, "hidden": false },
            ],
            "turn_summaries": [{ "agent": "a", "outcome": "ok", "error": null }],
            "routing": [
                { "target": "a", "reason": "the plan says so" },
                { "target": "terminate", "reason": "the plan says so" },
            ],
            "variables": {
                "k": 1, "chat_id": "c1", "app_id": "p", "user_id": "u", "workflow_name": "one",
            },
        })
    );
}

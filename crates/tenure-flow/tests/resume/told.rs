//! What a chat announces over all lives of its run: everything once, in one unbroken stream.

use crate::resume::mortal::{Death, Desk, Mortal};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::build::HookCatalog;
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::context::{ChatCx, ToolCx, TurnCx};
use tenure_core::drive::Input;
use tenure_core::event::{EventBus, EventKind, Received, Subscriber};
use tenure_core::hook::{AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::step::{MemoryStepLog, StepLog, Steps, WhenWaiting};
use tenure_core::tool::{Effect, FnTool, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_flow::journey::Journey;
use tenure_flow::lifecycle::{self, Hosts, LifecycleTool, Run, Trigger};
use tenure_flow::people::UiTool;
use tenure_flow::route::handoff::{HandoffRule, Source};
use tenure_flow::route::{Pattern, Routing, Target};
use tenure_flow::variables::{
    Definition, Kind, Source as From, State, Transition, Trigger as On, Variables,
};
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_hosts::{Environment, Interpreter, PythonConfig, PythonHost};
use tenure_models::{Passthrough, Scripted, Silent};

/// A tool that asks in the middle of its work.
struct AsksWithin;

#[async_trait]
impl Tool for AsksWithin {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("paint", "Paints it.").effect(Effect::Idempotent)
    }

    async fn call(&self, cx: ToolCx<'_>, _: &Value) -> Result<ToolOutput, ToolError> {
        let answer = cx.ask(Ask::input("Which colour?")).await.map_err(ToolError::ends_turn)?;
        Ok(format!("painted {answer:?}").into())
    }
}

/// A lifecycle tool that asks.
struct Asks;

#[async_trait]
impl AgentLifecycle for Asks {
    fn points(&self) -> Points {
        Points::NONE.with(Point::BeforeChat).with(Point::BeforeAgent)
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Go, HookError> {
        cx.ask(Ask::input("Shall we begin?")).await?;
        Ok(Go::Continue)
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Go, HookError> {
        cx.ask(Ask::input("Which project?")).await?;
        Ok(Go::Continue)
    }
}

/// The first time the model asks for the tool, and then it says what that gave.
fn calls(tool: &'static str) -> Scripted {
    Scripted::from_fn(move |request: &ModelRequest, _| match request.messages.last() {
        Some(Message::Tool(result)) => Ok(ModelResponse::text(result.content.clone())),
        _ => Ok(ModelResponse::calls([ToolCall::new("c1", tool, "{}")])),
    })
}

fn blueprint(mut agent: AgentBuilder, attached: tenure_cards::build::Attached) -> Blueprint {
    assert!(attached.problems.is_empty(), "{:?}", attached.problems);
    for entry in attached.entries {
        agent = agent.with_lifecycle(entry.registration);
    }
    agent.blueprint().expect("it is complete")
}

/// Who answers questions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum People {
    /// Whoever has the log.
    Elsewhere,
    /// Somebody in this process.
    Here,
}

fn answer(asked: &PendingAsk) -> Option<Answer> {
    let found = QUESTIONS.iter().find(|(prompt, _)| asked.ask.prompt.contains(prompt));
    found.map(|(_, answer)| Answer::Respond((*answer).to_owned()))
}

/// Three agents and a person: the first only speaks, the second has a tool before it that asks, a
/// tool that asks and one that is shown, the third sums up.
fn flow(bus: &EventBus, people: People) -> Flow {
    let notes = lifecycle::function("notes", |_| Box::pin(async { Ok(json!("noted")) }));
    let catalog = HookCatalog::new().register("asks", Asks).register("notes", notes);
    let tool = |trigger: Trigger, agent: Option<&str>, name: &str| {
        let run = Run::Use { name: name.to_owned(), with: json!({}), places: Default::default() };
        let mut tool = LifecycleTool::new(trigger, format!("{name}_{trigger}"), run);
        tool.agent = agent.map(Into::into);
        tool
    };
    let tools = [
        tool(Trigger::BeforeChat, None, "notes"),
        tool(Trigger::BeforeChat, None, "asks"),
        tool(Trigger::BeforeAgent, Some("second"), "asks"),
        tool(Trigger::AfterAgent, None, "notes"),
        tool(Trigger::AfterChat, None, "notes"),
    ];
    let here = std::env::current_dir().expect("there is one");
    let python = PythonHost::new(PythonConfig {
        interpreter: Interpreter::find(&here).expect("there is a Python"),
        environment: Environment::new(),
        dir: here.clone(),
        limits: Default::default(),
        modules: Default::default(),
        start_check: None,
    });
    let environment = Environment::new();
    let hosts = Hosts::new(&python, &environment, &catalog);
    let mut spoken = State::new(false);
    let matches = tenure_flow::variables::Pattern::Contains("start".to_owned());
    let trigger = On::AgentText { agent: "first".to_owned(), matches, ui_hidden: false };
    spoken.triggers = vec![Transition::new(trigger)];
    let mut form = State::new("");
    let trigger = On::UiResponse { tool: "form".to_owned(), response_key: None };
    form.triggers = vec![Transition::new(trigger)];
    let definitions = vec![
        Definition::new("spoken", Kind::Bool, From::State(spoken)),
        Definition::new("form", Kind::Str, From::State(form)),
    ];
    let variables = Variables::new(definitions, Vec::new(), &here, &here).expect("they are good");
    let variables = Arc::new(variables);
    let filled = FnTool::new(
        ToolSpec::new("form", "Fill it in?").effect(Effect::Idempotent),
        |_: &Value| Ok("filled".into()),
    );
    let filled =
        UiTool::new(Arc::new(filled) as Arc<dyn Tool>).on_response(variables.ui_response("form"));
    let agent = |name: &str, builder: AgentBuilder| {
        let builder = match people {
            People::Elsewhere => builder.events(bus),
            People::Here => builder.events(bus).on_ask(answer),
        };
        blueprint(builder, lifecycle::of_agent(&tools, name, hosts))
    };
    let routing = Routing::new(Pattern::Default).handoffs([
        HandoffRule::after(Source::Agent("first".into()), Target::Agent("fills".into())),
        HandoffRule::after(Source::Agent("fills".into()), Target::Agent("second".into())),
        HandoffRule::after(Source::Agent("second".into()), Target::User),
        HandoffRule::after(Source::User, Target::Agent("third".into())),
        HandoffRule::after(Source::Agent("third".into()), Target::End),
    ]);
    let host = Agent::builder("talk.workflow").model(Silent::new()).events(bus);
    let flow = match people {
        People::Elsewhere => Flow::builder("talk"),
        People::Here => Flow::builder("talk").on_ask(answer),
    };
    flow.host(blueprint(host, lifecycle::of_chat(&tools, hosts)))
        .agent(agent("first", Agent::builder("first").model(Passthrough::new())))
        .agent(agent("fills", Agent::builder("fills").model(calls("form")).tool(filled)))
        .agent(agent("second", Agent::builder("second").model(calls("paint")).tool(AsksWithin)))
        .agent(agent("third", Agent::builder("third").model(Passthrough::new())))
        .variables(variables)
        .user(true)
        .greeting("Welcome")
        .initial_agent("first")
        .router(routing.router().expect("a router"))
        .events(bus)
        .build()
        .expect("a flow")
}

async fn life(log: impl StepLog, people: People) -> (ChatReport, Vec<(String, Value)>) {
    let bus = EventBus::new();
    let mut events = bus.watch(10_000);
    let flow = flow(&bus, people);
    let steps = Steps::new(Arc::new(log));
    let chat =
        flow.chat().id("c").message("start").recorded(&steps).when_waiting(WhenWaiting::Park);
    let report = tokio::time::timeout(Duration::from_secs(30), chat.run()).await.expect("it ends");
    (report, announced(&mut events))
}

/// What was announced, without what differs from time to time.
fn announced(events: &mut Subscriber) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    while let Some(Received::Event(event)) = events.try_recv() {
        if let EventKind::Announced { name, data } = &event.kind {
            let mut data = data.clone();
            if let Some(fields) = data.as_object_mut() {
                for timed in ["elapsed_ms", "metrics", "result"] {
                    fields.remove(timed);
                }
            }
            all.push(((*name).to_owned(), data));
        }
    }
    all
}

fn statuses(told: &[(String, Value)]) -> Vec<String> {
    let all = told.iter().filter(|(name, _)| name == "chat.status");
    all.filter_map(|(_, data)| data["status"].as_str().map(str::to_owned)).collect()
}

/// Without what each life says of itself: its state, and calls that were paused and made again.
fn unbroken(told: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    for (name, data) in told {
        match name.as_str() {
            "chat.status" => {}
            "lifecycle.tool_paused" => {
                let (last, _) = all.pop().expect("it was called");
                assert_eq!(last, "lifecycle.tool_call");
            }
            _ => all.push((name, data)),
        }
    }
    all
}

const QUESTIONS: [(&str, &str); 5] = [
    ("Shall we begin?", "yes"),
    ("Fill it in?", "done"),
    ("Which project?", "Apollo"),
    ("Which colour?", "red"),
    // The person's own turn is asked with what the agent before them said.
    ("second: painted Respond(\"red\")", "go on"),
];

#[tokio::test]
async fn a_chat_that_is_parked_again_and_again_announces_everything_once() {
    let desk = Desk::new();
    for (question, answer) in QUESTIONS {
        desk.answer(question, answer);
    }
    let (report, whole) = life(desk, People::Elsewhere).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let mut desk = Desk::new();
    let mut all = Vec::new();
    for (question, answer) in QUESTIONS {
        let (report, told) = life(desk.clone(), People::Elsewhere).await;
        assert_eq!(report.status, ChatStatus::Paused, "{question}: {:?}", report.error);
        // A question of an earlier life may be put again, and is answered at once.
        let statuses = statuses(&told).join(" ");
        let fits = ["running paused", "running paused running paused"];
        assert!(fits.contains(&&*statuses), "{question}: {statuses}");
        for name in ["orchestrator.failed", "lifecycle.tool_error"] {
            assert!(told.iter().all(|(it, _)| it != name), "{question}: {told:#?}");
        }
        all.extend(told);
        desk.answer(question, answer);
        desk = desk.resumed();
    }
    let (report, told) = life(desk, People::Elsewhere).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(statuses(&told), ["running", "paused", "running", "completed"]);
    all.extend(told);
    assert_eq!(unbroken(all), unbroken(whole));
}

#[tokio::test]
async fn a_chat_whose_process_died_announces_no_turn_twice() {
    let log = MemoryStepLog::new();
    let (report, whole) = life(log.clone(), People::Here).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let of_turns = |told: &[(String, Value)]| -> Vec<(String, Value)> {
        let names = ["select_speaker", "chat.message", "context.changed", "ui_tool.response"];
        let told = told.iter().filter(|(name, _)| names.contains(&name.as_str()));
        told.cloned().collect()
    };
    let steps = log.keys().len();
    for cut in 1..steps {
        let log = MemoryStepLog::new();
        let bus = EventBus::new();
        let mut events = bus.watch(10_000);
        let mortal = Mortal::new(log.clone(), cut, Death::Before);
        {
            let flow = flow(&bus, People::Here);
            let recorded = Steps::new(Arc::new(mortal.clone()));
            let chat = flow.chat().id("c").message("start").recorded(&recorded).run();
            tokio::select! {
                () = mortal.died() => {}
                report = chat => panic!("{cut}: it ended: {:?}", report.error),
            }
        }
        let mut told = announced(&mut events);
        let (report, rest) = life(log.resumed(), People::Here).await;
        assert_eq!(report.status, ChatStatus::Completed, "{cut}: {:?}", report.error);
        told.extend(rest);
        assert_eq!(of_turns(&told), of_turns(&whole), "{cut}");
    }
}

/// A plan whose parts are chats: one asks, the other does not.
fn journey(bus: &EventBus) -> Flow {
    let agent = |name: &str, model: Scripted| Agent::builder(name).model(model).events(bus);
    let child = |name: &str, builder: AgentBuilder| {
        let routing = Routing::new(Pattern::Default);
        let flow = Flow::builder(name).agent(builder.blueprint().expect("it is complete"));
        let flow = flow.router(routing.router().expect("a router")).events(bus);
        flow.build().expect("a flow")
    };
    let plan = json!({ "tasks": [
        { "message": "x", "workflow": "asking" }, { "message": "y", "workflow": "working" },
    ] });
    let says = |text: String| Scripted::from_fn(move |_, _| Ok(ModelResponse::text(text.clone())));
    let routing = Routing::new(Pattern::Default);
    Flow::builder("parent")
        .agent(agent("plans", says(plan.to_string())).blueprint().expect("it is complete"))
        .agent(agent("sums_up", says("summed up".to_owned())).blueprint().expect("complete"))
        .router(routing.router().expect("a router"))
        .initial_agent("plans")
        .journey(Journey::new("both", "plans", "asking", "sums_up"))
        .workflow(child("asking", agent("asks", calls("paint")).tool(AsksWithin)))
        .workflow(child("working", agent("works", says("worked".to_owned()))))
        .events(bus)
        .build()
        .expect("a flow")
}

#[tokio::test]
async fn a_journey_whose_child_was_parked_is_announced_once() {
    let desk = Desk::new();
    let mut all = Vec::new();
    let mut last = None;
    for desk in [desk.clone(), desk.resumed()] {
        let bus = EventBus::new();
        let mut events = bus.watch(10_000);
        let flow = journey(&bus);
        let steps = Steps::new(Arc::new(desk.clone()));
        let chat = flow.chat().id("c").message("go").recorded(&steps);
        let chat = chat.when_waiting(WhenWaiting::Park).run();
        last = Some(tokio::time::timeout(Duration::from_secs(30), chat).await.expect("it ends"));
        all.extend(announced(&mut events));
        desk.answer("Which colour?", "red");
    }
    let report = last.expect("two lives");
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let journeys: Vec<_> = all
        .iter()
        .filter(|(name, _)| name.starts_with("journey."))
        .map(|(name, data)| format!("{name} {}", data["status"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        journeys,
        [
            "journey.fan_out ",
            "journey.child started",
            "journey.child started",
            "journey.child completed",
            "journey.child completed",
            "journey.fan_in "
        ]
    );
    let said = all.iter().filter(|(name, _)| name == "chat.message");
    let said: Vec<_> = said.filter_map(|(_, data)| data["speaker"].as_str()).collect();
    let mut sorted = said.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        ["asks", "plans", "sums_up", "system", "user", "user", "user", "works"],
        "{said:?}"
    );
}

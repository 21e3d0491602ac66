//! Two agents, a person and a journey: the host plans, two child chats work, the cook asks by a form, the person has a
//! turn, and the host has the last word.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::context::{ChatCx, InstanceCx};
use tenure_core::event::EventBus;
use tenure_core::hook::{AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{FnTool, Tool, ToolSpec};
use tenure_flow::Flow;
use tenure_flow::journey::Journey;
use tenure_flow::people::UiTool;
use tenure_flow::route::handoff::{HandoffRule, Source};
use tenure_flow::route::{Pattern, Routing, Target};
use tenure_flow::variables::{
    Definition, Kind, Pattern as Text, Source as From, State, Transition, Trigger, Variables,
};
use tenure_models::Scripted;

/// Has the start of an instance and the begin of a chat recorded.
struct Notes;

#[async_trait]
impl AgentLifecycle for Notes {
    fn points(&self) -> Points {
        Points::NONE.with(Point::OnStart).with(Point::BeforeChat).with(Point::AfterChat)
    }

    async fn on_start(&self, _: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Go, HookError> {
        let _: u32 = cx.step("note", async { Ok(1) }).await?;
        Ok(Go::Continue)
    }
}

/// The person: agrees to do again what may not have been done, and says the same to everything else.
fn answer(asked: &PendingAsk) -> Option<Answer> {
    let is_unknown = asked.ask.prompt.starts_with("the process stopped while");
    let text = if is_unknown { "again" } else { "with salt" };
    Some(Answer::Respond(text.to_owned()))
}

fn says(text: impl Into<String>) -> Scripted {
    let text = text.into();
    Scripted::from_fn(move |_, _| Ok(ModelResponse::text(text.clone())))
}

/// Plans, and once the person has spoken has the last word.
fn host() -> Scripted {
    let plan = json!({ "tasks": [
        { "message": "wash", "workflow": "washing" }, { "message": "cut", "workflow": "cutting" },
    ] });
    Scripted::from_fn(move |request: &ModelRequest, _| {
        let has_answer = request.messages.iter().any(|it| it.text().contains("with salt"));
        let text = if has_answer { "Enjoy.".to_owned() } else { plan.to_string() };
        Ok(ModelResponse::text(text))
    })
}

/// Calls the form, and says what that gave.
fn cook() -> Scripted {
    Scripted::from_fn(|request: &ModelRequest, _| match request.messages.last() {
        Some(Message::Tool(result)) => Ok(ModelResponse::text(result.content.clone())),
        _ => Ok(ModelResponse::calls([ToolCall::new("c1", "form", "{}")])),
    })
}

fn variables() -> Result<Arc<Variables>, Error> {
    let here = std::env::current_dir().expect("there is one");
    let mut planned = State::new(false);
    let matches = Text::Contains("tasks".to_owned());
    planned.triggers = vec![Transition::new(Trigger::AgentText {
        agent: "host".to_owned(),
        matches,
        ui_hidden: false,
    })];
    let mut form = State::new("");
    form.triggers =
        vec![Transition::new(Trigger::UiResponse { tool: "form".to_owned(), response_key: None })];
    let definitions = vec![
        Definition::new("planned", Kind::Bool, From::State(planned)),
        Definition::new("form", Kind::Str, From::State(form)),
    ];
    let variables = Variables::new(definitions, Vec::new(), &here, &here);
    Ok(Arc::new(variables.unwrap_or_else(|problems| panic!("{problems:?}"))))
}

fn child(name: &str, bus: &EventBus) -> Result<Flow, Error> {
    let agent =
        Agent::builder(format!("{name}_agent")).model(says(format!("{name} is done"))).events(bus);
    let router = Routing::new(Pattern::Default).router()?;
    Flow::builder(name).agent(agent.blueprint()?).router(router).events(bus).build()
}

pub(crate) fn parent(bus: &EventBus) -> Result<Flow, Error> {
    let variables = variables()?;
    let filled = FnTool::new(ToolSpec::new("form", "Fill it in?"), |_: &Value| Ok("filled".into()));
    let filled =
        UiTool::new(Arc::new(filled) as Arc<dyn Tool>).on_response(variables.ui_response("form"));
    let agent = |builder: AgentBuilder| {
        builder.events(bus).on_ask(answer).with_lifecycle(Notes).blueprint()
    };
    let routing = Routing::new(Pattern::Default).handoffs([
        HandoffRule::after(Source::Agent("host".into()), Target::End),
        HandoffRule::after(Source::Agent("cook".into()), Target::User),
        HandoffRule::after(Source::User, Target::Agent("host".into())),
    ]);
    let router = routing.router()?;
    Flow::builder("parent")
        .agent(agent(Agent::builder("host").model(host()))?)
        .agent(agent(Agent::builder("cook").model(cook()).tool(filled))?)
        .with_lifecycle(Notes)
        .variables(variables)
        .user(true)
        .on_ask(answer)
        .greeting("Welcome")
        .initial_agent("host")
        .journey(Journey::new("meal", "host", "washing", "cook"))
        .workflow(child("washing", bus)?)
        .workflow(child("cutting", bus)?)
        .router(router)
        .events(bus)
        .build()
}

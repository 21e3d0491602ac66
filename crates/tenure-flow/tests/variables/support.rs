//! What the tests of variables share.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tenure_cards::card::Environ;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::chat::Chat;
use tenure_core::event::{EventBus, EventKind, Received, Subscriber};
use tenure_core::hook;
use tenure_core::model::ModelResponse;
use tenure_flow::variables::{
    Definition, Exposure, Kind, Problem, RuntimeKeys, Session, Source, State, Variables,
};
use tenure_models::Scripted;

pub(crate) fn state(name: &str, kind: Kind, default: impl Into<Value>) -> Definition {
    Definition::new(name, kind, Source::State(State::new(default)))
}

/// Variables of a folder, with an environment that has nothing in it.
pub(crate) fn of_folder(
    folder: &std::path::Path,
    definitions: Vec<Definition>,
) -> Result<Variables, Vec<Problem>> {
    let root = folder.canonicalize().expect("the folder is there");
    Ok(Variables::new(definitions, Vec::new(), &root, &root)?.environ(Environ::empty()))
}

pub(crate) fn variables(definitions: Vec<Definition>) -> Variables {
    exposing(definitions, Vec::new())
}

pub(crate) fn exposing(definitions: Vec<Definition>, exposures: Vec<Exposure>) -> Variables {
    let here = std::env::current_dir().expect("there is one");
    let variables = Variables::new(definitions, exposures, &here, &here);
    variables.expect("they are good").environ(Environ::empty())
}

/// What is wrong, in words.
pub(crate) fn problems(definitions: Vec<Definition>) -> Vec<String> {
    let here = std::env::current_dir().expect("there is one");
    match Variables::new(definitions, Vec::new(), &here, &here) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

pub(crate) fn keys() -> RuntimeKeys {
    RuntimeKeys::new("shop", "app-1", "ada", "chat-1")
}

/// The values that a chat begins with.
pub(crate) async fn opened(variables: Variables) -> Result<BTreeMap<String, Value>, String> {
    let session = Arc::new(variables).open(keys(), BTreeMap::new()).await;
    session.map(|session| session.values()).map_err(|error| error.to_string())
}

/// A chat that nobody takes part in yet, and what it announces.
pub(crate) struct Stage {
    pub(crate) chat: Chat,
    pub(crate) session: Session,
    events: Subscriber,
}

impl Stage {
    pub(crate) async fn new(variables: Variables) -> Self {
        Self::of(Arc::new(variables)).await
    }

    pub(crate) async fn of(variables: Arc<Variables>) -> Self {
        let bus = EventBus::new();
        let events = bus.subscribe(1000);
        let host = Agent::builder("host").model(Scripted::empty()).events(&bus);
        let host = host.build().expect("it can be built");
        let session = variables.open(keys(), BTreeMap::new()).await.expect("it opens");
        let chat = Chat::declared("chat-1", variables, [host]);
        chat.set_variables(session.values());
        let system = [("workflow_name", "shop"), ("app_id", "app-1"), ("user_id", "ada")];
        chat.set_variables(system.map(|(name, value)| (name.to_owned(), value.into())));
        Self { chat, session, events }
    }

    pub(crate) fn get(&self, name: &str) -> Value {
        self.chat.variable(name).unwrap_or_default()
    }

    pub(crate) fn set(&self, name: &str, value: impl Into<Value>) -> Result<(), String> {
        let written = self.chat.context_variables().set(name, value);
        written.map_err(|error| error.to_string())
    }

    /// What `context.changed` said since the last look.
    pub(crate) fn changes(&mut self) -> Vec<Value> {
        announced(&mut self.events, "context.changed")
    }
}

pub(crate) fn announced(events: &mut Subscriber, wanted: &str) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(received) = events.try_recv() {
        let Received::Event(event) = received else { panic!("the queue is long enough") };
        if let EventKind::Announced { name, data } = &event.kind
            && *name == wanted
        {
            all.push(data.clone());
        }
    }
    all
}

/// An agent that says these things, and the instructions that its model got.
pub(crate) fn recording(
    name: &str,
    instruction: &str,
    answers: &[&str],
    variables: &Arc<Variables>,
) -> (Blueprint, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let answers: Vec<String> = answers.iter().map(|it| (*it).to_owned()).collect();
    let model = Scripted::from_fn({
        let seen = seen.clone();
        move |request, call| {
            let instruction = request.instruction.as_deref().unwrap_or_default();
            seen.lock().expect("it is whole").push(instruction.to_owned());
            Ok(ModelResponse::text(answers[call % answers.len()].clone()))
        }
    });
    let mut agent = Agent::builder(name).model(model).instruction(instruction);
    if let Some(exposure) = variables.exposure(name) {
        agent = agent.with_lifecycle(exposure);
    }
    (agent.blueprint().expect("it can be built"), seen)
}

/// A hook that sets a variable in `before_agent`.
pub(crate) fn sets(name: &'static str, value: Value) -> impl hook::AgentLifecycle {
    hook::before_agent(move |cx, _| {
        let value = value.clone();
        Box::pin(async move {
            if let Some(variables) = cx.chat_variables() {
                variables.set(name, value)?;
            }
            Ok(hook::Flow::Continue)
        })
    })
}

//! A workflow with everything in it, and what it does to the world.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tenure_cards::card::Environ;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_core::message::Message;
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::step::{StepLog, Steps};
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_core::{ExitReason, InstanceId};
use tenure_flow::journey::Journey;
use tenure_flow::nested::NestedFlow;
use tenure_flow::route::handoff::{HandoffRule, Source};
use tenure_flow::route::{Pattern, Routing, Selector, Target};
use tenure_flow::variables::{
    Computed, DataEntity, DataReference, Database, DatabaseError, Definition, Document, File,
    FileFormat, Index, Kind, PersistTo, Query, Refresh, Source as From, Sqlite, State, Variables,
};
use tenure_flow::{ChatReport, ChatRequest, Flow};
use tenure_models::Scripted;

/// What outlives every process: files, a database, and what was done.
#[derive(Clone)]
pub(crate) struct World {
    dir: Arc<TempDir>,
    /// What tools and databases did: their names.
    pub(crate) done: Arc<Mutex<Vec<String>>>,
    /// Calls of hooks: where, and the delivery.
    pub(crate) told: Arc<Mutex<Vec<(String, String)>>>,
    pub(crate) lives: Arc<Mutex<BTreeMap<InstanceId, (usize, usize)>>>,
    /// Questions that were asked.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let world = Self {
            dir: Arc::new(tempfile::tempdir().expect("a temporary folder")),
            done: Arc::default(),
            told: Arc::default(),
            lives: Arc::default(),
            asked: Arc::default(),
        };
        world.set_rate(1).await;
        world
    }

    fn shop(&self) -> Sqlite {
        Sqlite::new(self.dir.path().join("shop.sqlite"))
    }

    /// Changes what a chat reads when it begins.
    pub(crate) async fn set_rate(&self, rate: u64) {
        let rate_of = json!({ "name": "tea", "rate": rate });
        let document = rate_of.as_object().cloned().expect("it is an object");
        let by_name = Query::new().with("name", "tea");
        self.shop().put("rates", &by_name, &document).await.expect("it is written");
        let file = self.dir.path().join("terms.txt");
        std::fs::write(file, format!("rate {rate}")).expect("it is written");
    }

    /// What is in the database now.
    pub(crate) async fn profile(&self) -> Vec<Document> {
        self.shop().find("profiles", &Query::new(), 9).await.expect("it is read")
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.done.lock().expect("whole").iter().filter(|it| it.starts_with(what)).count()
    }

    /// How often hooks were called, by where; once for each delivery.
    pub(crate) fn deliveries(&self) -> BTreeMap<String, usize> {
        let mut told = self.told.lock().expect("whole").clone();
        told.sort();
        told.dedup();
        let mut counts = BTreeMap::new();
        for (place, _) in told {
            *counts.entry(place).or_insert(0) += 1;
        }
        counts
    }

    pub(crate) fn calls(&self) -> usize {
        self.told.lock().expect("whole").len()
    }

    fn variables(&self) -> Arc<Variables> {
        let mut rate = DataReference::new("shop", "rates");
        rate.query_template = json!({ "name": "tea" }).as_object().cloned().expect("an object");
        rate.fields = vec!["rate".to_owned()];
        let mut latest = rate.clone();
        latest.refresh = Refresh::PerPhase;
        let mut asks = Computed::new("phase == 'ask'");
        asks.persist_to = Some(PersistTo::new("shop", "sums"));
        let definitions = vec![
            Definition::new("rate", Kind::Int, From::DataReference(rate)),
            Definition::new("latest", Kind::Int, From::DataReference(latest)),
            Definition::new(
                "profile",
                Kind::Dict,
                From::DataEntity(DataEntity::new("shop", "profiles")),
            ),
            Definition::new(
                "terms",
                Kind::Str,
                From::File(File::new("terms.txt", FileFormat::Text)),
            ),
            Definition::new("phase", Kind::Str, From::State(State::new("plan"))),
            Definition::new("found", Kind::Str, From::State(State::new(""))),
            Definition::new("asks", Kind::Bool, From::Computed(asks)),
        ];
        let root = self.dir.path().canonicalize().expect("it is there");
        let variables = Variables::new(definitions, Vec::new(), &root, &root);
        let variables = variables.unwrap_or_else(|problems| panic!("{problems:?}"));
        let shop = Counted { inner: self.shop(), world: self.clone() };
        Arc::new(variables.environ(Environ::empty()).database("shop", Arc::new(shop)))
    }

    fn agent(&self, name: &str, model: fn(&ModelRequest) -> ModelResponse) -> AgentBuilder {
        let model = Scripted::from_fn(move |request, _| Ok(model(request)));
        Agent::builder(name).model(model).with_lifecycle(Spy(self.clone()))
    }

    fn tool(&self, name: &'static str, effect: Effect, answer: &'static str) -> Does {
        Does { world: self.clone(), name, effect, answer }
    }

    /// The workflow, as a new process builds it.
    pub(crate) fn flow(&self) -> Flow {
        let child = self.agent("does", |request| match last(request) {
            Said::Tool(result) => ModelResponse::text(json!({ "made": result }).to_string()),
            Said::Person(text) => call("make", json!({ "part": text })),
        });
        let child = child.tool(self.tool("make", Effect::Keyed, "made it"));
        let child = Flow::builder("child")
            .agent(child.blueprint().expect("it is complete"))
            .router(Routing::new(Pattern::Default).router().expect("a router"))
            .build()
            .expect("a flow");
        let inner = self.agent("finds", |request| match last(request) {
            Said::Tool(result) => ModelResponse::text(format!("it is {result}")),
            Said::Person(_) => call("look", json!({})),
        });
        let inner = inner.tool(self.tool("look", Effect::Keyed, "a pot")).on_ask({
            let world = self.clone();
            move |ask: &PendingAsk| Some(world.answer(ask))
        });
        let inner = Flow::builder("inner")
            .agent(inner.blueprint().expect("it is complete"))
            .router(Routing::new(Pattern::Default).router().expect("a router"))
            .with_lifecycle(Spy(self.clone()))
            .build()
            .expect("a flow");
        let sub = NestedFlow::new(inner).inputs(["terms"]).outputs(["found"]).agent("sub");
        let sub = sub.with_lifecycle(Spy(self.clone()));
        let planner = self.agent("planner", |_| {
            let tasks = json!({ "tasks": [{ "message": "lid" }, { "message": "spout" }] });
            ModelResponse::text(tasks.to_string())
        });
        let worker = self.agent("worker", |request| match last(request) {
            Said::Tool(_) => ModelResponse::text("worked"),
            Said::Person(_) => ModelResponse::calls([
                tenure_core::message::ToolCall::new("c1", "charge", "{}"),
                tenure_core::message::ToolCall::new("c2", "note", "{}"),
            ]),
        });
        let worker = worker
            .tool(self.tool("charge", Effect::AtMostOnce, "charged"))
            .tool(self.tool("note", Effect::Idempotent, "noted"));
        let closer = self.agent("closer", |request| {
            let heard = request.messages.iter().map(Message::text).collect::<Vec<_>>().join("|");
            ModelResponse::text(format!("closed after {heard}"))
        });
        let judge = Scripted::from_fn(|_, _| Ok(ModelResponse::text("1")));
        let judge = Selector::agent("judge").model(judge).with_lifecycle(Spy(self.clone()));
        let agent = |name: &str| Source::Agent(name.into());
        let to = |name: &str| Target::Agent(name.into());
        let routing = Routing::new(Pattern::Default)
            .handoffs([
                HandoffRule::when(agent("worker"), Target::User, "${phase} == 'ask'")
                    .expect("good"),
                HandoffRule::after(Source::User, to("sub")),
                HandoffRule::judged(agent("sub"), to("closer"), "It was found.").expect("good"),
                HandoffRule::after(agent("closer"), Target::End),
            ])
            .selector(Selector::new("judge"));
        let world = self.clone();
        let blueprint = |it: AgentBuilder| it.blueprint().expect("it is complete");
        let worker = worker.on_ask({
            let world = self.clone();
            move |ask: &PendingAsk| Some(world.answer(ask))
        });
        Flow::builder("trip")
            .agent(blueprint(planner))
            .agent(blueprint(worker))
            .agent(blueprint(sub))
            .agent(blueprint(closer))
            .helper(blueprint(judge))
            .user(true)
            .on_ask(move |ask: &PendingAsk| Some(world.answer(ask)))
            .with_lifecycle(Spy(self.clone()))
            .router(routing.router().expect("a router"))
            .initial_agent("planner")
            .journey(Journey::new("build", "planner", "child", "worker"))
            .workflow(child)
            .variables(self.variables())
            .max_turns(9)
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// What the person says. Of a call whose outcome nobody knows they say what it would have.
    fn answer(&self, ask: &PendingAsk) -> Answer {
        let prompt = ask.ask.prompt.clone();
        let answer = match prompt.contains("nobody knows") {
            true => "charged",
            false => "go on",
        };
        self.asked.lock().expect("whole").push(prompt);
        Answer::Respond(answer.to_owned())
    }

    /// One life of the run.
    pub(crate) fn chat(&self, log: impl StepLog) -> ChatRequest {
        let steps = Steps::new(Arc::new(log));
        self.flow().chat().id("c").app("app").user("ada").message("start").recorded(&steps)
    }
}

enum Said {
    Person(String),
    Tool(String),
}

fn last(request: &ModelRequest) -> Said {
    match request.messages.last() {
        Some(Message::Tool(result)) => Said::Tool(result.content.text().to_owned()),
        Some(other) => Said::Person(other.text().to_owned()),
        None => Said::Person(String::new()),
    }
}

fn call(tool: &str, arguments: Value) -> ModelResponse {
    ModelResponse::calls([tenure_core::message::ToolCall::new("c1", tool, arguments.to_string())])
}

/// A tool that does something to the world.
struct Does {
    world: World,
    name: &'static str,
    effect: Effect,
    answer: &'static str,
}

#[async_trait]
impl Tool for Does {
    fn spec(&self) -> ToolSpec {
        let any = json!({ "type": "object", "additionalProperties": true });
        ToolSpec::new(self.name, "Does something").parameters(any).effect(self.effect)
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let key = cx.idempotency_key();
        self.world.done.lock().expect("whole").push(format!("{} {key}", self.name));
        if let Some(variables) = cx.chat_variables() {
            match self.name {
                "note" => variables.update([
                    ("phase".to_owned(), "ask".into()),
                    ("profile".to_owned(), json!({ "paid": 3 })),
                ])?,
                "look" => variables.set("found", "in the kitchen")?,
                _ => {}
            }
        }
        Ok(ToolOutput::text(match arguments["part"].as_str() {
            Some(part) => format!("{} {part}", self.answer),
            None => self.answer.to_owned(),
        }))
    }
}

/// A real database, whose writes are counted.
struct Counted {
    inner: Sqlite,
    world: World,
}

impl Counted {
    fn note(&self, what: String) {
        self.world.done.lock().expect("whole").push(what);
    }
}

#[async_trait]
impl Database for Counted {
    async fn find(
        &self,
        collection: &str,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Document>, DatabaseError> {
        self.note(format!("find {collection}"));
        self.inner.find(collection, query, limit).await
    }

    async fn insert(&self, collection: &str, document: &Document) -> Result<(), DatabaseError> {
        self.note(format!("insert {collection}"));
        self.inner.insert(collection, document).await
    }

    async fn update(
        &self,
        collection: &str,
        query: &Query,
        fields: &Document,
    ) -> Result<usize, DatabaseError> {
        self.note(format!("update {collection}"));
        self.inner.update(collection, query, fields).await
    }

    async fn put(
        &self,
        collection: &str,
        query: &Query,
        document: &Document,
    ) -> Result<(), DatabaseError> {
        self.note(format!("put {collection}"));
        self.inner.put(collection, query, document).await
    }

    async fn index(&self, collection: &str, index: &Index) -> Result<(), DatabaseError> {
        self.inner.index(collection, index).await
    }
}

/// Writes down every call, and knows a delivery when it sees it again.
#[derive(Clone)]
pub(crate) struct Spy(pub(crate) World);

impl Spy {
    fn note(&self, place: String, delivery: String) {
        self.0.told.lock().expect("whole").push((place, delivery));
    }
}

#[async_trait]
impl AgentLifecycle for Spy {
    fn points(&self) -> Points {
        Points::NONE
            .with(Point::OnStart)
            .with(Point::BeforeChat)
            .with(Point::BeforeAgent)
            .with(Point::AfterAgent)
            .with(Point::AfterChat)
            .with(Point::OnShutdown)
    }

    fn name(&self) -> &str {
        "spy"
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.0.lives.lock().expect("whole").entry(cx.instance_id()).or_default().0 += 1;
        Ok(())
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Go, HookError> {
        self.note(format!("before_chat {}", cx.agent_name()), cx.delivery_id());
        Ok(Go::Continue)
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _input: &mut Input) -> Result<Go, HookError> {
        self.note(format!("before_agent {}", cx.agent_name()), cx.delivery_id());
        Ok(Go::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.note(format!("after_agent {} {}", cx.agent_name(), end.outcome()), cx.delivery_id());
        Ok(After::Done)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        self.note(format!("after_chat {} {}", cx.agent_name(), end.outcome), cx.delivery_id());
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        self.0.lives.lock().expect("whole").entry(cx.instance_id()).or_default().1 += 1;
        Ok(())
    }
}

/// Everything of a report that has to be the same however often the process died.
pub(crate) fn shape(report: &ChatReport) -> Value {
    let decisions: Vec<_> = report.routing.iter().map(|it| json!(it)).collect();
    json!({
        "status": report.status,
        "error": report.error.as_ref().map(ToString::to_string),
        "output": report.output,
        "messages": report.messages,
        "turns": report.turns,
        "speakers": report.turn_summaries.iter().map(|it| json!(it.agent)).collect::<Vec<_>>(),
        "routing": decisions,
        "variables": report.variables,
        "usage": report.usage,
    })
}

/// A flow of one agent that speaks once.
pub(crate) fn small(name: &str, agent: AgentBuilder) -> tenure_flow::FlowBuilder {
    let agent = agent.blueprint().expect("it is complete");
    let router = Routing::new(Pattern::Default).router().expect("a router");
    Flow::builder(name).agent(agent).router(router)
}

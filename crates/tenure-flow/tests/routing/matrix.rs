//! What is guaranteed around every chat and every turn: for 1, 2 and 10 agents, each pattern, each
//! end, with and without a person.

use crate::routing::support::*;
use async_trait::async_trait;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, InstanceCx, ModelCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::{Event, EventKind};
use tenure_core::hook::{After, AgentLifecycle, Flow as Go, HookError, Points};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::phase::AgentState;
use tenure_core::{CancelToken, Error, ExitReason};
use tenure_flow::route::handoff::HandoffRule;
use tenure_flow::route::{Pattern, RouteCx, Router, Routing, RoutingDecision, Selector};
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_models::Scripted;
use tenure_testkit::Recorder;

/// What happened, in the words of the hooks.
type Diary = Arc<Mutex<Vec<String>>>;

/// Writes down every call, and asks the person in the middle of every third turn.
struct Keeper {
    diary: Diary,
    asks: bool,
    turns: Arc<AtomicUsize>,
}

impl Keeper {
    fn write(&self, agent: &str, what: &str) {
        self.diary.lock().expect("no test failed").push(format!("{what} {agent}"));
    }
}

#[async_trait]
impl AgentLifecycle for Keeper {
    fn points(&self) -> Points {
        use tenure_core::hook::Point::*;
        [OnStart, OnShutdown, BeforeChat, AfterChat, BeforeAgent, AfterAgent]
            .into_iter()
            .fold(Points::NONE, Points::with)
    }

    fn name(&self) -> &str {
        "keeper"
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.write(cx.agent_name(), "on_start");
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        self.write(cx.agent_name(), "on_shutdown");
        Ok(())
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Go, HookError> {
        self.write(cx.agent_name(), "before_chat");
        Ok(Go::Continue)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        self.write(cx.agent_name(), &format!("after_chat {}", end.outcome));
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Go, HookError> {
        self.write(cx.agent_name(), "before_agent");
        if self.asks && self.turns.load(Ordering::Acquire) % 3 == 1 {
            let answer = cx.ask(Ask::input("may I?")).await?;
            assert_eq!(answer, Answer::Respond("well".to_owned()));
        }
        Ok(Go::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, _: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.write(cx.agent_name(), "after_agent");
        Ok(After::Done)
    }
}

/// Speaks until it is the last turn, and then does what the end needs.
struct Actor {
    turns: Arc<AtomicUsize>,
    last: usize,
    end: ChatStatus,
    token: CancelToken,
}

#[async_trait]
impl Model for Actor {
    async fn call(&self, _: &ModelRequest, _: ModelCx<'_>) -> Result<ModelResponse, ModelError> {
        let turn = self.turns.fetch_add(1, Ordering::AcqRel) + 1;
        match self.end {
            ChatStatus::Failed if turn == self.last => {
                Err(ModelError::new(ModelErrorKind::Other, "it broke"))
            }
            ChatStatus::Cancelled if turn == self.last => {
                self.token.cancel();
                std::future::pending().await
            }
            _ => Ok(ModelResponse::text(format!("turn {turn}"))),
        }
    }

    fn name(&self) -> &str {
        "actor"
    }
}

/// Goes round or by chance until it is the last turn: these two have no end of their own.
struct Until {
    inner: Arc<dyn Router>,
    last: usize,
}

#[async_trait]
impl Router for Until {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        match cx.turn >= self.last {
            true => Ok(RoutingDecision::end("it is enough")),
            false => self.inner.route(cx).await,
        }
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    agents: usize,
    pattern: Pattern,
    end: ChatStatus,
    person: bool,
}

impl Case {
    /// The turn in which the chat ends: not before the person had theirs in a round.
    fn last(self) -> usize {
        self.agents.max(3) + 4
    }

    fn names(self) -> Vec<String> {
        (0..self.agents).map(|at| format!("agent_{at}")).collect()
    }

    /// Handoffs that go round, through the person if there is one, and end after the last turn.
    fn rules(self) -> Vec<HandoffRule> {
        let names = self.names();
        let mut rules = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let next = &names[(at + 1) % names.len()];
            rules.push(when(name, "terminate", &format!("${{turn}} >= {}", self.last())));
            if self.person {
                rules.push(when(name, "user", "${turn} in [2, 5]"));
            }
            rules.push(after(name, next));
        }
        rules
    }

    fn router(self) -> Arc<dyn Router> {
        let routing = Routing::new(self.pattern).selector(Selector::new(SELECTOR));
        let router = routing.handoffs(self.rules()).router().expect("a router");
        let last = match (self.end, self.pattern) {
            (ChatStatus::Completed, Pattern::RoundRobin | Pattern::Random) => self.last(),
            _ => usize::MAX,
        };
        Arc::new(Until { inner: router, last })
    }

    /// Picks agents by turns, the person after the second and fifth turn, and the end after the
    /// last; one answer in between is nonsense.
    fn picks(self) -> impl Model {
        let names = self.names();
        let asked = AtomicUsize::new(0);
        let (person, last) = (self.person, self.last());
        let ends = self.end == ChatStatus::Completed;
        Scripted::from_fn(move |request, _| {
            let question = request.messages.iter().next().expect("a question").text();
            let at = asked.fetch_add(1, Ordering::AcqRel);
            let spoken = question.matches("] turn ").count();
            Ok(ModelResponse::text(match spoken {
                _ if at == 1 => "nonsense".to_owned(),
                spoken if ends && spoken >= last => "terminate".to_owned(),
                2 | 5 if person && question.contains("- user") => "user".to_owned(),
                spoken => names[spoken % names.len()].clone(),
            }))
        })
    }
}

/// Runs a case; the answer is the report, all events in order, and the diary.
async fn run(case: Case) -> (ChatReport, Vec<Arc<Event>>, Vec<String>) {
    let (bus, recorder) = Recorder::with_bus();
    let diary = Diary::default();
    let turns = Arc::new(AtomicUsize::new(0));
    let token = CancelToken::new();
    let keeper = |asks| Keeper { diary: diary.clone(), asks, turns: turns.clone() };
    let answers = |_: &PendingAsk| Some(Answer::Respond("well".to_owned()));
    let mut flow = Flow::builder("stage").with_lifecycle(keeper(false)).events(&bus);
    for name in case.names() {
        // The number of the turn, for the handoffs.
        let counts = Counts(turns.clone());
        let (turns, token) = (turns.clone(), token.clone());
        let actor = Actor { turns, last: case.last(), end: case.end, token };
        let agent = Agent::builder(name)
            .model(actor)
            .with_lifecycle(keeper(case.person))
            .with_lifecycle(counts)
            .on_ask(answers)
            .events(&bus);
        flow = flow.agent(built(agent));
    }
    let helper = Selector::agent(SELECTOR).model(case.picks()).events(&bus);
    let most = if case.end == ChatStatus::MaxTurns { case.last() - 2 } else { 50 };
    let flow = flow
        .helper(built(helper))
        .router(case.router())
        .max_turns(most)
        .user(case.person)
        .on_ask(answers)
        .build()
        .expect("a flow");
    let chat = flow.chat().message("go").variable("turn", 0).seed(3).cancel_on(&token);
    let report = tokio::time::timeout(std::time::Duration::from_secs(30), chat.run()).await;
    let report = report.unwrap_or_else(|_| panic!("{case:?} does not end"));
    let diary = diary.lock().expect("no test failed").clone();
    (report, recorder.events(), diary)
}

/// Keeps the number of turns in a variable.
struct Counts(Arc<AtomicUsize>);

#[async_trait]
impl AgentLifecycle for Counts {
    fn points(&self) -> Points {
        tenure_core::hook::Point::AfterAgent.into()
    }

    async fn after_agent(&self, cx: TurnCx<'_>, _: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let variables = cx.chat_variables().expect("it is a chat");
        variables.set("turn", self.0.load(Ordering::Acquire))?;
        Ok(After::Done)
    }
}

/// The places of the events that this is true of.
fn places(events: &[Arc<Event>], is: impl Fn(&Event) -> bool) -> Vec<usize> {
    events.iter().enumerate().filter(|(_, event)| is(event)).map(|(at, _)| at).collect()
}

fn is_hook(event: &Event, point: &str) -> bool {
    matches!(&event.kind, EventKind::HookEnded { hook, point: at, .. }
        if &**hook == "keeper" && at.as_str() == point)
}

fn proves(case: Case, report: &ChatReport, events: &[Arc<Event>], diary: &[String]) {
    let log = || format!("{case:?}\n{}", log(events));
    let named = |name: &'static str| places(events, move |event| event.name() == name);
    assert_eq!(report.status, case.end, "{:?}\n{}", report.error, log());
    let times = |what: &str| diary.iter().filter(|line| *line == what).count();

    // The chat's own, and each agent's: once, with the outcome.
    let outcome = match case.end {
        ChatStatus::Completed => "ok",
        ChatStatus::Failed => "failed",
        ChatStatus::Cancelled => "cancelled",
        _ => "max_turns",
    };
    let members = || case.names().into_iter().chain(["stage.workflow".to_owned()]);
    for member in members() {
        assert_eq!(times(&format!("before_chat {member}")), 1, "{member} {}", log());
        assert_eq!(times(&format!("after_chat {outcome} {member}")), 1, "{member} {}", log());
    }
    assert_eq!(diary.iter().filter(|line| line.starts_with("after_chat")).count(), case.agents + 1);

    // before_chat < first turn < last turn < after_chat < the end of the chat < first shutdown.
    let before_chat = places(events, |event| is_hook(event, "before_chat"));
    let after_chat = places(events, |event| is_hook(event, "after_chat"));
    let selects = named("select_speaker");
    let turn_ends = named("agent.turn.ended");
    let first_stop = named("agent.shutdown")[0];
    assert!(before_chat.last() < selects.first(), "{}", log());
    assert!(turn_ends.last() < after_chat.first(), "{}", log());
    let ended = named("chat.ended");
    assert_eq!(ended.len(), 1, "{}", log());
    assert!(*after_chat.last().expect("there is one") < ended[0], "{}", log());
    assert!(ended[0] < first_stop, "{}", log());
    let last_stage = places(events, |event| {
        ["orchestrator.complete", "orchestrator.failed", "orchestrator.cancelled"]
            .contains(&event.name())
    });
    assert_eq!(last_stage.len(), 1, "{}", log());
    assert!(ended[0] < last_stage[0] && last_stage[0] < first_stop, "{}", log());
    let last_status = named("chat.status").pop().expect("a status");
    assert_eq!(said(&events[last_status]), json!({ "status": case.end.as_str() }), "{}", log());

    each_turn(case, report, events, &selects);

    // Started in one order, stopped in the reverse; nobody is left.
    let changes = |state: AgentState| {
        let is = |event: &&Arc<Event>| match event.kind {
            EventKind::Startup { state: it } | EventKind::Shutdown { state: it, .. } => it == state,
            _ => false,
        };
        events.iter().filter(is).map(|event| event.agent.to_string()).collect::<Vec<_>>()
    };
    let started = changes(AgentState::Ready);
    let mut stopped = changes(AgentState::Terminated);
    stopped.reverse();
    assert_eq!(started, stopped, "{}", log());
    assert_eq!(started.len(), case.agents + 2 + usize::from(case.person), "{}", log());
    // The chat's own hooks have only the chat's points.
    for member in case.names() {
        assert_eq!(times(&format!("on_start {member}")), 1, "{member}");
        assert_eq!(times(&format!("on_shutdown {member}")), 1, "{member}");
    }
}

/// Each turn: chosen, announced, begun, ended once, and only then the next.
fn each_turn(case: Case, report: &ChatReport, events: &[Arc<Event>], selects: &[usize]) {
    let log = || format!("{case:?}\n{}", log(events));
    let is_speaker = |event: &Event| &*event.agent != SELECTOR;
    let begun = places(events, |event| event.name() == "agent.turn.started" && is_speaker(event));
    assert_eq!(begun.len(), selects.len(), "{}", log());
    let users = selects.iter().filter(|at| said(&events[**at])["agent"] == "user").count();
    assert_eq!(selects.len(), report.turns + users, "{}", log());
    if case.person {
        assert!(users > 0, "the person had a turn: {}", log());
        let asked = places(events, |event| event.name() == "ask.requested");
        assert!(asked.len() > users, "a hook asked in the middle: {}", log());
    }
    let chat_end = places(events, |event| event.name() == "chat.ended")[0];
    for (turn, at) in selects.iter().enumerate() {
        let until = selects.get(turn + 1).copied().unwrap_or(chat_end);
        let agent = &events[*at].agent;
        assert_eq!(said(&events[*at])["agent"], **agent);
        let part = &events[*at..until];
        let own = |name: &str| places(part, |it| it.name() == name && it.agent == *agent);
        let (begins, ends) = (own("agent.turn.started"), own("agent.turn.ended"));
        assert_eq!((begins.len(), ends.len()), (1, 1), "turn {turn} of {}", log());
        let after = places(part, |it| is_hook(it, "after_agent"));
        let before = places(part, |it| is_hook(it, "before_agent"));
        // The person's place has no such hook here.
        let hooks = usize::from(&**agent != "user");
        assert_eq!((before.len(), after.len()), (hooks, hooks), "turn {turn} of {}", log());
        if hooks == 1 {
            assert_eq!((&part[before[0]].agent, &part[after[0]].agent), (agent, agent));
            assert!(begins[0] < before[0] && before[0] < after[0] && after[0] < ends[0]);
        }
        let execute = places(part, |it| it.name() == "orchestrator.execute");
        assert_eq!(execute.len(), 1, "turn {turn} of {}", log());
        assert!(execute[0] < begins[0], "turn {turn} of {}", log());
        // It was routed before it was announced, and after the turn before had ended.
        let from = if turn == 0 { 0 } else { selects[turn - 1] };
        let routes = places(&events[from..*at], |it| it.name() == "orchestrator.route");
        assert_eq!(routes.len(), 1, "turn {turn} of {}", log());
    }
}

async fn all(agents: usize) {
    for pattern in Pattern::ALL {
        for end in
            [ChatStatus::Completed, ChatStatus::Failed, ChatStatus::Cancelled, ChatStatus::MaxTurns]
        {
            for person in [false, true] {
                let case = Case { agents, pattern, end, person };
                let (report, events, diary) = run(case).await;
                proves(case, &report, &events, &diary);
            }
        }
    }
}

#[tokio::test]
async fn the_guarantees_hold_for_one_agent_in_every_pattern_and_at_every_end() {
    all(1).await;
}

#[tokio::test]
async fn the_guarantees_hold_for_two_agents_in_every_pattern_and_at_every_end() {
    all(2).await;
}

#[tokio::test]
async fn the_guarantees_hold_for_ten_agents_in_every_pattern_and_at_every_end() {
    all(10).await;
}

//! What happens in a chat: one turn after the other.

use super::life::status;
use super::{Cast, ChatMessage, ChatReport, ChatStatus, Outcome as Kept, Speaker, TurnSummary};
use crate::contract::{OrchestratorMetrics, Stage, Stages};
use crate::flow::{Flow, StartupMode};
use crate::journey::Journeys;
use crate::route::{RouteCx, RoutingDecision, Target};
use crate::variables::Session;
use crate::wait::unless_cancelled;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;
use tenure_core::agent::Agent;
use tenure_core::chat::{Chat, ChatEnd};
use tenure_core::content::Content;
use tenure_core::hook::HookFailure;
use tenure_core::model::Usage;
use tenure_core::{Error, Outcome};

/// The turns of an ordinary chat: there is room for so many before anything has to grow.
const ROOM: usize = 32;

/// The place of the stages that a chat has once.
pub(super) const CHAT: &str = "chat";

/// A conversation, as far as it has come.
pub(crate) struct Talk {
    pub(super) flow: Flow,
    initial: Option<Arc<str>>,
    pub(crate) seed: u64,
    stages: Stages,
    pub(super) messages: Vec<ChatMessage>,
    /// Up to where each speaker has heard what was said.
    pub(super) heard: Vec<usize>,
    pub(super) turns: usize,
    pub(super) last_agent: Option<Arc<str>>,
    /// Whether the person had the last turn.
    pub(super) after_user: bool,
    /// How many turns the person had since an agent had one.
    pub(super) user_turns: usize,
    /// How often in a row the person said nothing.
    pub(super) silences: usize,
    /// What is decided already: nobody has to be asked who is next.
    pub(super) next: Option<RoutingDecision>,
    pub(super) summaries: Vec<TurnSummary>,
    routing: Vec<RoutingDecision>,
    pub(super) usage: Usage,
    pub(super) failures: Vec<HookFailure>,
    pub(super) metrics: OrchestratorMetrics,
    journeys: Journeys,
    /// What the chat has of the declared variables.
    pub(super) session: Option<Session>,
}

impl Talk {
    pub(crate) fn new(flow: Flow, initial: Option<Arc<str>>, seed: u64) -> Self {
        let room = flow.inner.max_turns.min(ROOM);
        Self {
            initial: initial.or_else(|| flow.inner.initial.clone()),
            seed,
            stages: Stages::new(),
            messages: Vec::with_capacity(room + 2),
            heard: vec![0; flow.inner.speakers.len()],
            turns: 0,
            last_agent: None,
            after_user: false,
            user_turns: 0,
            silences: 0,
            next: None,
            summaries: Vec::with_capacity(room),
            session: None,
            routing: Vec::with_capacity(room),
            usage: Usage::default(),
            failures: Vec::new(),
            metrics: OrchestratorMetrics::default(),
            journeys: Journeys::default(),
            flow,
        }
    }

    /// Whether there is somebody to begin: a chat may say itself who does.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let names = &self.flow.inner.names;
        match self.initial.as_ref().filter(|initial| !names.contains(initial)) {
            None => Ok(()),
            Some(initial) => {
                let known: Vec<_> = names.iter().map(|name| &**name).collect();
                Err(Error::invalid(format!(
                    "the chat's initial agent `{initial}` is none of the workflow's; there are: {}",
                    known.join(", ")
                )))
            }
        }
    }

    /// Enters a stage and announces it, at its place in the chat.
    pub(crate) fn enter(
        &mut self,
        cast: &Cast,
        place: &str,
        stage: Stage,
        data: impl FnOnce() -> Value,
    ) {
        match self.stages.enter(stage) {
            Ok(()) => cast.announce(place, stage.event_name(), data),
            // The loop below follows the table; this says so if somebody changes it.
            Err(illegal) => tracing::error!(flow = &*self.flow.inner.name, "{illegal}"),
        }
    }

    /// Talks until somebody ends it.
    pub(crate) async fn run(
        &mut self,
        chat: &Chat,
        cast: &Cast,
        message: Option<String>,
    ) -> Result<(), Error> {
        let flow = self.flow.clone();
        let flow = &*flow.inner;
        self.enter(
            cast,
            CHAT,
            Stage::Plan,
            || json!({ "pattern": flow.router.name(), "max_turns": flow.max_turns }),
        );
        self.open(cast, message)?;
        loop {
            match self.route(chat, cast).await? {
                Target::End => break,
                Target::User => Box::pin(self.ask_user(chat, cast)).await?,
                Target::Agent(name) => {
                    self.speak(chat, cast, name).await?;
                    if !flow.journeys.is_empty() {
                        Box::pin(self.travel(chat, cast)).await?;
                    }
                }
            }
        }
        if let Some(session) = &self.session {
            let finished = Box::pin(session.finish(chat));
            let finished = unless_cancelled(finished, &cast.token, || false).await;
            finished.unwrap_or_else(|| Err(Error::cancelled()))?;
        }
        let messages = self.messages.len();
        self.enter(cast, CHAT, Stage::Aggregate, || json!({ "messages": messages }));
        Ok(())
    }

    /// What is said before the first turn, and whether the person has it.
    ///
    /// | startup mode | greeting | initial message | nothing was said by the person |
    /// |---|---|---|---|
    /// | agent-driven | shown | hidden | the agents begin all the same |
    /// | user-driven | shown | shown, as what the person said | the person is asked first |
    /// | backend only | not said | hidden | the agents begin all the same |
    fn open(&mut self, cast: &Cast, message: Option<String>) -> Result<(), Error> {
        let flow = self.flow.inner.clone();
        if let Some(greeting) = &flow.greeting
            && flow.startup != StartupMode::BackendOnly
        {
            self.say(cast, ChatMessage::new(Speaker::System, &**greeting, 0));
        }
        if let Some(seed) = &flow.initial_message {
            let mut seed = ChatMessage::new(Speaker::User, &**seed, 0);
            seed.hidden = flow.startup != StartupMode::UserDriven;
            self.say(cast, seed);
        }
        let message = message.filter(|message| !message.trim().is_empty());
        let begins = flow.startup == StartupMode::UserDriven
            && flow.initial_message.is_none()
            && message.is_none();
        if begins && cast.user.is_none() {
            return Err(Error::orchestration(
                "the person begins this workflow, but there is no message to begin with, and no \
                 person takes part; give a message, or set human_in_the_loop",
            ));
        }
        if begins {
            self.next = Some(RoutingDecision::new(Target::User, "the person begins"));
        }
        if let Some(message) = message {
            self.say(cast, ChatMessage::new(Speaker::User, message, 0));
        }
        Ok(())
    }

    pub(crate) fn say(&mut self, cast: &Cast, message: ChatMessage) {
        let place = format_args!("message:{}", self.messages.len() + 1);
        cast.announce(place, "chat.message", || json!(message));
        self.messages.push(message);
    }

    /// Decides who is next. The decision is recorded, with its reason.
    async fn route(&mut self, chat: &Chat, cast: &Cast) -> Result<Target, Error> {
        let place = format!("route:{}", self.routing.len() + 1);
        let decision = match self.next.take() {
            Some(decided) => Some(decided),
            None => {
                let cx = RouteCx {
                    chat,
                    agents: &cast.names,
                    messages: &self.messages,
                    turn: self.turns,
                    last_agent: self.last_agent.as_ref(),
                    after_user: self.after_user,
                    initial: self.initial.as_ref(),
                    seed: self.seed,
                    cast,
                    place: &place,
                    announced: AtomicUsize::new(0),
                };
                let routed = self.flow.inner.router.route(&cx);
                let holds = || cast.is_consulting();
                match &cast.steps {
                    Some(steps) if !self.flow.inner.router.is_determined() => {
                        let kept = Kept::at(steps, place.as_str());
                        let routed = Box::pin(recorded(kept, cast, routed));
                        unless_cancelled(routed, &cast.token, holds).await.transpose()?
                    }
                    _ => unless_cancelled(routed, &cast.token, holds).await.transpose()?,
                }
            }
        };
        if cast.token.is_cancelled() {
            return Err(Error::cancelled());
        }
        let Some(decision) = decision else { return Err(Error::cancelled()) };
        let decision = self.within_reach(cast, decision);
        self.metrics.routing_decisions += 1;
        self.enter(cast, &place, Stage::Route, || json!(decision));
        let target = decision.target.clone();
        self.routing.push(decision);
        Ok(target)
    }

    /// Where nobody takes part who could be asked, a chat that comes to the person is complete.
    fn within_reach(&self, cast: &Cast, decision: RoutingDecision) -> RoutingDecision {
        if decision.target != Target::User || cast.user.is_some() {
            return decision;
        }
        let reason = format!("the person is next and takes no part ({})", decision.reason);
        RoutingDecision::end(reason)
    }

    /// The decision that the chat follows now.
    pub(super) fn decision(&self) -> Option<&RoutingDecision> {
        self.routing.last()
    }

    /// Says who is about to speak, before anything else of the turn at this place.
    pub(super) fn select(&self, cast: &Cast, place: &str, agent: &Agent, name: &str) {
        cast.announce_of(agent, place, "select_speaker", || {
            json!({
                "agent": name,
                "turn": self.turns,
                "previous": self.messages.last().map(|last| last.speaker.as_str()),
                "reason": self.decision().map(|decision| match &decision.target {
                    Target::Agent(chosen) if **chosen != *name => {
                        format!("it steps in for `{chosen}`, which failed").into()
                    }
                    _ => decision.reason.clone(),
                }),
            })
        });
    }

    /// The journeys that the last message begins, one after the other.
    async fn travel(&mut self, chat: &Chat, cast: &Cast) -> Result<(), Error> {
        let Some(last) = self.messages.last() else { return Ok(()) };
        // A turn that failed, and was passed over, has said nothing.
        if last.turn != self.turns || !matches!(last.speaker, Speaker::Agent(_)) {
            return Ok(());
        }
        let last = last.clone();
        let flow = self.flow.clone();
        let arrived = self.journeys.travel(&flow, chat, cast, &last, self.seed).await;
        self.usage += self.journeys.take_spent();
        if let Some(arrived) = arrived? {
            let mut message = ChatMessage::new(Speaker::System, arrived.told, self.turns);
            message.hidden = true;
            self.say(cast, message);
            self.next = Some(RoutingDecision::agent(arrived.resume_agent, arrived.reason));
        }
        Ok(())
    }

    /// The chat is left as it is, and waits for a person.
    pub(crate) fn pause(&mut self, cast: &Cast) {
        self.usage += cast.spent();
        cast.status.say(ChatStatus::Paused);
    }

    /// The last stage, after the chat's own ends.
    pub(crate) fn conclude(&mut self, cast: &Cast, end: &ChatEnd) {
        self.usage += cast.spent();
        let stage = match end.outcome {
            Outcome::Ok if self.stages.now() == Some(Stage::Aggregate) => Stage::Complete,
            // A hook finished the chat before it began.
            Outcome::Ok => {
                self.enter(cast, CHAT, Stage::Plan, || json!({ "finished": true }));
                self.enter(cast, CHAT, Stage::Aggregate, || json!({ "finished": true }));
                Stage::Complete
            }
            Outcome::Cancelled => Stage::Cancelled,
            _ => Stage::Failed,
        };
        let status = status(end);
        let (metrics, turns) = (self.metrics, self.turns);
        let reason = end.error.as_ref().map(ToString::to_string);
        self.enter(cast, CHAT, stage, || {
            json!({
                "status": status,
                "outcome": end.outcome,
                "turns": turns,
                "metrics": metrics,
                "reason": reason,
            })
        });
        cast.status.say(status);
    }

    pub(crate) fn report(
        self,
        chat_id: Arc<str>,
        end: ChatEnd,
        chat: Option<&Chat>,
        began: Instant,
    ) -> ChatReport {
        let said = self
            .messages
            .iter()
            .rev()
            .find(|message| matches!(message.speaker, Speaker::Agent(_)) && !message.hidden);
        let output = said.map(|message| message.text.to_string());
        let mut failures = chat.map(Chat::failures).unwrap_or_default();
        failures.extend(self.failures);
        ChatReport {
            flow: self.flow.inner.name.clone(),
            chat_id,
            status: status(&end),
            outcome: end.outcome,
            output: end.output.map(Content::into_text).or(output).unwrap_or_default(),
            error: end.error,
            messages: self.messages,
            turns: self.turns,
            turn_summaries: self.summaries,
            routing: self.routing,
            variables: chat.map(Chat::variables).unwrap_or_default(),
            usage: self.usage,
            failures,
            metrics: self.metrics,
            stage: self.stages.now().unwrap_or(Stage::Failed),
            duration: began.elapsed(),
        }
    }
}

/// The place of an agent's turn in the record of its chat.
pub(super) fn turn_place(turn: usize, name: &str, attempt: u32) -> String {
    match attempt {
        0 => format!("{turn}:{name}"),
        again => format!("{turn}:{name}~{again}"),
    }
}

/// A decision that does not follow from where the chat stands, as it was made the first time.
async fn recorded(
    kept: Kept,
    cast: &Cast,
    routed: impl Future<Output = Result<RoutingDecision, Error>>,
) -> Result<RoutingDecision, Error> {
    if let Some(decided) = kept.known::<Decided>().await? {
        cast.spend(decided.usage);
        return Ok(decided.decision());
    }
    cast.begin_routing();
    let decision = routed.await?;
    let decided = kept.keep(Decided::new(decision, cast.spent_on_routing())).await?;
    Ok(decided.decision())
}

/// A decision as it is recorded.
#[derive(Serialize, Deserialize)]
struct Decided {
    next: Next,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallback: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    metadata: Value,
    /// What helpers cost that were asked.
    #[serde(default)]
    usage: Usage,
}

/// An agent may have any name, that of the person too.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Next {
    Agent(Arc<str>),
    User,
    End,
}

impl Decided {
    fn new(decision: RoutingDecision, usage: Usage) -> Self {
        let next = match decision.target {
            Target::Agent(name) => Next::Agent(name),
            Target::User => Next::User,
            Target::End => Next::End,
        };
        let reason = decision.reason.into_owned();
        Self { next, reason, fallback: decision.fallback, metadata: decision.metadata, usage }
    }

    fn decision(self) -> RoutingDecision {
        let target = match self.next {
            Next::Agent(name) => Target::Agent(name),
            Next::User => Target::User,
            Next::End => Target::End,
        };
        let mut decision = RoutingDecision::new(target, self.reason);
        decision.fallback = self.fallback;
        decision.metadata = self.metadata;
        decision
    }
}

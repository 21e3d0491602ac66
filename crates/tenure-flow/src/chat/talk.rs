//! What happens in a chat: one turn after the other.

use super::life::status;
use super::{Cast, ChatMessage, ChatReport, Speaker, TurnSummary};
use crate::contract::{ErrorStrategy, OrchestratorMetrics, Stage, Stages};
use crate::flow::{Flow, StartupMode};
use crate::route::{RouteCx, RoutingDecision, Target};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use tenure_core::agent::Agent;
use tenure_core::chat::{Chat, ChatEnd};
use tenure_core::drive::{Input, TurnReport};
use tenure_core::hook::HookFailure;
use tenure_core::model::Usage;
use tenure_core::{Error, Outcome};

/// What an agent is told that is to speak again though nobody said anything.
const GO_ON: &str = "Continue.";

/// A conversation, as far as it has come.
pub(crate) struct Talk {
    flow: Flow,
    initial: Option<Arc<str>>,
    seed: u64,
    stages: Stages,
    messages: Vec<ChatMessage>,
    /// Up to where each speaker has heard what was said.
    heard: Vec<usize>,
    turns: usize,
    last_agent: Option<Arc<str>>,
    summaries: Vec<TurnSummary>,
    routing: Vec<RoutingDecision>,
    usage: Usage,
    failures: Vec<HookFailure>,
    metrics: OrchestratorMetrics,
}

impl Talk {
    pub(crate) fn new(flow: Flow, initial: Option<Arc<str>>, seed: u64) -> Self {
        let heard = vec![0; flow.inner.speakers.len()];
        Self {
            initial: initial.or_else(|| flow.inner.initial.clone()),
            flow,
            seed,
            stages: Stages::new(),
            messages: Vec::new(),
            heard,
            turns: 0,
            last_agent: None,
            summaries: Vec::new(),
            routing: Vec::new(),
            usage: Usage::default(),
            failures: Vec::new(),
            metrics: OrchestratorMetrics::default(),
        }
    }

    /// Enters a stage and announces it.
    pub(crate) fn enter(&mut self, cast: &Cast, stage: Stage, data: impl FnOnce() -> Value) {
        match self.stages.enter(stage) {
            Ok(()) => cast.host.announce(stage.event_name(), data),
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
        self.flow.inner.announce_status(cast, "running");
        let pattern = self.flow.inner.router.name().to_owned();
        let most = self.flow.inner.max_turns;
        self.enter(cast, Stage::Plan, || json!({ "pattern": pattern, "max_turns": most }));
        self.open(cast, message);
        loop {
            if cast.token.is_cancelled() {
                return Err(Error::cancelled());
            }
            let decision = self.route(chat, cast).await?;
            match decision.target.clone() {
                Target::End => break,
                Target::User => self.ask_user(chat, cast, &decision).await?,
                Target::Agent(name) => self.speak(chat, cast, &name, &decision).await?,
            }
        }
        let messages = self.messages.len();
        self.enter(cast, Stage::Aggregate, || json!({ "messages": messages }));
        Ok(())
    }

    /// What is said before the first turn.
    fn open(&mut self, cast: &Cast, message: Option<String>) {
        let flow = self.flow.inner.clone();
        if let Some(greeting) = &flow.greeting {
            self.say(cast, ChatMessage::new(Speaker::System, &**greeting, 0));
        }
        if let Some(seed) = &flow.initial_message {
            let mut seed = ChatMessage::new(Speaker::User, &**seed, 0);
            seed.hidden = flow.startup != StartupMode::UserDriven;
            self.say(cast, seed);
        }
        if let Some(message) = message {
            self.say(cast, ChatMessage::new(Speaker::User, message, 0));
        }
    }

    pub(crate) fn say(&mut self, cast: &Cast, message: ChatMessage) {
        cast.host.announce("chat.message", || json!(message));
        self.messages.push(message);
    }

    async fn route(&mut self, chat: &Chat, cast: &Cast) -> Result<RoutingDecision, Error> {
        let flow = self.flow.inner.clone();
        let cx = RouteCx {
            chat,
            agents: &cast.names,
            messages: &self.messages,
            turn: self.turns,
            last_agent: self.last_agent.as_ref(),
            initial: self.initial.as_ref(),
            seed: self.seed,
            cast,
        };
        let decision = flow.router.route(&cx).await?;
        self.metrics.routing_decisions += 1;
        self.enter(cast, Stage::Route, || json!(decision));
        self.routing.push(decision.clone());
        Ok(decision)
    }

    /// One turn of an agent, as the flow's strategy for failures has it.
    async fn speak(
        &mut self,
        chat: &Chat,
        cast: &Cast,
        name: &Arc<str>,
        decision: &RoutingDecision,
    ) -> Result<(), Error> {
        let mut name = name.clone();
        let mut attempt = 0;
        let mut fallback = decision.fallback.clone();
        loop {
            let Some(error) = self.attempt(chat, cast, &name, decision).await? else {
                return Ok(());
            };
            if error.is_cancelled() || cast.token.is_cancelled() {
                return Err(Error::cancelled());
            }
            let fails = |error: Error| {
                Err(Error::orchestration(format!("agent `{name}`: {error}")).because(error))
            };
            match self.flow.inner.strategy {
                _ if error.is_denied() => return fails(error),
                ErrorStrategy::FailFast => return fails(error),
                ErrorStrategy::Continue => {
                    self.last_agent = Some(name);
                    return Ok(());
                }
                ErrorStrategy::Retry { attempts, backoff } => {
                    if attempt >= attempts {
                        return fails(error);
                    }
                    tokio::time::sleep(backoff.saturating_mul(1 << attempt.min(16))).await;
                    attempt += 1;
                    self.metrics.retries += 1;
                }
                ErrorStrategy::Fallback => match fallback.take().filter(|it| *it != name) {
                    Some(other) => name = other,
                    None => return fails(error),
                },
            }
        }
    }

    /// One turn. `Some` is how it failed; an error is why there could not be one.
    async fn attempt(
        &mut self,
        chat: &Chat,
        cast: &Cast,
        name: &Arc<str>,
        decision: &RoutingDecision,
    ) -> Result<Option<Error>, Error> {
        let Some(at) = cast.names.iter().position(|it| it == name) else {
            let names: Vec<_> = cast.names.iter().map(|name| &**name).collect();
            let names = names.join(", ");
            return Err(Error::orchestration(format!(
                "`{name}` was chosen to speak, but there is no such agent; there are: {names}"
            )));
        };
        if cast.token.is_cancelled() {
            return Err(Error::cancelled());
        }
        let agent = &cast.speakers[at];
        if self.turns >= self.flow.inner.max_turns {
            return Err(Error::max_turns(self.flow.inner.max_turns));
        }
        self.turns += 1;
        let input = self.input(at, name);
        self.select(agent, name, decision);
        let turn = self.turns;
        self.enter(cast, Stage::Execute, || json!({ "agent": name, "turn": turn }));
        let result = agent.request(input).in_chat(chat).context(cast.context.clone()).run().await;
        Ok(match result {
            Ok(report) => {
                self.spoke(cast, name, &report);
                None
            }
            Err(error) => {
                self.failed(name, &error);
                Some(error)
            }
        })
    }

    /// What the agent has not heard yet: the last of it as the text, the rest before it.
    fn input(&mut self, at: usize, name: &str) -> Input {
        let new = &self.messages[self.heard[at]..];
        let mut heard: Vec<_> = new
            .iter()
            .filter(|message| message.speaker.as_str() != name)
            .map(ChatMessage::heard)
            .collect();
        self.heard[at] = self.messages.len();
        let text = heard.pop().unwrap_or_else(|| GO_ON.to_owned());
        Input::text(text).after(heard)
    }

    /// Says who is about to speak, before anything else of the turn.
    pub(crate) fn select(&self, agent: &Agent, name: &str, decision: &RoutingDecision) {
        agent.announce("select_speaker", || {
            json!({
                "agent": name,
                "turn": self.turns,
                "previous": self.messages.last().map(|last| last.speaker.as_str()),
                "reason": decision.reason,
            })
        });
    }

    fn spoke(&mut self, cast: &Cast, name: &Arc<str>, report: &TurnReport) {
        self.metrics.record_step(true, report.duration);
        self.usage += report.usage;
        self.failures.extend(report.failures.iter().cloned());
        self.summaries.push(TurnSummary {
            agent: name.clone(),
            outcome: report.outcome,
            duration: report.duration,
            error: None,
        });
        let speaker = Speaker::Agent(name.clone());
        let mut message = ChatMessage::new(speaker, report.output(), self.turns);
        message.hidden = self.flow.inner.hides(name);
        self.last_agent = Some(name.clone());
        self.say(cast, message);
    }

    fn failed(&mut self, name: &Arc<str>, error: &Error) {
        let report = error.report();
        let duration = report.map(|report| report.duration).unwrap_or_default();
        self.metrics.record_step(false, duration);
        if let Some(report) = report {
            self.usage += report.usage;
            self.failures.extend(report.failures.iter().cloned());
        }
        self.summaries.push(TurnSummary {
            agent: name.clone(),
            outcome: error.outcome(),
            duration,
            error: Some(error.clone()),
        });
    }

    /// The person's turn.
    async fn ask_user(
        &mut self,
        chat: &Chat,
        cast: &Cast,
        decision: &RoutingDecision,
    ) -> Result<(), Error> {
        let Some(user) = &cast.user else {
            return Err(Error::orchestration(
                "the person was chosen to speak, but the flow has none; say that it has a user",
            ));
        };
        self.select(user, "user", decision);
        self.enter(cast, Stage::Execute, || json!({ "agent": "user" }));
        let prompt = self.messages.last().map(|last| last.text.to_string()).unwrap_or_default();
        self.flow.inner.announce_status(cast, "paused");
        let request = user.request(prompt).in_chat(chat).context(cast.context.clone());
        let report = request.run().await?;
        self.flow.inner.announce_status(cast, "running");
        self.failures.extend(report.failures.iter().cloned());
        let text = report.output().trim();
        if !text.is_empty() {
            self.say(cast, ChatMessage::new(Speaker::User, text, self.turns));
        }
        Ok(())
    }

    /// The last stage, after the chat's own ends.
    pub(crate) fn conclude(&mut self, cast: &Cast, end: &ChatEnd) {
        let stage = match end.outcome {
            Outcome::Ok if self.stages.now() == Some(Stage::Aggregate) => Stage::Complete,
            // A hook finished the chat before it began.
            Outcome::Ok => {
                self.enter(cast, Stage::Plan, || json!({ "finished": true }));
                self.enter(cast, Stage::Aggregate, || json!({ "finished": true }));
                Stage::Complete
            }
            Outcome::Cancelled => Stage::Cancelled,
            _ => Stage::Failed,
        };
        let status = status(end);
        let (metrics, turns) = (self.metrics, self.turns);
        let reason = end.error.as_ref().map(ToString::to_string);
        self.enter(cast, stage, || {
            json!({
                "status": status,
                "outcome": end.outcome,
                "turns": turns,
                "metrics": metrics,
                "reason": reason,
            })
        });
        self.flow.inner.announce_status(cast, status.as_str());
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
            output: end.output.or(output).unwrap_or_default(),
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

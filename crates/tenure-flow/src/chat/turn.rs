//! An agent's turn in a chat, and what its failure means.

use super::talk::Talk;
use super::wait::unless_cancelled;
use super::{Cast, ChatMessage, Speaker, TurnSummary};
use crate::contract::{ErrorStrategy, Reaction, Stage};
use crate::nested;
use crate::people::WaitsForPerson;
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::chat::Chat;
use tenure_core::drive::{Input, TurnReport};

/// What an agent is told that is to speak again though nobody said anything.
const GO_ON: &str = "Continue.";

impl Talk {
    /// One turn of an agent, as the flow's strategy for failures has it.
    pub(super) async fn speak(
        &mut self,
        chat: &Chat,
        cast: &Cast,
        mut name: Arc<str>,
    ) -> Result<(), Error> {
        let mut attempt = 0;
        let mut fallback = self.decision().and_then(|decision| decision.fallback.clone());
        loop {
            let Some(error) = self.attempt(chat, cast, &name).await? else {
                return Ok(());
            };
            // Whatever the turn ended with: somebody wants the chat to end.
            if cast.token.is_cancelled() {
                return Err(Error::cancelled());
            }
            let cause = nested::cause(&error).unwrap_or(&error).clone();
            let fails = || {
                let message = format!("agent `{name}`: {error}");
                Err(Error::orchestration(message).because(cause.clone()))
            };
            // A refusal is not made undone by asking again, nor a cancel of somebody's, and without
            // a person there is nothing to try.
            if cause.is_denied() || cause.is_cancelled() || WaitsForPerson::is_behind(&error) {
                return fails();
            }
            let untried = fallback.as_ref().filter(|it| **it != name);
            match self.flow.inner.strategy.reaction(&cause, attempt, untried) {
                None => return fails(),
                Some(Reaction::GoOn) => {
                    self.last_agent = Some(name);
                    return Ok(());
                }
                Some(Reaction::Repeat { after }) => {
                    let waited = tokio::time::sleep(after);
                    if unless_cancelled(pin!(waited), &cast.token, || false).await.is_none() {
                        return Err(Error::cancelled());
                    }
                    attempt += 1;
                    self.metrics.retries += 1;
                }
                Some(Reaction::FallBack(other)) => {
                    fallback = None;
                    name = other;
                }
            }
        }
    }

    /// One turn. `Some` is how it failed; an error is why there could not be one.
    async fn attempt(
        &mut self,
        chat: &Chat,
        cast: &Cast,
        name: &Arc<str>,
    ) -> Result<Option<Error>, Error> {
        let Some(at) = cast.names.iter().position(|it| it == name) else {
            let names: Vec<_> = cast.names.iter().map(|name| &**name).collect();
            let names = names.join(", ");
            return Err(Error::orchestration(format!(
                "`{name}` was chosen to speak, but there is no such agent; there are: {names}"
            )));
        };
        let agent = &cast.speakers[at];
        if self.turns >= self.flow.inner.max_turns {
            return Err(Error::max_turns(self.flow.inner.max_turns));
        }
        self.turns += 1;
        self.after_user = false;
        self.user_turns = 0;
        // A repetition begins where the first time did: it is told the same, and remembers nothing
        // of the turn that failed.
        let repeats = matches!(self.flow.inner.strategy, ErrorStrategy::Retry { .. });
        let before = repeats.then(|| (self.heard[at], agent.history()));
        if let Some(session) = &self.session {
            session.before_turn(chat, name).await?;
        }
        let input = self.input(at, name);
        self.select(agent, name);
        let turn = self.turns;
        self.enter(cast, Stage::Execute, || json!({ "agent": name, "turn": turn }));
        let outputs = self.flow.inner.outputs.clone();
        let mut request = agent.request(input).in_chat(chat);
        if let Some(output) = outputs.get(name) {
            request = output.ask(request);
        }
        let failed = match request.run().await {
            Ok(report) => {
                outputs.keep(chat, name, report.output());
                let hidden = match &self.session {
                    Some(session) => session.after_message(chat, name, report.output()),
                    None => Ok(false),
                };
                // It was said, whatever that led to.
                self.spoke(cast, name, report, hidden.as_ref().is_ok_and(|hidden| *hidden));
                hidden?;
                None
            }
            Err(error) => {
                self.failed(name, &error);
                if let Some((heard, history)) = before {
                    self.heard[at] = heard;
                    // An agent that shut down for it has no history to go back to; the next turn
                    // says so.
                    let _ = agent.set_history(history);
                }
                Some(error)
            }
        };
        if let Some(session) = &self.session {
            session.after_turn(chat).await?;
        }
        Ok(failed)
    }

    /// What the agent has not heard yet: the last of it as the text, the rest before it.
    fn input(&mut self, at: usize, name: &str) -> Input {
        let new = &self.messages[self.heard[at]..];
        self.heard[at] = self.messages.len();
        let mut new = new.iter().filter(|message| message.speaker.as_str() != name);
        let Some(first) = new.next() else { return Input::text(GO_ON) };
        let mut text = first.heard();
        let mut earlier = Vec::new();
        for message in new {
            earlier.push(std::mem::replace(&mut text, message.heard()));
        }
        Input::text(text).after(earlier)
    }

    fn spoke(&mut self, cast: &Cast, name: &Arc<str>, report: TurnReport, hidden: bool) {
        self.metrics.record_step(true, report.duration);
        self.usage += report.usage;
        self.summaries.push(TurnSummary {
            agent: name.clone(),
            outcome: report.outcome,
            duration: report.duration,
            error: None,
        });
        let speaker = Speaker::Agent(name.clone());
        let mut message = ChatMessage::new(speaker, report.output(), self.turns);
        message.hidden = hidden || self.flow.inner.hides(name);
        self.failures.extend(report.failures);
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
}

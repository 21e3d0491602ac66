//! An agent's turn in a chat, and what its failure means.

use super::talk::{Talk, turn_place};
use super::{Cast, ChatMessage, Speaker, TurnSummary, is_final};
use crate::contract::{ErrorStrategy, Reaction, Stage};
use crate::nested;
use crate::people::WaitsForPerson;
use crate::wait::unless_cancelled;
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::Request;
use tenure_core::chat::Chat;
use tenure_core::drive::{Input, TurnReport};
use tenure_core::message::History;
use tenure_core::step::Steps;
use tenure_core::{Error, ErrorKind};

/// What an agent is told that is to speak again though nobody said anything.
const GO_ON: &str = "Continue.";

/// Where a turn stands.
struct Place {
    /// Whose it is.
    at: usize,
    /// What the agent had heard and remembered before, if the turn may have to be made again.
    before: Option<Box<(usize, History)>>,
}

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
            // One turn, in this future: one of its own would be moved here, every time.
            let turn = self.place(cast, &name)?;
            if self.session.is_some() {
                Box::pin(self.prepare(chat, cast, &name)).await?;
            }
            let request = self.request(chat, cast, &turn, &name, attempt);
            let result = request.run().await;
            if let Err(error) = &result
                && error.parks()
            {
                return Err(error.clone());
            }
            let failed = self.keep(chat, cast, turn, &name, result)?;
            let is_given_up = |it: &Error| it.kind() == ErrorKind::Abandoned;
            if self.session.is_some() && !failed.as_ref().is_some_and(is_given_up) {
                Box::pin(self.write(chat, cast, failed.as_ref())).await?;
            }
            let Some(error) = failed else { return Ok(()) };
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
            if cause.is_denied() || is_final(&cause) || WaitsForPerson::is_behind(&error) {
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
                    let place = self.place_of(cast, &name, attempt);
                    let waited = Box::pin(waited(place, after));
                    match unless_cancelled(waited, &cast.token, || false).await {
                        Some(waited) => waited?,
                        None => return Err(Error::cancelled()),
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

    /// Where the turn of an agent stands. An error is why there cannot be one.
    fn place(&self, cast: &Cast, name: &Arc<str>) -> Result<Place, Error> {
        let Some(at) = cast.names.iter().position(|it| it == name) else {
            let names: Vec<_> = cast.names.iter().map(|name| &**name).collect();
            let names = names.join(", ");
            return Err(Error::orchestration(format!(
                "`{name}` was chosen to speak, but there is no such agent; there are: {names}"
            )));
        };
        if self.turns >= self.flow.inner.max_turns {
            return Err(Error::max_turns(self.flow.inner.max_turns));
        }
        // A repetition begins where the first time did: it is told the same, and remembers nothing
        // of the turn that failed.
        let repeats = matches!(self.flow.inner.strategy, ErrorStrategy::Retry { .. });
        let before = repeats.then(|| Box::new((self.heard[at], cast.speakers[at].history())));
        Ok(Place { at, before })
    }

    /// Announces the turn, and says what it is about.
    fn request<'a>(
        &mut self,
        chat: &Chat,
        cast: &'a Cast,
        place: &Place,
        name: &Arc<str>,
        attempt: u32,
    ) -> Request<'a> {
        let agent = &cast.speakers[place.at];
        self.turns += 1;
        self.after_user = false;
        self.user_turns = 0;
        let input = self.input(place.at, name);
        let turn = self.turns;
        let place = turn_place(turn, name, attempt);
        self.select(cast, &place, agent, name);
        self.enter(cast, &place, Stage::Execute, || json!({ "agent": name, "turn": turn }));
        let mut request = agent.request(input).in_chat(chat);
        if let Some(steps) = &cast.steps {
            request = request.recorded(&steps.at(place));
        }
        match self.flow.inner.outputs.get(name) {
            Some(output) => output.ask(request),
            None => request,
        }
    }

    /// Where the turn is recorded that was begun last, if it is.
    fn place_of(&self, cast: &Cast, name: &str, attempt: u32) -> Option<Steps> {
        Some(cast.steps.as_ref()?.at(turn_place(self.turns, name, attempt)))
    }

    /// Keeps what a turn was. `Some` is how it failed.
    fn keep(
        &mut self,
        chat: &Chat,
        cast: &Cast,
        place: Place,
        name: &Arc<str>,
        result: Result<TurnReport, Error>,
    ) -> Result<Option<Error>, Error> {
        match result {
            Ok(report) => {
                self.flow.inner.outputs.keep(chat, name, report.output());
                let hidden = match &self.session {
                    Some(session) => session.after_message(chat, name, report.output()),
                    None => Ok(false),
                };
                // It was said, whatever that led to.
                self.spoke(cast, name, report, hidden.as_ref().is_ok_and(|hidden| *hidden));
                hidden?;
                Ok(None)
            }
            Err(error) => {
                self.failed(name, &error);
                if let Some(before) = place.before {
                    let (heard, history) = *before;
                    self.heard[place.at] = heard;
                    // An agent that shut down for it has no history to go back to; the next turn
                    // says so.
                    let _ = cast.speakers[place.at].set_history(history);
                }
                Ok(Some(error))
            }
        }
    }

    /// Writes what a turn changed.
    async fn write(&self, chat: &Chat, cast: &Cast, failed: Option<&Error>) -> Result<(), Error> {
        let Some(session) = &self.session else { return Ok(()) };
        // Of a chat that is cancelled, its end writes what is not written yet.
        let written = pin!(session.after_turn(chat));
        let written = unless_cancelled(written, &cast.token, || false).await.unwrap_or(Ok(()));
        match (written, failed) {
            // Why the turn failed is what counts; what could not be written is tried again.
            (Err(error), Some(_)) => tracing::error!(chat = chat.id(), "{error}"),
            (written, _) => written?,
        }
        Ok(())
    }

    /// Brings the variables up to date for a turn that is about to begin.
    ///
    /// A cancel interrupts the turns that go on, once. While a database is waited for there is none,
    /// so there must not be one afterwards either: between this and the turn nobody waits.
    pub(super) async fn prepare(&self, chat: &Chat, cast: &Cast, agent: &str) -> Result<(), Error> {
        let Some(session) = &self.session else { return Ok(()) };
        let prepared = pin!(session.before_turn(chat, agent));
        match unless_cancelled(prepared, &cast.token, || false).await {
            Some(prepared) if !cast.token.is_cancelled() => prepared,
            _ => Err(Error::cancelled()),
        }
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
            earlier.push(std::mem::replace(&mut text, message.heard()).into());
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

/// Waits before a turn is made again. What was waited in an earlier life of a run is not waited again.
async fn waited(place: Option<Steps>, after: Duration) -> Result<(), Error> {
    let wait = async {
        tokio::time::sleep(after).await;
        Ok(())
    };
    match place {
        Some(steps) => steps.step("wait", &(), wait).await,
        None => wait.await,
    }
}

//! A journey while it goes on.

use super::merge::{ChildResult, merge};
use super::parts::{Part, parts, structured};
use super::{Journey, MOST_CHILDREN, OnPartialFailure, SpawnMode};
use crate::chat::{Cast, ChatMessage};
use crate::flow::Flow;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::chat::Chat;
use tenure_core::model::Usage;
use tokio::time::Instant;

/// The journeys of one chat: how often each was made.
#[derive(Default)]
pub(crate) struct Journeys {
    cycles: BTreeMap<Arc<str>, usize>,
    /// What their children cost, those that failed too.
    spent: Usage,
}

/// A journey that is over.
pub(crate) struct Arrived {
    pub(crate) resume_agent: Arc<str>,
    pub(crate) reason: String,
    /// What the agents are told of it.
    pub(crate) told: String,
}

impl Journeys {
    /// What was spent since this was asked last.
    pub(crate) fn take_spent(&mut self) -> Usage {
        std::mem::take(&mut self.spent)
    }

    /// Makes the journey that the message begins, if it begins one. While it goes on nobody speaks
    /// in the chat, so there is never a second one at the same time.
    ///
    /// Of several journeys of the same agent the one is made that was made least often, the first
    /// of them by declaration.
    pub(crate) async fn travel(
        &mut self,
        flow: &Flow,
        chat: &Chat,
        cast: &Cast,
        message: &ChatMessage,
        seed: u64,
    ) -> Result<Option<Arrived>, Error> {
        let speaker = message.speaker.as_str();
        let made = |journey: &Journey| self.cycles.get(&journey.id).copied().unwrap_or(0);
        let own = flow.inner.journeys.iter().filter(|it| &*it.trigger_agent == speaker);
        let mut own: Vec<_> = own.collect();
        own.sort_by_key(|journey| made(journey));
        let Some(first) = own.first() else { return Ok(None) };
        let ready = |it: &&&Journey| it.requires.iter().all(|id| self.cycles.contains_key(id));
        let Some(journey) = own.iter().find(ready) else {
            let waits: Vec<_> =
                first.requires.iter().filter(|id| !self.cycles.contains_key(*id)).collect();
            abort(cast, message.turn, first, &format!("it requires {waits:?}, which are not over"));
            return Ok(None);
        };
        let cycle = made(journey) + 1;
        let trip = Trip { flow, chat, cast, journey, cycle, seed, turn: message.turn };
        let arrived = trip.make(&message.text, &mut self.spent).await?;
        let Some(arrived) = arrived else { return Ok(None) };
        self.cycles.insert(journey.id.clone(), cycle);
        Ok(Some(arrived))
    }
}

/// Says that a journey is not made, and why.
fn abort(cast: &Cast, turn: usize, journey: &Journey, reason: &str) {
    let place = format_args!("journey:{}@{turn}", journey.id);
    cast.announce(place, "journey.fan_out", || json!({ "journey": journey.id, "aborted": reason }));
}

/// One time that a journey is made.
pub(super) struct Trip<'a> {
    pub(super) flow: &'a Flow,
    pub(super) chat: &'a Chat,
    pub(super) cast: &'a Cast,
    pub(super) journey: &'a Journey,
    pub(super) cycle: usize,
    pub(super) seed: u64,
    /// The turn after which it is made.
    pub(super) turn: usize,
}

/// A child that is to be made.
pub(super) struct Child {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) flow: Flow,
    pub(super) part: Part,
}

impl Trip<'_> {
    async fn make(&self, output: &str, usage: &mut Usage) -> Result<Option<Arrived>, Error> {
        let (children, dropped) = match self.children(output) {
            Ok(children) => children,
            Err(reason) => {
                abort(self.cast, self.turn, self.journey, &reason);
                return Ok(None);
            }
        };
        self.cast.announce(self.place(0), "journey.fan_out", || {
            let of = |child: &Child| json!({ "child": child.id, "workflow": child.flow.name() });
            let children: Vec<_> = children.iter().map(of).collect();
            let mut data =
                json!({ "journey": self.journey.id, "cycle": self.cycle, "children": children });
            if dropped > 0 {
                data["dropped"] = dropped.into();
            }
            data
        });
        let mut deadline = self.journey.fan_out.timeout.map(|timeout| Instant::now() + timeout);
        let all: Vec<_> = (0..children.len()).collect();
        let mut results: Vec<Option<ChildResult>> = vec![None; children.len()];
        let mut attempt = 0;
        let mut late =
            self.run(&children, &all, attempt, &mut deadline, &mut results, usage).await?;
        let policy = self.journey.fan_in.on_partial_failure;
        let mut may_retry = policy != OnPartialFailure::ResumeWithAvailable;
        loop {
            let failed: Vec<_> = all.iter().copied().filter(|at| !is_ok(&results[*at])).collect();
            if failed.is_empty() || !may_retry {
                break;
            }
            match policy {
                OnPartialFailure::ResumeWithAvailable => break,
                OnPartialFailure::FailAll => return Err(self.failure(&results)),
                OnPartialFailure::RetryFailed if late => break,
                OnPartialFailure::RetryFailed => may_retry = false,
                OnPartialFailure::PromptUser => match self.ask(&results).await? {
                    Wish::Resume => break,
                    Wish::Fail => return Err(self.failure(&results)),
                    Wish::Retry => {}
                },
            }
            // Who decides to try again gives it as much time again.
            if policy == OnPartialFailure::PromptUser {
                deadline = self.journey.fan_out.timeout.map(|timeout| Instant::now() + timeout);
            }
            attempt += 1;
            late =
                self.run(&children, &failed, attempt, &mut deadline, &mut results, usage).await?;
        }
        let results: Vec<_> = results.into_iter().flatten().collect();
        self.arrive(&results, late).map(Some)
    }

    /// The children that the output asks for and how many parts are too many, or why there are no
    /// children.
    fn children(&self, output: &str) -> Result<(Vec<Child>, usize), String> {
        let fan_out = &self.journey.fan_out;
        let Some(output) = structured(output) else {
            let agent = &self.journey.trigger_agent;
            return Err(format!("what `{agent}` said is no structured output"));
        };
        let set = self.chat.variables();
        let missing: Vec<_> = fan_out
            .input_contract
            .required
            .iter()
            .filter(|name| set.get(*name).is_none_or(Value::is_null))
            .collect();
        if !missing.is_empty() {
            return Err(format!(
                "the variables {missing:?} are not set, and its children need them"
            ));
        }
        let mut parts = parts(&output);
        if parts.is_empty() {
            return Err("the output has no parts".to_owned());
        }
        let most = match fan_out.max_children {
            0 => MOST_CHILDREN,
            most => most.min(MOST_CHILDREN),
        };
        let dropped = parts.len().saturating_sub(most);
        if dropped > 0 {
            tracing::warn!(journey = &*self.journey.id, dropped, "more parts than max_children");
            parts.truncate(most);
        }
        let cycle = match self.cycle {
            1 => String::new(),
            cycle => format!(".{cycle}"),
        };
        let child = |(at, part): (usize, Part)| {
            Ok(Child {
                id: format!("{}/{}{cycle}/{}", self.chat.id(), self.journey.id, at + 1),
                name: part.name.clone().unwrap_or_else(|| format!("child_{}", at + 1)),
                flow: self.flow_of(&part)?,
                part,
            })
        };
        let children: Result<_, String> = parts.into_iter().enumerate().map(child).collect();
        Ok((children?, dropped))
    }

    fn flow_of(&self, part: &Part) -> Result<Flow, String> {
        let fan_out = &self.journey.fan_out;
        let named = match fan_out.spawn_mode {
            SpawnMode::Workflow => part.workflow.as_deref(),
            SpawnMode::GeneratorSubrun => None,
        };
        let Some(name) = named.or(fan_out.workflow.as_deref()) else {
            return Err("neither the journey nor the part says which workflow to run".to_owned());
        };
        let own = (name == self.flow.name()).then_some(self.flow);
        own.or_else(|| self.flow.inner.workflows.get(name)).cloned().ok_or_else(|| {
            let known: Vec<_> = self.flow.inner.workflows.keys().map(|name| &**name).collect();
            format!("there is no workflow `{name}`; there are: {}", known.join(", "))
        })
    }

    fn failure(&self, results: &[Option<ChildResult>]) -> Error {
        let id = &self.journey.id;
        Error::orchestration(format!("journey `{id}`: {}", failures(results).join("; ")))
    }

    /// Puts what the children gave where the chat finds it.
    fn arrive(&self, results: &[ChildResult], late: bool) -> Result<Arrived, Error> {
        let fan_in = &self.journey.fan_in;
        let merged = merge(fan_in.merge_mode, results);
        let told = format!("Results of `{}`: {merged}", self.journey.id);
        // By the rules for writing: what the children say is what models say.
        let written = self.chat.context_variables().set(fan_in.inject_as.as_str(), merged);
        written.map_err(|error| {
            let message = format!("journey `{}`: inject_as: {error}", self.journey.id);
            Error::orchestration(message).because(error)
        })?;
        let succeeded = results.iter().filter(|child| child.is_ok()).count();
        self.cast.announce(self.place(0), "journey.fan_in", || {
            json!({
                "journey": self.journey.id,
                "cycle": self.cycle,
                "succeeded": succeeded,
                "failed": results.len() - succeeded,
                "timed_out": late,
                "merge_mode": fan_in.merge_mode,
                "inject_as": fan_in.inject_as,
                "resume_agent": fan_in.resume_agent,
            })
        });
        let count = results.len();
        Ok(Arrived {
            resume_agent: fan_in.resume_agent.clone(),
            reason: format!("journey `{}`: {succeeded} of {count} succeeded", self.journey.id),
            told,
        })
    }

    /// Asks the person what to do about those that failed. What is not understood is asked again.
    async fn ask(&self, results: &[Option<ChildResult>]) -> Result<Wish, Error> {
        let Some(user) = &self.cast.user else {
            return Err(self.failure(results));
        };
        let id = &self.journey.id;
        let failures = failures(results).join("; ");
        let mut question = format!(
            "Some parts of `{id}` failed: {failures}. Go on with what there is (resume), try those \
             again (retry), or stop (fail)?"
        );
        for _ in 0..3 {
            let place = self.cast.place_of_person();
            let about = || json!({ "agent": "user", "reason": question });
            self.cast.announce_of(user, place, "select_speaker", about);
            let request = user.request(question.as_str()).in_chat(self.chat);
            let report = self.cast.of_person(request).run().await;
            if self.cast.token.is_cancelled() {
                return Err(Error::cancelled());
            }
            match report?.output().trim().to_ascii_lowercase().as_str() {
                "resume" | "continue" | "go on" | "yes" | "y" => return Ok(Wish::Resume),
                "retry" | "again" => return Ok(Wish::Retry),
                "fail" | "stop" | "no" | "n" => return Ok(Wish::Fail),
                _ => question = "Answer resume, retry or fail.".to_owned(),
            }
        }
        Ok(Wish::Fail)
    }
}

/// What the person wants.
enum Wish {
    Resume,
    Retry,
    Fail,
}

fn is_ok(result: &Option<ChildResult>) -> bool {
    result.as_ref().is_some_and(ChildResult::is_ok)
}

fn failures(results: &[Option<ChildResult>]) -> Vec<String> {
    let failed = results.iter().flatten().filter_map(|child| {
        let error = child.output.as_ref().err()?;
        Some(format!("{} {}: {error}", child.name, child.status))
    });
    failed.collect()
}

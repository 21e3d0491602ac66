//! A model picks the speaker.

use super::order::next_after;
use super::selector::{Asked, Selector, conversation, cut, named};
use super::{RouteCx, Router, RoutingDecision, Target};
use crate::chat::is_final;
use async_trait::async_trait;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tenure_core::Error;

/// A helper with a model picks who speaks: it is told who there is and what was said. A person who
/// takes part can be picked, and so can the end. An answer that names nobody is asked for again, two
/// times at most; then it is the next one's turn, in the order of declaration, and the reason says
/// so. The flow's initial agent, if it has one, begins without a question.
#[derive(Clone, Debug)]
pub struct Auto {
    selector: Selector,
    descriptions: BTreeMap<Arc<str>, String>,
}

impl Auto {
    /// Asks this helper.
    pub fn new(selector: Selector) -> Self {
        Self { selector, descriptions: BTreeMap::new() }
    }

    /// Tells the helper what an agent is good for.
    #[must_use]
    pub fn describe(mut self, agent: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        self.descriptions.insert(agent.into(), description.into());
        self
    }

    fn question(&self, cx: &RouteCx<'_>, candidates: &[Target]) -> String {
        let mut question = String::from("Who speaks next? These can be chosen:\n");
        for candidate in candidates {
            let description = match candidate {
                Target::User => Some("the person; choose it when a person has to answer"),
                Target::End => Some("ends the conversation; choose it when nothing is left to do"),
                Target::Agent(name) => self.descriptions.get(name).map(String::as_str),
            };
            let _ = match description.map(str::trim).filter(|it| !it.is_empty()) {
                Some(description) => writeln!(question, "- {candidate}: {}", cut(description, 300)),
                None => writeln!(question, "- {candidate}"),
            };
        }
        question.push('\n');
        question.push_str(&conversation(cx.messages));
        question.push_str("\nAnswer with one name of the list and nothing else.");
        question
    }

    fn decide(cx: &RouteCx<'_>, asked: Asked<Target>) -> Result<RoutingDecision, Error> {
        let Asked { value, times, answer } = asked;
        let picked = match value {
            Ok(picked) => picked,
            Err(wrong) => {
                // A model that repeats the question would fill every reason with it.
                let said: Vec<&str> = answer.split_whitespace().collect();
                let said = cut(&said.join(" "), 60);
                let wrong = format!("the model said \"{said}\", but {wrong}");
                return next_in_order(cx, &wrong, times);
            }
        };
        let answer = cut(answer.trim(), 200);
        let fallback = match &picked {
            Target::Agent(name) => next_after(cx.agents, name).cloned(),
            _ => None,
        };
        let reason = match times {
            1 => "the model picked it".to_owned(),
            _ => format!("the model picked it with its answer number {times}"),
        };
        let mut decision = RoutingDecision::new(picked, reason);
        decision.fallback = fallback;
        decision.metadata = json!({ "answer": answer, "asked": times });
        Ok(decision)
    }
}

#[async_trait]
impl Router for Auto {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        if let (None, false, Some(initial)) = (cx.last_agent, cx.after_user, cx.initial) {
            return Ok(RoutingDecision::agent(initial.clone(), "it is the initial agent"));
        }
        let mut candidates: Vec<_> = cx.agents.iter().cloned().map(Target::Agent).collect();
        if cx.has_user() && !cx.after_user {
            candidates.push(Target::User);
        }
        candidates.push(Target::End);
        let question = self.question(cx, &candidates);
        let read = |answer: &str| named(answer, &candidates);
        match self.selector.ask(cx, &question, read).await {
            Ok(asked) => Self::decide(cx, asked),
            Err(error) if is_final(&error) => Err(error),
            Err(error) => next_in_order(cx, &format!("the model failed: {error}"), 1),
        }
    }

    fn name(&self) -> &str {
        "auto"
    }
}

/// What happens when the helper is of no help.
fn next_in_order(cx: &RouteCx<'_>, problem: &str, asked: usize) -> Result<RoutingDecision, Error> {
    let next = match cx.last_agent {
        Some(last) => next_after(cx.agents, last).unwrap_or(last),
        None => cx.initial.or(cx.agents.first()).ok_or_else(|| {
            Error::orchestration("the flow has no agent that could speak; add one")
        })?,
    };
    tracing::warn!(next = &**next, "{problem}");
    cx.announce("selector.error", || json!({ "error": problem, "asked": asked, "next": next }));
    let mut decision =
        RoutingDecision::agent(next.clone(), format!("it is the next in order, since {problem}"));
    decision.fallback = next_after(cx.agents, next).cloned();
    decision.metadata = json!({ "asked": asked, "in_order": true });
    Ok(decision)
}

//! The children of a journey while they run.

use super::check::is_system;
use super::merge::ChildResult;
use super::run::{Child, Trip};
use crate::chat::{ChatReport, ChatRequest, Outcome, Questions, is_final};
use crate::nested::child_context;
use crate::wait::with_cancel;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::model::Usage;
use tenure_core::{CancelToken, Error};
use tokio::time::{Instant, timeout_at};

/// What came of the children of one attempt.
#[derive(Serialize, Deserialize)]
struct Came {
    results: Vec<ChildResult>,
    late: bool,
    usage: Usage,
}

impl Trip<'_> {
    /// Runs some of the children at the same time, until all are over. Says whether their time was
    /// up: those that were not over then are cancelled, and end in their own good order.
    ///
    /// What came of them is recorded once all are over: their time is not the same twice.
    pub(super) async fn run(
        &self,
        children: &[Child],
        which: &[usize],
        attempt: usize,
        deadline: &mut Option<Instant>,
        results: &mut [Option<ChildResult>],
        usage: &mut Usage,
    ) -> Result<bool, Error> {
        let place = self.cast.steps.as_ref().map(|steps| steps.at(self.place(attempt)));
        let kept = place.as_ref().map(|steps| Outcome::at(steps, "children"));
        let known = match &kept {
            Some(kept) => kept.known().await?,
            None => None,
        };
        let came = match known {
            Some(known) => known,
            None => {
                let came = self.run_now(children, which, attempt, deadline, usage).await?;
                match kept {
                    Some(kept) => kept.keep(came).await?,
                    None => came,
                }
            }
        };
        *usage += came.usage;
        // By their place, so that the same script gives the same events.
        for (at, result) in which.iter().zip(came.results) {
            let place = format_args!("{}/{}/ended", self.place(attempt), *at + 1);
            let error = result.output.as_ref().err();
            self.announce_child(place, &children[*at], &result.status, error);
            results[*at] = Some(result);
        }
        Ok(came.late)
    }

    /// The place of an attempt's children in the record of the chat.
    pub(super) fn place(&self, attempt: usize) -> String {
        let Self { journey, cycle, .. } = self;
        match attempt {
            0 => format!("journey:{}.{cycle}", journey.id),
            again => format!("journey:{}.{cycle}~{again}", journey.id),
        }
    }

    async fn run_now(
        &self,
        children: &[Child],
        which: &[usize],
        attempt: usize,
        deadline: &mut Option<Instant>,
        usage: &mut Usage,
    ) -> Result<Came, Error> {
        let token = self.cast.token.child();
        let late = AtomicBool::new(false);
        let questions = Questions::none();
        let chats = which.iter().map(|at| {
            let (child, number) = (&children[*at], *at + 1);
            let place = format!("{}/{number}", self.place(attempt));
            self.announce_child(format_args!("{place}/started"), child, "started", None);
            let mut request = self.request(child, number, &token).questions(&questions);
            if let Some(steps) = &self.cast.steps {
                request = request.recorded(&steps.at(place));
            }
            request.run()
        });
        let time_is_up = self.time_is_up(deadline, &questions);
        let reports = with_cancel(join_all(chats), time_is_up, || {
            late.store(true, Ordering::Relaxed);
            token.cancel();
        })
        .await;
        let mut spent = Usage::default();
        for report in &reports {
            spent += report.usage;
        }
        let stopped = if self.cast.token.is_cancelled() {
            Some(Error::cancelled())
        } else {
            // What parks or gives up a child does so to the whole run.
            let mut errors = reports.iter().filter_map(|report| report.error.as_ref());
            errors.find(|error| is_final(error) && !error.is_cancelled()).cloned()
        };
        if let Some(error) = stopped {
            *usage += spent;
            return Err(error);
        }
        let late = late.into_inner();
        let contract = &self.journey.fan_in.output_contract;
        let result = |(at, report): (&usize, &ChatReport)| {
            ChildResult::new(report, children[*at].name.clone(), contract, late)
        };
        let results = which.iter().zip(&reports).map(result).collect();
        Ok(Came { results, late, usage: spent })
    }

    /// Waits until the children's time is up. While one of them waits for a person it stands still,
    /// and the chat waits too.
    async fn time_is_up(&self, deadline: &mut Option<Instant>, questions: &Questions) {
        loop {
            match deadline {
                Some(deadline) => {
                    if timeout_at(*deadline, questions.asked()).await.is_err() {
                        return;
                    }
                }
                None => questions.asked().await,
            }
            let since = Instant::now();
            let _question = self.chat.question();
            questions.settled().await;
            if let Some(deadline) = deadline {
                *deadline += since.elapsed();
            }
        }
    }

    fn announce_child(
        &self,
        place: impl fmt::Display,
        child: &Child,
        status: &str,
        error: Option<&String>,
    ) {
        self.cast.announce(place, "journey.child", || {
            let mut data = json!({
                "journey": self.journey.id,
                "child": child.id,
                "workflow": child.flow.name(),
                "status": status,
            });
            if let Some(error) = error {
                data["error"] = Value::from(error.as_str());
            }
            data
        });
    }

    fn request(&self, child: &Child, number: usize, token: &CancelToken) -> ChatRequest {
        let fan_out = &self.journey.fan_out;
        let variables = self.chat.variables();
        let text = |name: &str| match variables.get(name) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        let mut request = child
            .flow
            .chat()
            .id(child.id.as_str())
            .app(text("app_id"))
            .user(text("user_id"))
            .message(&*child.part.message)
            .seed(self.seed.wrapping_add(number as u64))
            .context(child_context(&self.cast.context, &self.journey.id))
            .cancel_on(token);
        let contract = &fan_out.input_contract;
        // What the platform sets is a child's as it is its parent's, without being given.
        let named = contract.required.iter().chain(&contract.optional);
        for name in named.filter(|name| !is_system(name)) {
            if let Some(value) = variables.get(name) {
                request = request.variable(name, value.clone());
            }
        }
        for (name, value) in &fan_out.child_context_seed {
            request = request.variable(name, value.clone());
        }
        // A part is what a model said: it sets what the contract leaves to it, and nothing else.
        for (name, value) in &child.part.variables {
            if contract.names(name) && !is_system(name) {
                request = request.variable(name, value.clone());
            }
        }
        let agent = child.part.initial_agent.as_deref().map(Arc::from);
        match agent.or_else(|| fan_out.child_initial_agent.clone()) {
            Some(agent) => request.initial_agent(agent),
            None => request,
        }
    }
}

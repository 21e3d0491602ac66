//! The loop as a hook: what it sees of turns, and what it does in calls.

use super::adaptation::Adaptation;
use super::gate::Gate;
use super::plan::{Decision, Observation};
use super::policy::Setting;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::context::{InstanceCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{
    After, AgentLifecycle, Flow, HookError, Policy as OnFailure, Registration, hook,
};
use tenure_core::model::{Model, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::{Error, NextModel};
use tenure_macros::lifecycle;
use tokio::time::Instant;

/// Where an instance keeps the setting that it began with.
const STATE: &str = "_adapt";
/// Where what is known is kept across runs.
const MEMORY: &str = "memory/adapt";
/// The most calls of one turn that are looked at.
const MOST_CALLS: usize = 64;
/// The most time that a change may take to be stored.
const STORE: Duration = Duration::from_secs(2);
/// The hook's own time: waiting for a place, and between attempts. A call that waits longer is made
/// all the same.
const LIMIT: Duration = Duration::from_secs(120);
/// The longest wait between two attempts. A provider that asks for a longer one is not asked again.
const MOST_PAUSE: Duration = Duration::from_secs(30);
/// The first wait between two attempts; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// Who makes instances work by a setting.
pub(super) enum Applied {
    /// Whoever makes them: by this setting, or by the one that is in force when they start.
    Elsewhere(Option<Arc<Setting>>),
    /// This hook, with these models.
    Here(BTreeMap<String, Arc<dyn Model>>),
}

pub(super) fn registration(adaptation: Adaptation, applied: Applied) -> Registration {
    let observes = matches!(applied, Applied::Elsewhere(_));
    let adapting = Adapting { adaptation, applied, gate: Gate::default() };
    let registration = hook(adapting).named("adapt").kind("adapt").inside("critic");
    let registration = match observes {
        true => registration.observes(),
        // It never stands in the way of the agent.
        false => registration.policy(OnFailure::Continue).limit(LIMIT).keeps_text(),
    };
    // It chooses a model, which whatever keeps, replaces or repeats a call has to know; and it sees
    // calls as the agent does.
    let within = [
        "cache",
        "fallback",
        "refusal",
        "retry",
        "breaker",
        "rate_limit",
        "concurrency",
        "timeout",
    ];
    within.into_iter().fold(registration, Registration::outside)
}

struct Adapting {
    adaptation: Adaptation,
    applied: Applied,
    gate: Gate,
}

/// The setting that an instance began with, as its state has it.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
struct Began(Arc<Setting>);

impl From<Began> for Value {
    fn from(began: Began) -> Self {
        serde_json::to_value(&*began.0).unwrap_or_default()
    }
}

/// What is known, as a memory has it: it is written down when somebody reads it or when it is
/// stored, and then as it is by then.
#[derive(Clone)]
struct Known(Adaptation);

impl From<Known> for Value {
    fn from(known: Known) -> Self {
        known.0.knowledge()
    }
}

/// What is seen of a turn while it is made.
struct Sample {
    setting: Arc<Setting>,
    seen: Mutex<Seen>,
}

struct Seen {
    since: Instant,
    calls: Observation,
    /// What of the turn's cost was told already.
    told: u64,
}

impl Sample {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that has just ended.
    fn note(&self, call: &Call, result: &Result<ModelResponse, Error>) {
        let failure = match result {
            Ok(_) => None,
            Err(error) => match error.model_error() {
                Some(failure) => Some(failure),
                // Cancelled, denied, parked: that says nothing of the model.
                None => return,
            },
        };
        let calls = &mut self.lock().calls;
        calls.waited_us = calls.waited_us.saturating_add(micros(call.waited));
        calls.retried += call.retried;
        if calls.calls_us.len() < MOST_CALLS {
            calls.calls_us.push(micros(call.begun.elapsed()));
            if let Some(failure) = failure {
                calls.failed += 1;
                calls.retryable += usize::from(failure.is_retryable());
                let too_many = [ModelErrorKind::RateLimited, ModelErrorKind::Overloaded];
                calls.pressed += usize::from(too_many.contains(&failure.kind()));
            }
        }
    }
}

/// One model call.
struct Call {
    begun: Instant,
    waited: Duration,
    retried: usize,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Adapting {
    /// The setting of an instance: fixed at its start.
    fn setting_of(&self, cx: TurnCx<'_>) -> Arc<Setting> {
        match &self.applied {
            Applied::Elsewhere(Some(setting)) => setting.clone(),
            _ => match cx.state_as::<Began>(STATE) {
                Ok(Some(began)) => began.0.clone(),
                _ => self.adaptation.setting().into(),
            },
        }
    }

    /// Keeps what is known, where the agent has a memory. That this fails is nobody's trouble but
    /// its own.
    async fn remember(&self, cx: TurnCx<'_>, has_changed: bool) {
        let Some(memory) = cx.memory() else { return };
        let kept = memory.keep(MEMORY, Known(self.adaptation.clone()));
        let stored = match (kept, has_changed) {
            (Ok(()), true) => match tokio::time::timeout(STORE, memory.flush()).await {
                Ok(stored) => stored,
                Err(_) => {
                    tracing::warn!(agent = cx.agent_name(), "a change was not stored in {STORE:?}");
                    return;
                }
            },
            (kept, _) => kept,
        };
        if let Err(error) = stored {
            tracing::warn!(agent = cx.agent_name(), "what is known was not kept: {error}");
        }
    }

    /// Makes a call by a setting.
    async fn apply(
        &self,
        cx: TurnCx<'_>,
        setting: &Setting,
        models: &BTreeMap<String, Arc<dyn Model>>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
        call: &mut Call,
    ) -> Result<ModelResponse, Error> {
        // Whoever has chosen a model for this request has a reason.
        if request.model().is_none()
            && let Some(model) = setting.model.as_ref().and_then(|name| models.get(name))
        {
            request.use_model(model.clone());
        }
        let _place = match setting.concurrency {
            Some(most) => {
                let place = self.gate.enter(most).await;
                call.waited = call.begun.elapsed();
                Some(place)
            }
            None => None,
        };
        let asked = (setting.retries > 0).then(|| request.clone());
        let mut result = next.call(request).await;
        while let (Err(error), Some(asked)) = (&result, &asked) {
            if call.retried >= setting.retries || cx.is_text_out() || !may_be_repeated(error) {
                break;
            }
            let Some(pause) = pause(error, call.retried) else { break };
            tokio::time::sleep(pause).await;
            call.retried += 1;
            result = next.call(&mut asked.clone()).await;
        }
        result
    }
}

fn may_be_repeated(error: &Error) -> bool {
    error.is_retryable() && !error.is_denied() && !error.is_cancelled() && !error.parks()
}

/// How long to wait before the next attempt; not at all, if that is too long.
fn pause(error: &Error, made: usize) -> Option<Duration> {
    let asked = error.model_error().and_then(|error| error.retry_after());
    let doubled = PAUSE.saturating_mul(1 << made.min(16)).min(MOST_PAUSE);
    let pause = asked.unwrap_or(doubled);
    (pause <= MOST_PAUSE).then_some(pause)
}

#[lifecycle]
impl AgentLifecycle for Adapting {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        if let Some(known) = cx.memory().and_then(|memory| memory.get(MEMORY))
            && let Err(error) = self.adaptation.recall(&known)
        {
            tracing::warn!(agent = cx.agent_name(), "`{MEMORY}` is left out: {error}");
        }
        let setting = match &self.applied {
            Applied::Elsewhere(Some(setting)) => setting.clone(),
            _ => self.adaptation.setting().into(),
        };
        cx.keep_state(STATE, Began(setting))?;
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        let setting = self.setting_of(cx);
        // A run that goes on in another process makes the calls of this turn as it began them.
        if cx.steps().is_some() {
            cx.carry_recorded(&*setting)?;
        }
        let calls = Observation { revision: setting.revision, ..Observation::default() };
        let seen = Mutex::new(Seen { since: Instant::now(), calls, told: 0 });
        cx.carry(Sample { setting, seen });
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let sample = cx.carried::<Sample>();
        let mut call = Call { begun: Instant::now(), waited: Duration::ZERO, retried: 0 };
        let result = match &self.applied {
            Applied::Elsewhere(_) => next.call(request).await,
            Applied::Here(models) => {
                let recorded;
                let setting = match &sample {
                    Some(sample) => &sample.setting,
                    None => {
                        let kept = cx.carried_recorded::<Setting>().map(Arc::new);
                        recorded = kept.unwrap_or_else(|| self.setting_of(cx));
                        &recorded
                    }
                };
                self.apply(cx, setting, models, request, next, &mut call).await
            }
        };
        if let Some(sample) = sample {
            sample.note(&call, &result);
        }
        Ok(result?)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        // A turn that goes on after a crash is nothing to measure by.
        let Some(sample) = cx.carried::<Sample>() else { return Ok(After::Done) };
        let seen = {
            let mut seen = sample.lock();
            // Others may have the turn go on; then this is called again.
            let rest = Observation { revision: seen.calls.revision, ..Observation::default() };
            let mut calls = std::mem::replace(&mut seen.calls, rest);
            let (cost, now) = (end.usage().cost.nano_usd(), Instant::now());
            calls.cost_nano_usd = cost.saturating_sub(seen.told);
            calls.turn_us = micros(now.saturating_duration_since(seen.since));
            (seen.told, seen.since) = (cost, now);
            calls
        };
        if seen.calls_us.is_empty() {
            return Ok(After::Done);
        }
        let decision = self.adaptation.observe(seen);
        let has_changed = matches!(decision, Some(Decision::Changed { .. }));
        match decision {
            Some(Decision::Changed { from, to, goal, measured, reason }) => {
                cx.announce("adaptation.changed", || {
                    json!({
                        "from": from,
                        "to": to,
                        "goal": goal,
                        "measured": measured,
                        "reason": reason,
                    })
                });
            }
            Some(Decision::Considered { setting, goal, measured, reason }) => {
                cx.announce("adaptation.considered", || {
                    json!({
                        "setting": setting,
                        "goal": goal,
                        "measured": measured,
                        "reason": reason,
                    })
                });
            }
            None => {}
        }
        self.remember(cx, has_changed).await;
        Ok(After::Done)
    }
}

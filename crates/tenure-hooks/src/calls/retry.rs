//! Model calls, made again.

use super::backoff::{Backoff, Jitter, OWN_TIME, checked_attempts, millis, outlasts};
use super::failure::{Failure, of_model, shut_for, was_asked};
use super::names::Words;
use super::round;
use crate::ready::{About, Makings, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::{ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason};
use tenure_core::{Error, NextModel};
use tenure_macros::lifecycle;
use tower::retry::budget::{Budget, TpsBudget};

/// For how long a call counts in the budget.
const BUDGET_WINDOW: Duration = Duration::from_secs(10);

/// Makes a model call again that failed in a way that may pass: waits that grow, left to chance, and
/// as long as the provider asks for.
///
/// Only failures of the model are retried, and only as long as nobody has read any of the answer. A
/// model that was not even asked, because a breaker is open or a limit of ours is reached, did not
/// fail: that is passed on at once, so that a fallback answers without a wait. Only where there is no
/// fallback, an open breaker is waited for, if it lets a call through no later than the next attempt
/// might be due anyway. A wait that would outlast the turn is not begun. In a recorded run no wait is
/// waited twice.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_core::model::ModelErrorKind;
/// use tenure_hooks::calls::Retry;
/// # use tenure_models::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = Scripted::empty().error(ModelErrorKind::Overloaded, "busy").text("hello");
/// let agent = Agent::builder("patient")
///     .model(model)
///     .with_lifecycle(Retry::new().attempts(3).initial_delay(Duration::from_millis(1)))
///     .build()?;
/// let report = agent.scoped(async |agent| agent.run("hi").await).await?;
/// assert_eq!(report.output(), "hello");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Retry {
    attempts: u32,
    backoff: Backoff,
    max_retry_after: Duration,
    on: Vec<ModelErrorKind>,
    budget: Option<(u32, f64)>,
    answer: Option<Words>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 3,
            backoff: Backoff::default(),
            max_retry_after: Duration::from_secs(60),
            on: Failure::kinds(&Failure::which(ModelErrorKind::is_retryable)),
            budget: None,
            answer: None,
        }
    }
}

impl Retry {
    /// Three attempts, half a second apart at first, for every failure that may pass.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often a call is made in all; at least once.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The longest wait before the second attempt.
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.backoff.initial = delay;
        self
    }

    /// The longest wait before any attempt, unless the provider asks for more.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.backoff.max = delay;
        self
    }

    /// By how much each wait is longer than the one before.
    pub fn factor(mut self, factor: f64) -> Self {
        self.backoff.factor = factor;
        self
    }

    /// How much of a wait is left to chance.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.backoff.jitter = jitter;
        self
    }

    /// The longest wait that a provider may ask for; a call that it wants later than this fails at
    /// once.
    pub fn max_retry_after(mut self, wait: Duration) -> Self {
        self.max_retry_after = wait;
        self
    }

    /// The failures that are retried.
    pub fn on(mut self, kinds: impl IntoIterator<Item = ModelErrorKind>) -> Self {
        self.on = kinds.into_iter().collect();
        self
    }

    /// Bounds the retries of all calls of this hook together: so many in a second, and beside them
    /// this share of the calls of the last ten seconds.
    pub fn budget(mut self, per_second: u32, ratio: f64) -> Self {
        let ratio = if ratio.is_finite() { ratio.clamp(0.0, 1000.0) } else { 0.0 };
        self.budget = Some((per_second.min(1_000_000), ratio));
        self
    }

    /// Answers with this text in place of an error when every attempt has failed. `{{ error }}`,
    /// `{{ kind }}` and `{{ attempts }}` are filled in.
    pub fn answer(mut self, text: impl Into<String>) -> Self {
        self.answer = Some(Words::new(text));
        self
    }
}

impl IntoRegistration for Retry {
    fn into_registration(self) -> Registration {
        // What it waits is its own time, so it has time for all of its waits.
        let wait = self.backoff.max.max(self.max_retry_after);
        let limit = wait.saturating_mul(self.attempts - 1).saturating_add(OWN_TIME);
        let budget =
            self.budget.map(|(least, ratio)| TpsBudget::new(BUDGET_WINDOW, least, ratio as f32));
        let registration = hook(Again { budget, it: self });
        let registration = registration.named("retry").kind("retry").limit(limit).keeps_text();
        let registration = ["critic", "cache", "fallback", "refusal"]
            .into_iter()
            .fold(registration, |it, kind| it.inside(kind));
        let within = ["breaker", "rate_limit", "concurrency", "timeout"];
        within.into_iter().fold(registration, Registration::outside)
    }
}

struct Again {
    it: Retry,
    budget: Option<TpsBudget>,
}

#[lifecycle]
impl AgentLifecycle for Again {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let before = round::made(cx);
        if let Some(budget) = &self.budget
            && before.is_none_or(|before| before == 0)
        {
            budget.deposit();
        }
        // Hooks further in may change the request. Each attempt gets it as it came.
        let original = request.clone();
        for made in before.unwrap_or(0) + 1.. {
            let error = match next.call(request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let Some(failure) = of_model(&error) else { return Err(error.into()) };
            if failure.is_fatal() || cx.is_text_out() {
                return Err(error.into());
            }
            let again = match shut_for(failure) {
                // Others may answer meanwhile. If none does, there is another turn for this one.
                Some(_) if before.is_some() => {
                    round::pass(cx, made - 1);
                    false
                }
                Some(left) => left <= self.it.backoff.longest(made - 1),
                None => was_asked(failure),
            };
            let again = again
                && made < self.it.attempts
                && self.it.on.contains(&failure.kind())
                && self.wait(cx, made, (failure, asked_model(cx, request))).await?;
            if !again {
                return self.give_up(made, error);
            }
            request.clone_from(&original);
        }
        unreachable!("there is a last attempt")
    }
}

impl Again {
    /// Waits, if the call is to be made again. It is a step, so that a resumed run does not wait for
    /// attempts that it is served from the record, and decides as it did.
    async fn wait(
        &self,
        cx: TurnCx<'_>,
        made: u32,
        (failure, model): (&ModelError, &str),
    ) -> Result<bool, Error> {
        let it = &self.it;
        let wait = async {
            let asked = failure.retry_after().unwrap_or_default();
            let wait = it.backoff.delay(made - 1).max(asked);
            if asked > it.max_retry_after || outlasts(wait, cx.deadline()) {
                return Ok(false);
            }
            if self.budget.as_ref().is_some_and(|budget| !budget.withdraw()) {
                return Ok(false);
            }
            cx.announce("retry", || {
                json!({
                    "model": model,
                    "attempt": made + 1,
                    "of": it.attempts,
                    "wait_ms": millis(wait),
                    "kind": failure.kind(),
                    "error": failure.to_string(),
                })
            });
            tokio::time::sleep(wait).await;
            Ok(true)
        };
        cx.step("wait", wait).await
    }

    fn give_up(&self, made: u32, error: Error) -> Result<ModelResponse, HookError> {
        match (&self.it.answer, of_model(&error)) {
            (Some(answer), Some(failure)) => {
                let said =
                    Said { error: failure.to_string(), kind: failure.kind(), attempts: made };
                let text = answer.fill(&said)?;
                Ok(ModelResponse { stop: StopReason::StandIn, ..ModelResponse::text(text) })
            }
            _ => Err(error.into()),
        }
    }
}

/// The name of the model that was asked.
fn asked_model<'a>(cx: TurnCx<'a>, request: &'a ModelRequest) -> &'a str {
    request.model().unwrap_or(cx.agent().model()).name()
}

/// What an answer may say of a failure.
#[derive(Serialize)]
struct Said {
    error: String,
    kind: ModelErrorKind,
    attempts: u32,
}

/// What happens when every attempt has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnFailure {
    /// The call fails with the last error.
    #[default]
    Error,
    /// The call answers with the text of `answer`.
    Answer,
}

/// How many retries there may be in all.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct BudgetOptions {
    /// So many retries in a second are always allowed.
    per_second: u32,
    /// Beside them, this share of the calls of the last ten seconds may be retries.
    ratio: f64,
}

impl Default for BudgetOptions {
    fn default() -> Self {
        Self { per_second: 1, ratio: 0.2 }
    }
}

/// What `retry` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RetryOptions {
    /// How often a call is made in all, the first time included.
    attempts: u32,
    /// The longest wait before the second attempt.
    initial_delay: Time,
    /// The longest wait before any attempt, unless the provider asks for more.
    max_delay: Time,
    /// By how much each wait is longer than the one before.
    factor: f64,
    /// How much of a wait is left to chance: all (`full`), half (`equal`) or nothing (`none`).
    jitter: Jitter,
    /// The longest wait that a provider may ask for; if it asks for more, the call fails at once.
    max_retry_after: Time,
    /// The failures that are retried. That of a model which was not asked, because of an open
    /// `breaker`, `rate_limit` or `concurrency`, is none of them, whatever its kind. Only where there
    /// is no `fallback`, an open `breaker` is waited for, if it lets a call through no later than the
    /// next attempt might be due anyway.
    on: Vec<Failure>,
    /// Bounds the retries of all calls of this hook together; without it, only each call is bounded.
    budget: Option<BudgetOptions>,
    /// What happens when every attempt has failed.
    on_failure: OnFailure,
    /// What `on_failure: answer` says, a template of `error`, `kind` and `attempts`.
    answer: Option<String>,
}

impl Default for RetryOptions {
    fn default() -> Self {
        let Retry { attempts, backoff, max_retry_after, .. } = Retry::default();
        Self {
            attempts,
            initial_delay: Time(backoff.initial),
            max_delay: Time(backoff.max),
            factor: backoff.factor,
            jitter: backoff.jitter,
            max_retry_after: Time(max_retry_after),
            on: Failure::which(ModelErrorKind::is_retryable),
            budget: None,
            on_failure: OnFailure::Error,
            answer: None,
        }
    }
}

impl Options for RetryOptions {
    const ABOUT: About = About {
        name: "retry",
        summary: "Makes a failed model call again, after a wait that grows.",
        covers: &["UC-3.1"],
        peers: &["ModelRetryMiddleware"],
        example: r#"{ "attempts": 3, "initial_delay": "200ms" }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        if self.on.is_empty() {
            return Err(Refusal::new("on", "it is empty, so nothing is retried; name a failure"));
        }
        let backoff = Backoff {
            initial: self.initial_delay.0,
            max: self.max_delay.0,
            factor: self.factor,
            jitter: self.jitter,
        };
        let mut retry = Retry {
            attempts: checked_attempts(self.attempts)?,
            backoff: backoff.checked()?,
            max_retry_after: self.max_retry_after.0,
            on: Failure::kinds(&self.on),
            ..Retry::default()
        };
        if let Some(BudgetOptions { per_second, ratio }) = self.budget {
            if !(0.0..=1000.0).contains(&ratio) {
                let why = format!("a share of the calls is 0 to 1000, and not {ratio}");
                return Err(Refusal::new("budget.ratio", why));
            }
            if per_second == 0 && ratio == 0.0 {
                return Err(Refusal::new("budget", "it allows no retry at all"));
            }
            retry = retry.budget(per_second, ratio);
        }
        retry.answer = match (self.on_failure, self.answer) {
            (OnFailure::Error, None) => None,
            (OnFailure::Error, Some(_)) => {
                return Err(Refusal::new("answer", "it is said only with `on_failure: answer`"));
            }
            (OnFailure::Answer, answer) => {
                let answer = answer.unwrap_or_else(|| "The model failed: {{ error }}".to_owned());
                let sample =
                    Said { error: String::new(), kind: ModelErrorKind::Other, attempts: 1 };
                let words = Words::checked(answer, &sample);
                Some(words.map_err(|why| Refusal::new("answer", why))?)
            }
        };
        Ok(retry.into_registration())
    }
}

//! No calls to a model that fails all the time.

use super::circuit::{Circuit, End, Settings, Stand};
use super::failure::{Failure, of_model, rounded, shut, was_asked};
use super::scope::{Group, Per, key_of_model};
use crate::ready::{About, Makings, Options, Refusal, Shared, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::{ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::{Error, NextModel};
use tenure_macros::lifecycle;
use tokio::time::Instant;

type Circuits = Group<Settings, Circuit>;

/// Makes no calls for a while to a model that fails all the time: they fail at once, as overloaded,
/// so that a fallback answers without waiting, and the provider gets a rest.
///
/// So many failures within a time open the circuit. After a while it is half open: a few calls are
/// let through, and if they succeed it closes; if one fails it opens again. Calls that are cancelled
/// say nothing. If one hangs, another is let through in its place, after the time that the circuit
/// was open.
///
/// The failure says how long it stays open, so that a [`Fallback`](super::Fallback) none of whose
/// models may be asked can wait for the first that may.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::calls::CircuitBreaker;
/// # use tenure_models::Passthrough;
///
/// let breaker = CircuitBreaker::new().failures(5).window(Duration::from_secs(60));
/// let agent = Agent::builder("careful")
///     .model(Passthrough::new())
///     .with_lifecycle(breaker.open_for(Duration::from_secs(30)))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct CircuitBreaker {
    settings: Settings,
    on: Vec<ModelErrorKind>,
    per: Per,
    shared: Option<(Shared, String)>,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            settings: Settings {
                failures: 5,
                window: Duration::from_secs(60),
                open_for: Duration::from_secs(30),
                probes: 1,
            },
            on: Failure::kinds(&default_failures()),
            per: Per::Model,
            shared: None,
        }
    }
}

/// A provider that limits its callers works, and says when to come back.
fn default_failures() -> Vec<Failure> {
    Failure::which(|kind| kind.is_retryable() && kind != ModelErrorKind::RateLimited)
}

impl CircuitBreaker {
    /// Five failures within a minute open it for half a minute; then one call is tried.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many failures open it; at least one.
    pub fn failures(mut self, failures: usize) -> Self {
        self.settings.failures = failures.max(1);
        self
    }

    /// The time within which failures count together.
    pub fn window(mut self, window: Duration) -> Self {
        self.settings.window = window;
        self
    }

    /// For how long it is open.
    pub fn open_for(mut self, time: Duration) -> Self {
        self.settings.open_for = time;
        self
    }

    /// So many calls have to succeed then; at least one.
    pub fn probes(mut self, probes: u32) -> Self {
        self.settings.probes = probes.max(1);
        self
    }

    /// The failures that count.
    pub fn on(mut self, kinds: impl IntoIterator<Item = ModelErrorKind>) -> Self {
        self.on = kinds.into_iter().collect();
        self
    }

    /// Which calls have a circuit together: those to one model, unless this says something else.
    pub fn per(mut self, per: Per) -> Self {
        self.per = per;
        self
    }

    /// Shares its circuits with every breaker of this name there. What the first of them says counts.
    pub fn shared(mut self, among: &Shared, name: impl Into<String>) -> Self {
        self.shared = Some((among.clone(), name.into()));
        self
    }

    fn register(self, circuits: Arc<Circuits>) -> Registration {
        let registration = hook(Breaker { circuits, on: self.on, per: self.per });
        let registration = registration.named("breaker").kind("breaker").keeps_text();
        let around = ["cache", "fallback", "refusal", "retry"];
        let registration = around.into_iter().fold(registration, Registration::inside);
        registration.outside("rate_limit").outside("concurrency").outside("timeout")
    }
}

impl IntoRegistration for CircuitBreaker {
    fn into_registration(self) -> Registration {
        let circuits = match &self.shared {
            Some((shared, name)) => Group::named("breaker", shared, name, &self.settings),
            None => Group::alone(self.settings.clone()),
        };
        self.register(circuits)
    }
}

struct Breaker {
    circuits: Arc<Circuits>,
    on: Vec<ModelErrorKind>,
    per: Per,
}

#[lifecycle]
impl AgentLifecycle for Breaker {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let key = key_of_model(self.per, cx, request);
        let circuit = self.circuits.parts.part(&key, || Circuit::new(&key));
        let settings = &self.circuits.settings;
        let says = |stand: Option<Stand>| {
            if let Some(stand) = stand {
                cx.announce("breaker", || json!({ "of": circuit.of, "state": stand.as_str() }));
            }
        };
        // A step, because another life of the run has another circuit: it has to do what this one
        // did, and what it is served from the record says nothing of the model now.
        let mut permit = None;
        let ask = async {
            let asked = circuit.ask(settings, Instant::now());
            says(asked.changed);
            match asked.permit {
                Ok(granted) => {
                    permit = Some(granted);
                    Ok(None)
                }
                Err(left) => Ok(Some(left)),
            }
        };
        let refused: Option<Duration> = cx.step("ask", ask).await?;
        if let Some(left) = refused {
            let whose = match &*circuit.of {
                "" => "the model".to_owned(),
                name => format!("`{name}`"),
            };
            let message = format!(
                "{whose} failed too often, so it is not asked for another {:?} (breaker)",
                rounded(left)
            );
            return Err(shut(message, left).into());
        }
        let result = next.call(request).await;
        if let Some(permit) = permit {
            says(permit.end(settings, self.end_of(&result), Instant::now()));
        }
        Ok(result?)
    }
}

impl Breaker {
    /// What the end of a call says of the model.
    fn end_of(&self, result: &Result<ModelResponse, Error>) -> End {
        match result.as_ref().map_err(of_model) {
            Ok(_) => End::Succeeded,
            Err(Some(error)) if self.on.contains(&error.kind()) && was_asked(error) => End::Failed,
            Err(_) => End::Unknown,
        }
    }
}

/// What `breaker` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BreakerOptions {
    /// So many failures open the circuit.
    failures: usize,
    /// The time within which failures count together.
    window: Time,
    /// For how long the circuit is open: calls fail at once.
    open_for: Time,
    /// So many calls have to succeed afterwards before it closes.
    probes: u32,
    /// The failures that count.
    on: Vec<Failure>,
    /// Which calls have a circuit together: those to one `model`, to one `provider`, or all of the
    /// `agent`'s.
    per: Per,
    /// Shares the circuits with every breaker of this name, of whichever agent.
    shared: Option<String>,
}

impl Default for BreakerOptions {
    fn default() -> Self {
        let CircuitBreaker { settings, per, .. } = CircuitBreaker::default();
        Self {
            failures: settings.failures,
            window: Time(settings.window),
            open_for: Time(settings.open_for),
            probes: settings.probes,
            on: default_failures(),
            per,
            shared: None,
        }
    }
}

impl Options for BreakerOptions {
    const ABOUT: About = About {
        name: "breaker",
        summary: "Makes no calls for a while to a model that fails all the time.",
        covers: &["UC-3.2"],
        peers: &[],
        example: r#"{ "failures": 5, "window": "1m", "open_for": "30s" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        for (field, value) in [("failures", self.failures as u64), ("probes", self.probes.into())] {
            if !(1..=10_000).contains(&value) {
                return Err(Refusal::new(field, format!("give 1 to 10000, and not {value}")));
            }
        }
        if self.on.is_empty() {
            return Err(Refusal::new("on", "it is empty, so the circuit never opens"));
        }
        let settings = Settings {
            failures: self.failures,
            window: self.window.0,
            open_for: self.open_for.0,
            probes: self.probes,
        };
        let circuits = match &self.shared {
            Some(name) => Group::of_file("breaker", makings, name, &settings),
            None => Group::alone(settings),
        };
        let breaker = CircuitBreaker {
            on: Failure::kinds(&self.on),
            per: self.per,
            ..CircuitBreaker::default()
        };
        Ok(breaker.register(circuits))
    }
}

//! Spans and metrics for OpenTelemetry.

mod calls;
mod chat;
mod content;
mod events;
mod export;
mod hook;
mod ids;
mod live;
mod losses;
mod meters;
mod names;
mod options;
mod pipe;
mod records;
mod span;

pub(super) use options::TelemetryOptions;

use super::seen::around;
use live::Live;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::hook::{IntoRegistration, Registration, hook};

/// The name of this hook.
const KIND: &str = "telemetry";
/// What there is of a text at most.
const CONTENT_LIMIT: usize = 16 << 10;

type Pipeline = Arc<pipe::Pipe>;

/// Spans and metrics for OpenTelemetry, by its conventions for generative AI, exported by OTLP over
/// HTTP.
///
/// | span | kind | is |
/// |---|---|---|
/// | `invoke_workflow {name}` | internal | the chat of a workflow |
/// | `invoke_agent {name}` | internal | a turn; of an agent that is a tool, within the tool's call |
/// | `chat {model}` | client | a model call, with all of its attempts |
/// | `execute_tool {name}` | internal | a tool call |
/// | `create_agent {name}` | client | the start of an instance |
/// | `tenure.hook {point}` | internal | a hook that was called; of a lifecycle tool with its name and how it ended |
/// | `tenure.approval` | internal | a question to a person, for as long as it stood |
///
/// What the agent is in is told by events of its turn. Hooks, questions and states are known from
/// the agent's [events](tenure_core::event): an agent without a bus has no such spans. The program
/// gives every agent one; in Rust it is `AgentBuilder::events`. The hooks of a workflow's chat, its
/// lifecycle tools among them, are known the same way, and stand below the chat's span.
///
/// What was said is no part of it, unless [`content`](Telemetry::content) says so: no messages, no
/// instructions, no arguments and results, no words of errors. With it, what a model said is written
/// as it said it, before guards had a look.
///
/// A request that came from elsewhere goes on in its trace, if the metadata of its
/// [context](tenure_core::context::ExecutionContext) has the header `traceparent`.
///
/// Nothing of this can fail or slow an agent: queues are bounded, and what a receiver does not take
/// is lost. Somebody is told of that, once: by a warning of `tracing`, and at the end by a line of the
/// agent's [log](tenure_core::event::EventKind::Log) that says how many spans it were. When the last
/// agent is gone, what is left is sent, for [so long](Telemetry::flush) at most. Clones of one telemetry share their exporters; nothing of it is global.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::see::Telemetry;
/// # use tenure_models::Passthrough;
///
/// let telemetry = Telemetry::new()
///     .endpoint("https://otel.example.com")
///     .header("authorization", "OTEL_TOKEN")
///     .service("support");
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(telemetry.clone())
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Telemetry {
    config: Config,
    live: Arc<Live>,
}

/// What is exported, and where to.
#[derive(Clone, Debug)]
struct Config {
    endpoint: Option<String>,
    headers: BTreeMap<String, String>,
    service: Option<String>,
    /// How much of a text is told, if any.
    content: Option<usize>,
    sample: f64,
    metrics: bool,
    events: bool,
    hooks: bool,
    interval: Duration,
    flush: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            service: None,
            content: None,
            sample: 1.0,
            metrics: true,
            events: true,
            hooks: true,
            interval: Duration::from_secs(30),
            flush: Duration::from_secs(3),
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::new()
    }
}

impl Telemetry {
    /// To where `OTEL_EXPORTER_OTLP_ENDPOINT` says, or to a receiver on this machine.
    pub fn new() -> Self {
        Self { config: Config::default(), live: Arc::default() }
    }

    /// Where the receiver is: `http://127.0.0.1:4318`. `/v1/traces` and `/v1/metrics` are added.
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.config.endpoint = Some(endpoint.into());
        self
    }

    /// Sends a header with each export. Its value is that of the environment variable of this name,
    /// so that no secret is written down.
    pub fn header(mut self, name: impl Into<String>, variable: impl Into<String>) -> Self {
        self.config.headers.insert(name.into(), variable.into());
        self
    }

    /// What the service is called. `OTEL_SERVICE_NAME` by default, else `tenure`.
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.config.service = Some(name.into());
        self
    }

    /// Whether what was said is exported too.
    pub fn content(mut self, told: bool) -> Self {
        self.config.content = told.then_some(self.config.content.unwrap_or(CONTENT_LIMIT));
        self
    }

    /// Exports what was said, at most so many bytes of each text.
    pub fn content_limit(mut self, bytes: usize) -> Self {
        self.config.content = Some(bytes);
        self
    }

    /// The share of the traces that is exported: 1 is all of them. Metrics are always complete.
    pub fn sample(mut self, share: f64) -> Self {
        self.config.sample = share;
        self
    }

    /// Whether metrics are exported, too. They are by default.
    pub fn metrics(mut self, exported: bool) -> Self {
        self.config.metrics = exported;
        self
    }

    /// Whether each call of a hook is a span. It is by default.
    pub fn hooks(mut self, exported: bool) -> Self {
        self.config.hooks = exported;
        self
    }

    /// Whether the agent's events are listened to: hooks, questions and states are known from them.
    /// They are by default.
    pub fn events(mut self, heard: bool) -> Self {
        self.config.events = heard;
        self
    }

    /// How often metrics are exported. 30 s.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.config.interval = interval;
        self
    }

    /// How long the last agent's end waits for what is left to be taken. 3 s, and never longer than
    /// the end of an observer may take.
    pub fn flush(mut self, limit: Duration) -> Self {
        self.config.flush = limit;
        self
    }
}

impl IntoRegistration for Telemetry {
    fn into_registration(self) -> Registration {
        let watch = hook::Watch { config: Arc::new(self.config), live: self.live };
        // A span is of one process, so a run that goes on in another has one there, too.
        around(hook(watch).named(KIND).kind(KIND)).again_on_resume()
    }
}

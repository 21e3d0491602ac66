//! The way out: OTLP over HTTP, from threads of its own, on the runtime of the agents.

use super::super::clock::Clock;
use super::super::seen::lock;
use super::Config;
use super::losses::{Losses, Watched};
use super::meters::Meters;
use super::names::SCHEMA;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tenure_core::Error;
use tenure_http::reqwest;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// The longest that one export may take.
const EXPORT_LIMIT: Duration = Duration::from_secs(10);
/// The most that a receiver may answer. Nobody reads it.
const MOST_ANSWER: usize = 1 << 20;
/// Spans leave at least as often as this.
const SPAN_INTERVAL: Duration = Duration::from_secs(1);
/// How many spans may wait.
const SPAN_QUEUE: usize = 8192;
/// Where a receiver listens by default.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

/// What spans and metrics are given to.
pub(super) struct Exports {
    pub(super) spans: BatchSpanProcessor,
    pub(super) meters: Option<Meters>,
    pub(super) scope: InstrumentationScope,
    pub(super) losses: Arc<Losses>,
    /// By which the times of spans are told.
    clock: Mutex<Clock>,
}

impl Exports {
    /// The time of day, the same for all spans unless somebody sets the clock.
    pub(super) fn clock(&self) -> Clock {
        let mut clock = lock(&self.clock);
        *clock = clock.kept();
        *clock
    }

    /// Begins to export. Nothing is sent before there is something to send.
    pub(super) fn open(config: &Config) -> Result<Self, Error> {
        let handle = Handle::try_current().map_err(|_| {
            Error::invalid("telemetry is exported on a tokio runtime, and there is none")
        })?;
        let headers = headers(config)?;
        let scope = InstrumentationScope::builder("tenure")
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(SCHEMA)
            .build();
        let resource = resource(config);
        let endpoints = config.endpoints();
        let losses = Losses::new(&endpoints);
        let client = || OnRuntime {
            handle: handle.clone(),
            tasks: TaskTracker::new(),
            client: OnceLock::new(),
            is_local: endpoints.iter().all(|endpoint| is_local(endpoint)),
            losses: losses.clone(),
        };
        let failed = |error| Error::invalid(format!("telemetry cannot be exported: {error}"));
        let retry = || RetryPolicy::recommended().with_max_retries(1);
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(EXPORT_LIMIT)
            .with_headers(headers.clone())
            .with_retry_policy(retry());
        if let Some(endpoint) = &config.endpoint {
            exporter = exporter.with_endpoint(signal(endpoint, "traces"));
        }
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(SPAN_QUEUE)
            .with_scheduled_delay(SPAN_INTERVAL)
            .build();
        let exporter = exporter.build().map_err(failed)?;
        let exporter = Watched { exporter, losses: losses.clone() };
        let mut spans = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        spans.set_resource(&resource);
        let meters = if config.metrics {
            let mut exporter = MetricExporter::builder()
                .with_http()
                .with_http_client(client())
                .with_protocol(Protocol::HttpBinary)
                .with_timeout(EXPORT_LIMIT)
                .with_headers(headers)
                .with_retry_policy(retry());
            if let Some(endpoint) = &config.endpoint {
                exporter = exporter.with_endpoint(signal(endpoint, "metrics"));
            }
            let exporter = exporter.build().map_err(failed)?;
            let exporter = Watched { exporter, losses: losses.clone() };
            let reader = PeriodicReader::builder(exporter).with_interval(config.interval).build();
            let provider =
                SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
            Some(Meters::new(provider, &scope))
        } else {
            None
        };
        Ok(Self { spans, meters, scope, losses, clock: Mutex::new(Clock::now()) })
    }
}

/// Where the signal of this name goes, under an endpoint for all of them.
fn signal(endpoint: &str, name: &str) -> String {
    format!("{}/v1/{name}", endpoint.trim_end_matches('/'))
}

fn is_local(endpoint: &str) -> bool {
    let url = reqwest::Url::parse(endpoint).ok();
    url.is_some_and(|url| url.host_str().is_some_and(tenure_http::is_loopback))
}

impl Config {
    /// Every address that something is sent to.
    fn endpoints(&self) -> Vec<String> {
        if let Some(endpoint) = &self.endpoint {
            return vec![endpoint.clone()];
        }
        let names = ["ENDPOINT", "TRACES_ENDPOINT", "METRICS_ENDPOINT"];
        let mut set: Vec<String> = names
            .iter()
            .filter_map(|name| std::env::var(format!("OTEL_EXPORTER_OTLP_{name}")).ok())
            .filter(|endpoint| !endpoint.is_empty())
            .collect();
        if set.is_empty() {
            set.push(DEFAULT_ENDPOINT.to_owned());
        }
        set
    }
}

fn resource(config: &Config) -> Resource {
    let named = || std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
    let name = config.service.clone().or_else(named).unwrap_or_else(|| "tenure".to_owned());
    Resource::builder()
        .with_service_name(name)
        .with_attribute(KeyValue::new("process.pid", i64::from(std::process::id())))
        .build()
}

/// The headers, with values that only the environment knows.
fn headers(config: &Config) -> Result<HashMap<String, String>, Error> {
    let value = |(name, variable): (&String, &String)| match std::env::var(variable) {
        Ok(value) => Ok((name.clone(), value)),
        Err(_) => Err(Error::invalid(format!(
            "the header `{name}` of telemetry is in the variable `{variable}`, which is not set"
        ))),
    };
    config.headers.iter().map(value).collect()
}

/// Sends what the exporters' own threads have, on the runtime: there is no reactor in those threads.
struct OnRuntime {
    handle: Handle,
    tasks: TaskTracker,
    client: OnceLock<Result<reqwest::Client, String>>,
    is_local: bool,
    losses: Arc<Losses>,
}

impl OnRuntime {
    /// Made at the first export, in the exporter's thread: certificates are read from disk.
    fn client(&self) -> Result<reqwest::Client, HttpError> {
        let make = || {
            let client =
                if self.is_local { tenure_http::loopback_client() } else { tenure_http::client() };
            client.map_err(|error| error.to_string())
        };
        Ok(self.client.get_or_init(make).clone()?)
    }
}

impl fmt::Debug for OnRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRuntime")
    }
}

#[async_trait::async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client().inspect_err(|error| self.losses.because(&**error))?;
        let sending = async move {
            let (head, body) = request.into_parts();
            let mut sent = client
                .request(head.method, head.uri.to_string())
                .headers(head.headers)
                .timeout(EXPORT_LIMIT)
                .body(body)
                .send()
                .await?;
            let mut answer = Response::builder().status(sent.status());
            if let Some(headers) = answer.headers_mut() {
                headers.extend(sent.headers().clone());
            }
            let mut body = Vec::new();
            while let Some(chunk) = sent.chunk().await? {
                if body.len() + chunk.len() > MOST_ANSWER {
                    return Err("the receiver's answer is too long".into());
                }
                body.extend_from_slice(&chunk);
            }
            Ok::<_, HttpError>(answer.body(Bytes::from(body))?)
        };
        let sent = self.tasks.spawn_on(sending, &self.handle).await?;
        match &sent {
            Err(error) => self.losses.because(&**error),
            Ok(answer) if !answer.status().is_success() => {
                self.losses.reason(format!("it answered {}", answer.status()));
            }
            Ok(_) => {}
        }
        sent
    }
}

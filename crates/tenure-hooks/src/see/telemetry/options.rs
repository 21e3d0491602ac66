//! What files say of telemetry.

use super::{CONTENT_LIMIT, Config, KIND, Telemetry};
use crate::ready::{About, Address, Makings, Options, Refusal, Time, Variable};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use tenure_core::hook::{IntoRegistration, Registration};
use tenure_http::reqwest;

/// What `telemetry` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::see) struct TelemetryOptions {
    /// Where the receiver is, as in `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are
    /// added. Without it, `OTEL_EXPORTER_OTLP_ENDPOINT` says it, else it is this machine.
    endpoint: Option<Address>,
    /// Headers of each export, by the NAME of the environment variable that holds the value.
    /// The receiver is then one of `https`, or on this machine.
    headers: BTreeMap<String, Variable>,
    /// What the service is called. Without it, `OTEL_SERVICE_NAME` says it, else it is `tenure`.
    service: Option<String>,
    /// Whether what was said is exported too: messages, instructions, arguments, results, errors.
    content: bool,
    /// The most bytes of each text that is exported, if any is.
    content_limit: usize,
    /// The share of the traces that is exported, from 0 to 1. Metrics are always complete.
    sample: f64,
    /// Whether metrics are exported, too.
    metrics: bool,
    /// Whether each call of a hook is a span.
    hooks: bool,
    /// Whether the agent's events are listened to. Spans of hooks, questions and states need it.
    events: bool,
    /// How often metrics are exported.
    #[schemars(extend("default" = Time(Config::default().interval)))]
    interval: Option<Time>,
    /// How long the last agent's end waits for what is left to be taken.
    flush: Time,
}

impl Default for TelemetryOptions {
    fn default() -> Self {
        let Config { sample, metrics, hooks, events, flush, .. } = Config::default();
        Self {
            endpoint: None,
            headers: BTreeMap::new(),
            service: None,
            content: false,
            content_limit: CONTENT_LIMIT,
            sample,
            metrics,
            hooks,
            events,
            interval: None,
            flush: Time(flush),
        }
    }
}

/// An end of an observer has this long.
const MOST_FLUSH: Duration = Duration::from_secs(5);

impl Options for TelemetryOptions {
    const ABOUT: About = About {
        name: KIND,
        summary: "Exports spans and metrics for OpenTelemetry.",
        covers: &["UC-3.4", "UC-6.3"],
        peers: &[],
        example: r#"{ "endpoint": "http://127.0.0.1:4318", "service": "support", "flush": "200ms" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let endpoint = self.endpoint.map(|address| address.0);
        if let Some(endpoint) = &endpoint {
            let url = reqwest::Url::parse(endpoint)
                .map_err(|error| Refusal::new("endpoint", format!("`{endpoint}`: {error}")))?;
            if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
                return Err(Refusal::new(
                    "endpoint",
                    format!("`{endpoint}` is no address of HTTP; write http://host:port"),
                ));
            }
            if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
                let why =
                    "it has a user, a password or a query; what is secret goes into `headers`";
                return Err(Refusal::new("endpoint", why));
            }
            if !self.headers.is_empty() && url.scheme() == "http" && !is_here(&url) {
                let why = format!(
                    "`{endpoint}` is no address of https, and everybody on the way could read the \
                     values of `headers`; write https://, or take `headers` away"
                );
                return Err(Refusal::new("endpoint", why));
            }
        }
        for (name, Variable(variable)) in &self.headers {
            let field = format!("headers.{name}");
            if !is_header(name) {
                return Err(Refusal::new(field, format!("`{name}` is no name of a header")));
            }
            if !is_variable(variable) {
                let why = "this is no name of an environment variable; write the NAME of the one \
                           that holds the value, and never the value itself";
                return Err(Refusal::new(field, why));
            }
            if let Some(endpoint) = &endpoint {
                makings.may_send(variable, endpoint).map_err(|why| Refusal::new(field, why))?;
            }
        }
        if !(0.0..=1.0).contains(&self.sample) {
            let found = self.sample;
            return Err(Refusal::new("sample", format!("{found} is no share; give 0 to 1")));
        }
        if self.content && self.content_limit == 0 {
            return Err(Refusal::new("content_limit", "0 leaves nothing; set `content` to false"));
        }
        if !self.metrics && self.interval.is_some() {
            let why = "it is about metrics, and `metrics` is false; leave one of them out";
            return Err(Refusal::new("interval", why));
        }
        if self.flush.0 > MOST_FLUSH {
            let why = format!("{:?} is longer than an end may take; give at most 5s", self.flush.0);
            return Err(Refusal::new("flush", why));
        }
        let config = Config {
            endpoint,
            headers: self.headers.into_iter().map(|(name, it)| (name, it.0)).collect(),
            service: self.service,
            content: self.content.then_some(self.content_limit),
            sample: self.sample,
            metrics: self.metrics,
            events: self.events,
            hooks: self.hooks,
            interval: self.interval.map_or(Config::default().interval, |it| it.0),
            flush: self.flush.0,
        };
        // Agents of a team that say the same share their exporters.
        let live = makings.shared().part(KIND, &format!("{config:?}"), Default::default);
        Ok(Telemetry { config, live }.into_registration())
    }
}

/// Whether an address is one of this machine.
fn is_here(url: &reqwest::Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || plain.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn is_header(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

fn is_variable(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

//! What a receiver did not take. Somebody is told of it, once.

use super::super::seen::lock;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_http::reqwest::Url;
use tracing::{Dispatch, dispatcher};

/// What was given to the exporters of a pipe, and what of it was taken.
#[derive(Debug)]
pub(super) struct Losses {
    /// Where it goes, without what may be secret of an address.
    address: String,
    /// Spans.
    given: AtomicU64,
    taken: AtomicU64,
    /// Whether the newest metrics were not taken.
    metrics_missing: AtomicBool,
    /// Why something was not taken, the last time.
    reason: Mutex<Option<String>>,
    /// Whether the end tells what was lost.
    ends: AtomicBool,
    warned: AtomicBool,
    /// Whoever is warned. Exports happen in threads that know of nobody.
    dispatch: Dispatch,
}

impl Losses {
    /// Nothing is lost yet of what goes to these addresses.
    pub(super) fn new(endpoints: &[String]) -> Arc<Self> {
        let address = endpoints.iter().map(|it| public(it)).collect::<Vec<_>>().join(", ");
        Arc::new(Self {
            address,
            given: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            metrics_missing: AtomicBool::new(false),
            reason: Mutex::default(),
            ends: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            dispatch: dispatcher::get_default(Clone::clone),
        })
    }

    /// A span is on its way.
    pub(super) fn given(&self) {
        self.given.fetch_add(1, Ordering::Relaxed);
    }

    /// Why nothing arrived: the innermost cause, which says nothing of where it was sent.
    pub(super) fn because(&self, error: &(dyn Error + 'static)) {
        let mut cause = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        self.reason(cause.to_string());
    }

    pub(super) fn reason(&self, reason: String) {
        *lock(&self.reason) = Some(reason);
    }

    /// An export failed. Whoever runs this for days is told at once.
    fn failed(&self, what: &str) {
        if !self.ends.load(Ordering::Acquire) {
            self.warn(&format!(
                "{what} could not be sent to {}{}; telemetry is lost until it is taken there",
                self.address,
                self.why()
            ));
        }
    }

    /// Once is enough: it would be said for every batch.
    fn warn(&self, told: &str) {
        if !self.warned.swap(true, Ordering::AcqRel) {
            dispatcher::with_default(&self.dispatch, || tracing::warn!("{told}"));
        }
    }

    fn why(&self) -> String {
        lock(&self.reason).as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
    }

    /// From here on it is the end that tells.
    pub(super) fn ends(&self) {
        self.ends.store(true, Ordering::Release);
    }

    /// What was lost, if anything was. `late` is how long it was waited for in vain.
    pub(super) fn sum(&self, late: Option<Duration>) -> Option<String> {
        let given = self.given.load(Ordering::Relaxed);
        let lost = given.saturating_sub(self.taken.load(Ordering::Relaxed));
        let what = match (lost, self.metrics_missing.load(Ordering::Relaxed)) {
            (0, false) => match late {
                Some(_) => "the last of it".to_owned(),
                None => return None,
            },
            (0, true) => "the newest metrics".to_owned(),
            (lost, _) => format!("{lost} of {given} spans"),
        };
        let within = late.map(|late| format!(" within {late:?}")).unwrap_or_default();
        let told = format!(
            "telemetry is lost: {what} could not be sent to {}{within}{}; see that a receiver of \
             OTLP over HTTP listens there",
            self.address,
            self.why()
        );
        self.warn(&told);
        Some(told)
    }
}

/// An address as it may be told: without a password, and without what a query may hold.
fn public(endpoint: &str) -> String {
    let Ok(mut url) = Url::parse(endpoint) else {
        return "an address that is none".to_owned();
    };
    // They only fail for addresses that can have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// An exporter whose failures are noticed.
#[derive(Debug)]
pub(super) struct Watched<E> {
    pub(super) exporter: E,
    pub(super) losses: Arc<Losses>,
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        match &sent {
            Ok(()) => {
                let spans = u64::try_from(spans).unwrap_or(u64::MAX);
                self.losses.taken.fetch_add(spans, Ordering::Relaxed);
            }
            Err(_) => self.losses.failed(&format!("{spans} spans")),
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Watched<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let sent = self.exporter.export(metrics).await;
        // The next ones tell of all that was, so only the newest can be missing.
        self.losses.metrics_missing.store(sent.is_err(), Ordering::Relaxed);
        if sent.is_err() {
            self.losses.failed("metrics");
        }
        sent
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_without_its_secrets() {
        for (endpoint, told) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
            ("https://me:hush@otel.example.com/in/?key=hush#x", "https://otel.example.com/in"),
            ("hush", "an address that is none"),
        ] {
            assert_eq!(public(endpoint), told);
        }
    }

    #[test]
    fn nothing_is_told_where_nothing_was_lost() {
        let losses = Losses::new(&["http://127.0.0.1:4318".to_owned()]);
        assert_eq!(losses.sum(None), None);
        losses.given();
        let told = losses.sum(None).unwrap();
        assert!(
            told.contains("1 of 1 spans could not be sent to http://127.0.0.1:4318;"),
            "{told}"
        );
        losses.taken.fetch_add(1, Ordering::Relaxed);
        assert_eq!(losses.sum(None), None);
        let told = losses.sum(Some(Duration::from_secs(3))).unwrap();
        assert!(told.contains("the last of it could not be sent"), "{told}");
        assert!(told.contains(" within 3s;"), "{told}");
    }
}

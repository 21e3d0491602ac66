//! A receiver of OTLP in the test's own process, which keeps what it gets.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request.
pub(crate) struct Got {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Receiver {
    address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    over: Arc<AtomicBool>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has one");
        let (got, over) = (Arc::<Mutex<Vec<Got>>>::default(), Arc::<AtomicBool>::default());
        let (kept, stop) = (got.clone(), over.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                if let Some(got) = take(stream) {
                    kept.lock().expect("nobody panicked").push(got);
                }
            }
        });
        Self { address, got, over }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was sent, head and body of each request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let got = self.got.lock().expect("nobody panicked");
        got.iter().flat_map(|got| [got.head.as_bytes(), &*got.body].concat()).collect()
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.got.lock().expect("nobody panicked").iter().map(|got| got.head.clone()).collect()
    }

    fn traces(&self) -> Vec<ExportTraceServiceRequest> {
        let got = self.got.lock().expect("nobody panicked");
        let traces = got.iter().filter(|got| got.path == "/v1/traces");
        traces.map(|got| Message::decode(&*got.body).expect("it is protobuf")).collect()
    }

    /// Every span, in the order in which they came.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let of_all = self.traces().into_iter().flat_map(|request| request.resource_spans);
        of_all.flat_map(|it| it.scope_spans).flat_map(|it| it.spans).collect()
    }

    /// The span whose name begins like this. There is one.
    pub(crate) fn span(&self, name: &str) -> Span {
        let mut all = self.spans();
        all.retain(|span| span.name.starts_with(name));
        let names: Vec<_> = self.spans().iter().map(|span| span.name.clone()).collect();
        assert_eq!(all.len(), 1, "{name} among {names:?}");
        all.remove(0)
    }

    /// The schema and the resource of the spans.
    pub(crate) fn origin(&self) -> (String, Vec<KeyValue>) {
        let mut all = self.traces().into_iter().flat_map(|request| request.resource_spans);
        let first = all.next().expect("there are spans");
        let resource = first.resource.expect("they have a resource");
        (first.scope_spans[0].schema_url.clone(), resource.attributes)
    }

    /// Every metric.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let got = self.got.lock().expect("nobody panicked");
        let requests = got
            .iter()
            .filter(|got| got.path == "/v1/metrics")
            .map(|got| ExportMetricsServiceRequest::decode(&*got.body).expect("it is protobuf"));
        let of_all = requests.flat_map(|request| request.resource_metrics);
        of_all.flat_map(|it| it.scope_metrics).flat_map(|it| it.metrics).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // It waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

fn take(mut stream: TcpStream) -> Option<Got> {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answer).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Got { path, head, body })
}

/// What a span or a point says under this name, as text.
pub(crate) fn said(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    text(found.value.as_ref()?)
}

fn text(value: &AnyValue) -> Option<String> {
    match value.value.as_ref()? {
        Any::StringValue(text) => Some(text.clone()),
        Any::BoolValue(value) => Some(value.to_string()),
        Any::IntValue(value) => Some(value.to_string()),
        Any::DoubleValue(value) => Some(value.to_string()),
        Any::ArrayValue(values) => {
            let all: Vec<String> = values.values.iter().filter_map(text).collect();
            Some(all.join(","))
        }
        _ => None,
    }
}

/// Whether a text is among bytes.
pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

//! What a receiver does not take is told of, once.

use crate::see::receiver::Receiver;
use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::event::{EventBus, EventKind, LogStream, Received};
use tenure_hooks::see::Telemetry;
use tenure_models::Passthrough;
use tracing::{Event, Level, Metadata, field, span};

/// Keeps the warnings of telemetry.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("nobody panicked").clone()
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("tenure_hooks")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl field::Visit for Text {
            fn record_debug(&mut self, _: &field::Field, value: &dyn Debug) {
                self.0 = format!("{value:?}");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().expect("nobody panicked").push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// An address at which nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    listener.local_addr().expect("it is bound")
}

/// Runs a turn, pauses, runs another one, and says what was warned of, and logged for the agent.
async fn told(telemetry: Telemetry, pause: Duration) -> (Vec<String>, Vec<String>) {
    let warnings = Warnings::default();
    let _mine = tracing::subscriber::set_default(warnings.clone());
    let bus = EventBus::new();
    let mut events = bus.subscribe(10_000);
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(telemetry);
    let agent = agent.events(&bus).build().expect("it builds");
    agent.startup().await.expect("it works as ever");
    agent.run("hello").await.expect("it works as ever");
    tokio::time::sleep(pause).await;
    agent.run("hello").await.expect("it works as ever");
    agent.shutdown().await;
    assert!(agent.failures().is_empty(), "{:?}", agent.failures());
    let mut logged = Vec::new();
    while let Some(received) = events.try_recv() {
        let Received::Event(event) = received else { panic!("some were missed") };
        if let EventKind::Log { source, stream, line } = &event.kind {
            assert_eq!((&**source, *stream), ("telemetry", LogStream::Host));
            logged.push(line.clone());
        }
    }
    (warnings.all(), logged)
}

#[tokio::test]
async fn the_end_tells_how_many_spans_nobody_took_and_where_they_went() {
    let address = nobody();
    let telemetry = Telemetry::new().endpoint(format!("http://me:hush@{address}/?key=hush"));
    let (warned, logged) = told(telemetry, Duration::ZERO).await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(logged, warned);
    assert!(warned[0].contains(&format!("sent to http://{address}")), "{warned:?}");
    assert!(warned[0].contains("Connection refused"), "{warned:?}");
    assert!(!warned[0].contains("hush"), "{warned:?}");
    let (_, many) = warned[0].split_once("lost: ").unwrap();
    let (lost, given) = many.split_once(" spans").unwrap().0.split_once(" of ").unwrap();
    assert_eq!(lost, given);
    // The creation, two turns with a call each, and hooks.
    assert!(lost.parse::<u64>().unwrap() >= 5, "{warned:?}");
}

#[tokio::test]
async fn who_runs_for_long_is_told_at_the_first_failure_and_not_again() {
    let address = nobody();
    let telemetry = Telemetry::new().endpoint(format!("http://{address}")).metrics(false);
    let (warned, logged) = told(telemetry, Duration::from_secs(4)).await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    let at_once = format!("spans could not be sent to http://{address} (");
    assert!(warned[0].contains(&at_once), "{warned:?}");
    assert!(warned[0].contains("until it is taken there"), "{warned:?}");
    // The end has the sum.
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0].starts_with("telemetry is lost: "), "{logged:?}");
}

#[tokio::test]
async fn a_receiver_that_hangs_or_refuses_is_told_of() {
    // It accepts, by its backlog, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let telemetry = Telemetry::new().endpoint(&endpoint).flush(Duration::from_millis(300));
    let (warned, logged) = told(telemetry, Duration::ZERO).await;
    assert_eq!((warned.len(), &warned), (1, &logged));
    assert!(warned[0].contains(&format!("{endpoint} within 300ms")), "{warned:?}");

    let refuses = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", refuses.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in refuses.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 65536]);
            let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let (warned, logged) = told(Telemetry::new().endpoint(&endpoint), Duration::ZERO).await;
    assert_eq!((warned.len(), &warned), (1, &logged));
    assert!(warned[0].contains("it answered 403 Forbidden"), "{warned:?}");
}

#[tokio::test]
async fn nothing_is_told_where_everything_was_taken() {
    let receiver = Receiver::start();
    let (warned, logged) = told(Telemetry::new().endpoint(receiver.url()), Duration::ZERO).await;
    assert_eq!((warned, logged), (Vec::new(), Vec::new()));
    assert!(!receiver.spans().is_empty());
}

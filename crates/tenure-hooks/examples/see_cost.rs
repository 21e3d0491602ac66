//! What the hooks that watch cost, per turn of an agent whose model answers at once.
//!
//! ```text
//! cargo run --release -p tenure-hooks --all-features --example see_cost [http://127.0.0.1:4318]
//! ```
//!
//! Spans go to a receiver at the address given, or to one that is not there.

use std::time::Instant;
use tenure_core::agent::Agent;
use tenure_core::event::EventBus;
use tenure_core::hook::{IntoRegistration, Registration};
use tenure_hooks::see::{Metrics, StructuredLog, Telemetry, UsageReport};
use tenure_models::Passthrough;

const TURNS: u32 = 2000;
const ROUNDS: usize = 7;

/// The least time that a turn takes, in nanoseconds, of several rounds.
async fn measured(hook: Option<Registration>, events: bool) -> u128 {
    let mut builder = Agent::builder("a").model(Passthrough::new()).without_history();
    if let Some(hook) = hook {
        builder = builder.with_lifecycle(hook);
    }
    let bus = EventBus::new();
    if events {
        builder = builder.events(&bus);
    }
    let agent = builder.build().expect("it builds");
    agent.startup().await.expect("it starts");
    let mut least = u128::MAX;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..TURNS {
            agent.run("hello").await.expect("it answers");
        }
        least = least.min(began.elapsed().as_nanos() / u128::from(TURNS));
    }
    agent.shutdown().await;
    least
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let endpoint = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:9".to_owned());
    let telemetry = || Telemetry::new().endpoint(&*endpoint);
    let folder = std::env::temp_dir().join(format!("see-cost-{}", std::process::id()));
    let log = StructuredLog::to_file(folder.join("cost.log"));
    let bare = measured(None, false).await;
    println!("a turn without hooks: {bare} ns");
    let spans = telemetry().metrics(false).events(false);
    for (name, hook, events) in [
        ("telemetry, spans only", spans.into_registration(), false),
        ("telemetry, spans and metrics", telemetry().into_registration(), false),
        ("telemetry, with events", telemetry().into_registration(), true),
        ("metrics", Metrics::new().into_registration(), false),
        ("metrics, with events", Metrics::new().into_registration(), true),
        ("log", log.into_registration(), false),
        ("usage", UsageReport::new().into_registration(), false),
    ] {
        let with = measured(Some(hook), events).await;
        println!("{name}: {} ns more", with.saturating_sub(bare));
    }
    let _ = std::fs::remove_dir_all(folder);
}

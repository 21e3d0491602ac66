//! A type of one's own as a worker of an orchestrator.

use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::context::ExecutionContext;
use tenure_core::hook::HookError;
use tenure_core::life::{
    AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent, own_agent,
};
use tenure_core::phase::AgentState;
use tenure_flow::contract::{Orchestrator, Task, Worker};

struct Counter {
    life: Lifecycle,
    started: AtomicUsize,
    stopped: AtomicUsize,
}

#[async_trait]
impl ManagedAgent for Counter {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        self.started.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
        self.stopped.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn process(&self, request: &str) -> Result<String, HookError> {
        Ok(format!("{} words", request.split_whitespace().count()))
    }
}

#[tokio::test(start_paused = true)]
async fn an_orchestrator_starts_asks_and_stops_a_type_of_ones_own() {
    let counter = Arc::new(Counter {
        life: Lifecycle::new("counter"),
        started: AtomicUsize::new(0),
        stopped: AtomicUsize::new(0),
    });
    let orchestrator = Orchestrator::builder("count")
        .agent(Worker::from(own_agent(&counter)).can("count"))
        .planner(vec![Task::new("count", "one two three").capability("count")])
        .build()
        .unwrap();
    let report = orchestrator.orchestrate("count", ExecutionContext::unique()).run().await;
    assert!(report.is_success(), "{:?}", report.error());
    assert!(report.output().contains("words"), "{}", report.output());
    let counts = [&counter.started, &counter.stopped].map(|it| it.load(Ordering::SeqCst));
    assert_eq!((counts, counter.state()), ([1, 1], AgentState::Terminated));
    assert_eq!(counter.metrics().total_requests, 1);
}

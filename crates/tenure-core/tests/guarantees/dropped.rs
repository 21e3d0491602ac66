//! Starts and stops whose future is dropped: their end is recorded, told and timed all the same.

use crate::guarantees::support::{Events, Fault, Says, agent};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::PhaseCx;
use tenure_core::hook::{self, HookError};
use tenure_core::life::{
    AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent, own_agent,
};
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tenure_core::step::{MemoryStepLog, ScopeEnd, ScopeRecord, StepKey, StepLog, Steps};
use tenure_core::{BoxFuture, Error, ExitReason, RunId};
use tokio::time::timeout;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A log that keeps every end that it is told of, also a second one.
#[derive(Clone, Default)]
struct Ends {
    steps: MemoryStepLog,
    ends: Arc<Mutex<Vec<ScopeEnd>>>,
}

impl Ends {
    fn told(&self) -> Vec<ScopeEnd> {
        self.ends.lock().unwrap().clone()
    }
}

impl StepLog for Ends {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        self.steps.step(key, effect)
    }

    fn run_id(&self) -> RunId {
        self.steps.run_id()
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        self.steps.begin(scope)
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.ends.lock().unwrap().push(end);
        self.steps.end(scope, end)
    }
}

/// The hook of the last transition of all. It takes 20 ms and counts how often it came to its end.
#[derive(Clone, Default)]
struct Last(Arc<AtomicUsize>);

impl Last {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl PhaseHook for Last {
    fn source(&self) -> PhasePattern {
        Phase::ShuttingDown.into()
    }

    fn target(&self) -> PhasePattern {
        Phase::Terminated.into()
    }

    async fn execute(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        tokio::time::sleep(ms(20)).await;
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A type of one's own that does as it is told.
struct Own {
    life: Lifecycle,
    start: Fault,
    stop: Fault,
}

#[async_trait]
impl ManagedAgent for Own {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        self.start.meet("the type").await
    }

    async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
        self.stop.meet("the type").await
    }
}

fn assert_ended_once(agent: &Agent, log: &Ends, events: &mut Events, reason: ExitReason) {
    assert_eq!(log.told(), [ScopeEnd::of_instance(reason)]);
    assert_eq!(events.exits(agent.id()), [reason]);
    assert_eq!(agent.exit_reason(), Some(reason));
}

#[tokio::test(start_paused = true)]
async fn g1_a_rollback_that_is_dropped_in_its_last_hook_is_recorded_and_told_once() {
    let (log, last, mut events) = (Ends::default(), Last::default(), Events::new());
    let failing = hook::on_start(|_| Box::pin(async { Err(HookError::new("not today")) }));
    let agent = agent("agent", Says::Done)
        .events(&events.bus)
        .with_lifecycle(failing)
        .phase_hook(last.clone())
        .build()
        .unwrap();
    agent.record(&Steps::new(Arc::new(log.clone()))).unwrap();
    assert!(timeout(ms(5), agent.startup()).await.is_err());
    assert_eq!(agent.state(), AgentState::Terminated, "it is in its last hook");
    assert!(log.told().is_empty(), "which is not over yet");
    agent.blueprint().settled().await;
    assert_ended_once(&agent, &log, &mut events, ExitReason::StartupFailed);
    assert_eq!(last.count(), 1, "the hook came to its end in the background");
    assert!((agent.metrics().shutdown_time_ms - 20.0).abs() < 2.0, "{:?}", agent.metrics());
}

#[tokio::test(start_paused = true)]
async fn g1_a_rollback_of_a_type_that_is_dropped_in_its_last_hook_is_recorded_and_told_once() {
    let (log, last, mut events) = (Ends::default(), Last::default(), Events::new());
    let life = Lifecycle::new("own").with_events(events.bus.clone()).with_phase_hook(last.clone());
    let own = Arc::new(Own { life, start: Fault::Fails, stop: Fault::None });
    let agent = own_agent(&own);
    agent.record(&Steps::new(Arc::new(log.clone()))).unwrap();
    assert!(timeout(ms(5), own.startup(None)).await.is_err());
    drop(own);
    agent.blueprint().settled().await;
    assert_ended_once(&agent, &log, &mut events, ExitReason::StartupFailed);
    assert_eq!(last.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn g1_a_borrowed_stop_that_is_dropped_in_its_last_hook_keeps_its_reason() {
    for (start, reason) in
        [(Fault::None, ExitReason::Completed), (Fault::Fails, ExitReason::StartupFailed)]
    {
        let (log, mut events) = (Ends::default(), Events::new());
        let life =
            Lifecycle::new("own").with_events(events.bus.clone()).with_phase_hook(Last::default());
        let own = Arc::new(Own { life, start, stop: Fault::None });
        let agent = own_agent(&own);
        agent.record(&Steps::new(Arc::new(log.clone()))).unwrap();
        let borrowed = &*own;
        let ended = async {
            if AgentLifecycleProtocol::startup(borrowed, None).await.is_ok() {
                AgentLifecycleProtocol::shutdown(borrowed, None).await;
            }
        };
        assert!(timeout(ms(5), ended).await.is_err());
        agent.blueprint().settled().await;
        assert_ended_once(&agent, &log, &mut events, reason);
        let took = agent.metrics().shutdown_time_ms;
        assert!((took - 5.0).abs() < 2.0, "{reason:?}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_borrowed_stop_that_is_dropped_has_taken_the_time_that_it_took() {
    for start in [Fault::None, Fault::Fails] {
        let own =
            Own { life: Lifecycle::new("own"), start, stop: Fault::After(Duration::from_secs(1)) };
        let ended = async {
            if AgentLifecycleProtocol::startup(&own, None).await.is_ok() {
                AgentLifecycleProtocol::shutdown(&own, None).await;
            }
        };
        assert!(timeout(ms(40), ended).await.is_err());
        assert_eq!(own.life.exit_reason(), Some(ExitReason::Forced));
        let took = own.life.metrics().shutdown_time_ms;
        assert!((took - 40.0).abs() < 2.0, "{start:?}: {took}");
    }
}

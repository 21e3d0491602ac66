//! Whatever memory does at the end of a life, what the instance acquired is released.

use crate::guarantees::support::{Events, Held, Log, Says, Watch, agent, fall_over};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;
use tenure_core::BoxError;
use tenure_core::event::EventKind;
use tenure_core::hook::FaultKind;
use tenure_core::memory::Memory;
use tokio::time::Instant;

/// A memory that does not store what it is given.
#[derive(Clone, Copy, Debug)]
enum Forgets {
    Refuses,
    Panics,
    Hangs,
}

#[async_trait]
impl Memory for Forgets {
    async fn load(&self, _namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        Ok(BTreeMap::new())
    }

    async fn store(
        &self,
        _namespace: &str,
        _changes: BTreeMap<String, Value>,
    ) -> Result<(), BoxError> {
        match self {
            Self::Refuses => Err("the disk is full".into()),
            Self::Panics => fall_over("the memory"),
            Self::Hangs => pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g1_resources_are_released_whatever_memory_does() {
    for (memory, fault) in [
        (Forgets::Refuses, FaultKind::Failed),
        (Forgets::Panics, FaultKind::Panicked),
        (Forgets::Hangs, FaultKind::TimedOut),
    ] {
        for budget in [Duration::from_secs(30), Duration::from_millis(100)] {
            let (held, mut events) = (Held::default(), Events::new());
            let agent = agent("agent", Says::Done)
                .memory(memory)
                .events(&events.bus)
                .with_lifecycle(Watch::new("watch", &Log::default()).holding(&held))
                .build()
                .unwrap();
            agent.startup().await.unwrap();
            agent.memory().unwrap().update("facts", 1).unwrap();
            let began = Instant::now();
            agent.shutdown_within(budget).await;
            assert_eq!(held.counts(), [1, 1], "{memory:?} leaks");
            assert!(began.elapsed() <= Duration::from_secs(5).min(budget), "{memory:?}");
            let failures = agent.failures();
            assert_eq!(failures.len(), 1, "{memory:?}");
            assert_eq!((&*failures[0].hook, failures[0].kind), ("memory", fault));
            let told = events.all().iter().filter_map(|event| match &event.kind {
                EventKind::MemoryFlushFailed { fault, .. } => Some(*fault),
                _ => None,
            });
            assert_eq!(told.collect::<Vec<_>>(), [fault], "{memory:?}");
            assert!(agent.memory().unwrap().is_dirty(), "what is not stored stays dirty");
        }
    }
}

//! Agents that keep the contract.

use async_trait::async_trait;
use serde_json::json;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, HookError};
use tenure_core::life::{AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent};
use tenure_models::Passthrough;
use tenure_testkit::compliance::{self, Calls};

fn plain() -> Agent {
    Agent::builder("plain").model(Passthrough::new()).build().unwrap()
}

fn hooked() -> Agent {
    Agent::builder("hooked")
        .model(Passthrough::new())
        .with_lifecycle(hook::on_start(|cx| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(2)).await;
                Ok(cx.set_state("_ready", true)?)
            })
        }))
        .with_lifecycle(hook::on_shutdown(|_cx, _reason| {
            Box::pin(async { Err(HookError::new("shutdown never fails all the same")) })
        }))
        .build()
        .unwrap()
}

fn failing(shutdowns: Calls) -> Agent {
    Agent::builder("failing")
        .model(Passthrough::new())
        .with_lifecycle(hook::on_shutdown(move |_cx, _reason| {
            shutdowns.count();
            Box::pin(async { Ok(()) })
        }))
        .with_lifecycle(hook::on_start(|cx| {
            Box::pin(async move {
                cx.set_state("_half", "done")?;
                Err(HookError::new("no database"))
            })
        }))
        .build()
        .unwrap()
}

struct Worker {
    life: Lifecycle,
    fails: bool,
    shutdowns: Calls,
}

impl Worker {
    fn new() -> Self {
        Self { life: Lifecycle::new("worker"), fails: false, shutdowns: Calls::new() }
    }

    fn failing(shutdowns: Calls) -> Self {
        Self { fails: true, shutdowns, ..Self::new() }
    }
}

#[async_trait]
impl ManagedAgent for Worker {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        tokio::task::yield_now().await;
        self.set_state("_half", json!("done"))?;
        if self.fails { Err(HookError::new("no database")) } else { Ok(()) }
    }

    async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
        self.shutdowns.count();
        Err(HookError::new("shutdown never fails all the same"))
    }
}

tenure_testkit::compliance!(a_plain_agent, plain);
tenure_testkit::compliance!(a_hooked_agent, hooked, failing = failing);
tenure_testkit::compliance!(a_type_of_ones_own, Worker::new, failing = Worker::failing);
tenure_testkit::compliance!(
    made_by_closures,
    || Agent::builder("closure").model(Passthrough::new()).build().unwrap(),
    failing = |shutdowns: Calls| Worker { fails: true, shutdowns, ..Worker::new() },
);

#[tokio::test]
async fn the_functions_take_trait_objects_too() {
    let agent: &dyn AgentLifecycleProtocol = &plain();
    compliance::lifecycle(agent).await;
}

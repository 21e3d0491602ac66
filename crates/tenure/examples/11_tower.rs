//! Layers from tower as wraps: a retry and a time-out around every model call.
//!
//! A layer is applied once, when the agent is built, and shared by all its instances.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure::BoxError;
use tenure::model::ModelErrorKind;
use tenure::prelude::*;
use tenure::tower::{ModelCall, ModelLayer};
use tower::ServiceBuilder;
use tower::retry::{Policy as RetryPolicy, RetryLayer};
use tower::timeout::TimeoutLayer;

/// Fails twice, hangs once, then answers.
#[derive(Default)]
struct Flaky {
    calls: AtomicUsize,
}

#[async_trait::async_trait]
impl Model for Flaky {
    async fn call(&self, _: &ModelRequest, _: ModelCx<'_>) -> Result<ModelResponse, ModelError> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => {
                println!("  the provider is overloaded");
                Err(ModelError::new(ModelErrorKind::Overloaded, "overloaded"))
            }
            2 => {
                println!("  the provider hangs");
                std::future::pending().await
            }
            _ => Ok(ModelResponse::text("Here I am.")),
        }
    }
}

/// Retries so often what may well succeed later.
#[derive(Clone)]
struct Again(usize);

impl<T> RetryPolicy<ModelCall, T, BoxError> for Again {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut ModelCall, result: &mut Result<T, BoxError>) -> Option<Ready<()>> {
        let error = result.as_ref().err()?;
        let may_help = error.downcast_ref::<Error>().is_none_or(Error::is_retryable);
        println!("  retry: {}", may_help && self.0 > 0);
        self.0 = self.0.checked_sub(1)?;
        may_help.then(|| ready(()))
    }

    fn clone_request(&mut self, call: &ModelCall) -> Option<ModelCall> {
        Some(call.clone())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let layers = ServiceBuilder::new()
        .layer(RetryLayer::new(Again(3)))
        .layer(TimeoutLayer::new(Duration::from_millis(50)));
    let agent = Agent::builder("patient")
        .model(Flaky::default())
        .layer_model(ModelLayer::new(layers))
        .build()?;
    println!("three retries, 50 ms each:");
    let report = agent.scoped(async |agent| agent.run("Are you there?").await).await?;
    println!("  {}", report.output());
    Ok(())
}

//! An agent as a run: one instance, one turn.

use super::{RunCx, Runnable};
use crate::agent::Blueprint;
use crate::error::Error;
use async_trait::async_trait;
use serde_json::Value;

/// The input is what to say to the agent: a text, or an object with one under `message`. The output
/// is its answer.
#[async_trait]
impl Runnable for Blueprint {
    async fn run(&self, run: RunCx) -> Result<Value, Error> {
        let said = run.input.as_str().or_else(|| run.input["message"].as_str());
        let Some(message) = said else {
            let found = &run.input;
            return Err(Error::invalid(format!(
                "an agent's run is started with a text, or with an object that has one under \
                 `message`; found {found}"
            )));
        };
        let agent = self.instance();
        agent.record(&run.steps)?;
        agent.startup().await?;
        let request = agent.request(message).recorded(&run.steps).cancel_on(&run.cancel);
        let result = request.run().await;
        agent.shutdown().await;
        Ok(Value::from(result?.output()))
    }
}

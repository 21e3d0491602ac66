use tenure::__private::async_trait::async_trait;
use tenure::context::InstanceCx;
use tenure::hook::{AgentLifecycle, HookError};
use tenure::lifecycle;

struct Before;

#[async_trait]
#[lifecycle]
impl AgentLifecycle for Before {
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }
}

struct After;

#[lifecycle]
#[async_trait]
impl AgentLifecycle for After {
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }
}

fn main() {}

use tenure::context::InstanceCx;
use tenure::hook::{AgentLifecycle, HookError};
use tenure::lifecycle;

struct Audit;

#[lifecycle]
impl AgentLifecycle for Audit {
    async fn on_strat(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    async fn after_tool_call(&self, _cx: tenure::context::ToolCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    fn point(&self) {}

    fn helper(&self) {}

    fn on_shutdown(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }
}

fn main() {
    let _: &dyn AgentLifecycle = &Audit;
}

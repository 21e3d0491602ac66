//! Every kind of `impl` that `#[lifecycle]` takes, without a warning, and without the names that
//! the generated code uses being in scope.

#![deny(warnings, missing_docs, unreachable_pub)]
#![allow(clippy::non_minimal_cfg, reason = "a condition that holds is what is tried")]

use tenure::context::{InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure::hook::HookError;
use tenure::tool::{ToolOutput, ToolRequest};

/// A sink that a generic hook writes to.
pub trait Sink: Send + Sync + 'static {
    /// Writes.
    fn write(&self, line: &str);
}

/// A generic hook.
pub struct Log<S, const N: usize>(pub S);

#[tenure::lifecycle]
impl<S: Sink, const N: usize> tenure::hook::AgentLifecycle for Log<S, N>
where
    S: Clone,
{
    fn name(&self) -> &str {
        "log"
    }

    async fn on_transition(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        self.0.write(self.name());
        Ok(())
    }

    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: tenure::NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        Ok(next.call(request).await?)
    }
}

/// A hook that borrows for ever.
pub struct Named(pub &'static str);

#[tenure::lifecycle]
impl tenure::hook::AgentLifecycle for Named {
    fn points(&self) -> tenure::hook::Points {
        tenure::hook::Points::NONE
    }

    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }
}

/// A hook whose functions a macro writes.
pub struct Written;

macro_rules! on_start {
    () => {
        fn name(&self) -> &str {
            "written"
        }
    };
}

#[tenure::lifecycle]
impl tenure::hook::AgentLifecycle for Written {
    on_start!();
}

/// A hook with nothing in it.
pub struct Nothing;

#[tenure::lifecycle]
impl tenure::hook::AgentLifecycle for Nothing {}

/// A hook whose functions depend on what is compiled.
pub struct Conditional;

#[tenure::lifecycle]
impl tenure::hook::AgentLifecycle for Conditional {
    #[cfg(all())]
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    #[cfg(any())]
    async fn on_start(&self, _cx: InstanceCx<'_>, _more: ()) -> Result<(), HookError> {
        Ok(())
    }

    #[cfg_attr(all(), cfg(any()), inline)]
    async fn on_transition(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    #[allow(clippy::needless_pass_by_value)]
    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        _response: &tenure::model::ModelResponse,
    ) -> Result<tenure::hook::HookAction, HookError> {
        Ok(tenure::hook::HookAction::Continue)
    }
}

fn main() {
    #[derive(Clone)]
    struct Nowhere;

    impl Sink for Nowhere {
        fn write(&self, _line: &str) {}
    }

    // Also in the body of a function.
    struct Local;

    #[tenure::lifecycle]
    impl tenure::hook::AgentLifecycle for Local {}

    fn points(hook: &dyn tenure::hook::AgentLifecycle) -> Vec<&'static str> {
        hook.points()
            .iter()
            .map(tenure::hook::Point::as_str)
            .collect()
    }

    assert_eq!(
        points(&Log::<_, 3>(Nowhere)),
        ["wrap_tool_call", "on_transition"]
    );
    assert_eq!(points(&Conditional), ["on_start", "after_model"]);
    assert_eq!(points(&Written).len(), 11);
    for empty in [
        &Named("x") as &dyn tenure::hook::AgentLifecycle,
        &Nothing,
        &Local,
    ] {
        assert!(points(empty).is_empty(), "{}", empty.name());
    }
}

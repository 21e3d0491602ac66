//! An agent runtime whose subject is the agent's whole life: declared, started, ready, busy, paused
//! and shut down. Every point of it can be hooked, and what happens when a hook fails, hangs or
//! panics is promised and tested.
//!
//! This is the crate to depend on. It re-exports the core, the macros and the models; those over the
//! network with the feature `providers`, runs that survive with the feature `store`, and the ready-made
//! hooks with the feature `hooks`.
//!
//! ```
//! use tenure::models::Passthrough;
//! use tenure::prelude::*;
//!
//! struct Greeter;
//!
//! #[lifecycle]
//! impl AgentLifecycle for Greeter {
//!     async fn before_agent(
//!         &self,
//!         cx: TurnCx<'_>,
//!         input: &mut Input,
//!     ) -> Result<Flow, HookError> {
//!         input.content.map_text(|text| format!("{} says: {text}", cx.agent_name()));
//!         Ok(Flow::Continue)
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let agent = Agent::builder("echo").model(Passthrough::new()).with_lifecycle(Greeter).build()?;
//! let report = agent.scoped(async |agent| agent.run("hello").await).await?;
//! assert_eq!(report.output(), "echo says: hello");
//! # Ok::<_, Error>(()) }).unwrap();
//! ```

pub use tenure_core::*;
#[cfg(feature = "hooks")]
#[doc(inline)]
pub use tenure_hooks as hooks;
pub use tenure_macros::{lifecycle, tool};
#[doc(inline)]
pub use tenure_models as models;
#[cfg(feature = "store")]
#[doc(inline)]
pub use tenure_store as store;

/// What most programs need.
pub mod prelude {
    pub use crate::agent::{Agent, AgentBuilder, AgentConfig, Blueprint};
    pub use crate::ask::{Answer, Ask};
    pub use crate::chat::{Chat, ChatEnd};
    pub use crate::clone::ChildOptions;
    pub use crate::content::{Content, Media, Part};
    pub use crate::context::{
        ChatCx, Cx, ExecutionContext, InstanceCx, ModelCx, PhaseCx, ToolCx, TurnCx,
    };
    pub use crate::drive::{Input, TurnEnd, TurnReport, TurnStream};
    pub use crate::event::{EventBus, EventKind};
    pub use crate::hook::{
        self, After, AgentLifecycle, Flow, HookAction, HookError, JumpTarget, Policy, hook,
    };
    pub use crate::life::{
        AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent, own_agent,
    };
    pub use crate::message::{History, Message};
    pub use crate::model::{Model, ModelError, ModelRequest, ModelResponse, Usage};
    pub use crate::phase::{AgentState, Phase, PhaseHook, PhasePattern};
    pub use crate::state::{Ownership, Reducer, StateOwnership};
    pub use crate::tool::{Effect, Tool, ToolError, ToolOutput, ToolRequest, ToolSpec};
    pub use crate::{
        CancelToken, Error, ErrorKind, ExitReason, NextModel, NextTool, Outcome, lifecycle, tool,
    };
}

/// The README and the guide: every block of Rust in them is compiled and run with the doc tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/answers.md")]
    mod answers {}
    #[doc = include_str!("../../../docs/cards.md")]
    mod cards {}
    #[doc = include_str!("../../../docs/chat.md")]
    mod chat {}
    #[doc = include_str!("../../../docs/codes.md")]
    mod codes {}
    #[doc = include_str!("../../../docs/faq.md")]
    mod faq {}
    #[doc = include_str!("../../../docs/figures.md")]
    mod figures {}
    #[doc = include_str!("../../../docs/hooks-reference.md")]
    mod hooks_reference {}
    #[doc = include_str!("../../../docs/ready-made-hooks.md")]
    mod ready_made_hooks {}
    #[doc = include_str!("../../../docs/hooks-in-files.md")]
    mod hooks_in_files {}
    #[doc = include_str!("../../../docs/migrating.md")]
    mod migrating {}
    #[doc = include_str!("../../../docs/ownership.md")]
    mod ownership {}
    #[doc = include_str!("../../../docs/program.md")]
    mod program {}
    #[doc = include_str!("../../../docs/python.md")]
    mod python {}
    #[doc = include_str!("../../../docs/runs.md")]
    mod runs {}
    #[doc = include_str!("../../../docs/security.md")]
    mod security {}
    #[doc = include_str!("../../../docs/surviving.md")]
    mod surviving {}
    #[doc = include_str!("../../../docs/testing.md")]
    mod testing {}
    #[doc = include_str!("../../../docs/watch.md")]
    mod watch {}
    #[doc = include_str!("../../../docs/what-happens-at-ctrl-c.md")]
    mod what_happens_at_ctrl_c {}
    #[doc = include_str!("../../../docs/writing-a-hook.md")]
    mod writing_a_hook {}
}

//! Tools that come from elsewhere, and may change while the agent lives.

use super::Tool;
use std::sync::Arc;

/// Where tools come from that are not known when the agent is built: a tool server, a plugin folder.
///
/// An agent looks before every model call. A call that the model asks for goes to the tools that
/// this model call was shown, also if the source has others by then.
///
/// A source is only looked at. What it takes to have tools at all, a connection for instance, is the
/// business of a hook: opened in `on_start`, registered with
/// [`resources`](crate::context::Cx::resources), and so released after the last `on_shutdown`.
pub trait ToolSource: Send + Sync + 'static {
    /// A number that is another one whenever [`tools`](Self::tools) would answer differently.
    fn version(&self) -> u64;

    /// The tools as of now. One whose name is already taken, by a tool of the agent itself or by an
    /// earlier source, is left out.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

impl<S: ToolSource + ?Sized> ToolSource for Arc<S> {
    fn version(&self) -> u64 {
        (**self).version()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        (**self).tools()
    }
}

//! Tower: any `Layer` as a wrap, any wrap as a `Layer`.
//!
//! A [`ModelLayer`] or [`ToolLayer`] makes a wrap of a tower layer; the layer is applied once, when
//! it is made, so what it shares (a concurrency limit, a circuit breaker) is shared by every call
//! of every instance. A [`HookLayer`] makes a layer of a hook, to stand inside such a stack.

mod call;
mod drive;
mod hook_layer;
mod wrap;

pub use call::{InnerService, LayerCall, ModelCall, ToolCall};
pub use hook_layer::{HookLayer, HookService};
pub use wrap::{ModelLayer, ToolLayer};

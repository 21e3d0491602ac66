//! Structured outputs: the form that an agent's answers have.
//!
//! A workflow declares models, and which agent answers with which. [`Outputs`] is what it declares,
//! checked; an [`Output`] is the form of one agent's answers. An agent in `auto_tool_mode` has its
//! tool called with what it answers: [`auto_tool`].

mod auto;
mod registry;
mod schema;
mod spec;
mod spelling;
mod value;

pub use auto::{arguments, auto_tool, unfilled};
pub(crate) use registry::unfenced;
pub use registry::{Output, Outputs, STRUCTURED_OUTPUTS};
pub use schema::check;
pub use spec::{FieldSpec, FieldType, ModelSpec, OutputsSpec};

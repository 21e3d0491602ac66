//! Python functions as tools.

use crate::sandbox::Grant;
use crate::source::Span;
use std::sync::Arc;
use tenure_core::tool::ToolSpec;
use tenure_hosts::PythonFunction;

/// A Python function that the model may call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FunctionTool {
    /// The function as the card writes it: `file.py:function`.
    pub entrypoint: String,
    /// The function that was found.
    pub function: PythonFunction,
    /// Name, description and parameters, from its signature, annotations and docstring; what a crash
    /// means for a call, from the field `effect` or the decorator `tenure.tool`.
    pub spec: Arc<ToolSpec>,
    /// Whether one of its arguments is source code.
    pub code: Option<CodeTool>,
    /// `sandbox`: the confinement of the process that it runs in, if it is not the project's.
    pub sandbox: Option<Grant>,
    /// Where it is written.
    pub span: Span,
}

/// `variant: code`: one argument of the tool is source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeTool {
    /// The argument. `code`.
    pub code_arg: String,
    /// The language. `python`.
    pub language: String,
}

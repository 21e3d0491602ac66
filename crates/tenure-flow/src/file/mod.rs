//! Workflows as folders of files.
//!
//! `workflows/<name>/` has an `orchestrator` file, and beside it `agents`, `tools`, `handoffs`,
//! `context_variables`, `structured_outputs`, `hooks`, `ui_config` and `_pack/workflow_graph`, each
//! as `.json`, `.yaml` or `.yml`. [`load`] reads all of them and finds everything that is wrong, in
//! all files at once; nothing is executed. What was read is a [`WorkflowFile`].

mod agents;
mod data;
mod database;
mod finish;
mod folder;
mod function;
mod graph;
mod handoffs;
mod hooks;
mod lifecycle;
mod load;
mod nested;
mod orchestrator;
mod order;
mod outputs;
mod pack;
mod part;
mod platform;
mod prompt;
mod said;
mod scope;
mod source;
mod team;
mod tools;
mod unfinished;
mod variables;

pub use data::{
    AgentEntry, AgentKind, OrchestratorFile, ToolEntry, ToolType, UiComponent, UiConfig, UiMode,
    VariablesFile, WorkflowFile,
};
pub use folder::{is_workflow, workflows_of};
pub use load::{LoadedWorkflow, check_pack, load};
pub(crate) use platform::{PLATFORM, Replaced};
pub use unfinished::check_folders;

//! The names of the conventions, in the version that [`SCHEMA`] says. They are still in development,
//! so they are written here and not taken from a crate that moves with them.

/// The version of the conventions.
pub(super) const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.1";

pub(super) const AGENT_DESCRIPTION: &str = "gen_ai.agent.description";
pub(super) const AGENT_ID: &str = "gen_ai.agent.id";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const OUTPUT_TYPE: &str = "gen_ai.output.type";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(super) const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub(super) const RESPONSE_FINISH: &str = "gen_ai.response.finish_reasons";
pub(super) const RESPONSE_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(super) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const USAGE_CACHED: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub(super) const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
pub(super) const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const WORKFLOW: &str = "gen_ai.workflow.name";

// What the conventions have no name for.
pub(super) const APPROVAL_DECISION: &str = "tenure.approval.decision";
pub(super) const APPROVAL_KIND: &str = "tenure.approval.kind";
pub(super) const APPROVAL_PROMPT: &str = "tenure.approval.prompt";
pub(super) const COST: &str = "tenure.usage.cost_usd";
pub(super) const HOOK_EVENT: &str = "tenure.hook.event";
pub(super) const HOOK_ID: &str = "tenure.hook.id";
pub(super) const HOOK_OUTCOME: &str = "tenure.hook.outcome";
pub(super) const LIFECYCLE_TOOL: &str = "tenure.lifecycle_tool.name";
pub(super) const LIFECYCLE_TOOL_DESCRIPTION: &str = "tenure.lifecycle_tool.description";
pub(super) const LIFECYCLE_TOOL_FUNCTION: &str = "tenure.lifecycle_tool.function";
pub(super) const LIFECYCLE_TOOL_STATUS: &str = "tenure.lifecycle_tool.status";
pub(super) const OUTCOME: &str = "tenure.outcome";
pub(super) const RESUMED: &str = "tenure.resumed";
pub(super) const STATE: &str = "tenure.lifecycle.state";
pub(super) const STATE_PHASE: &str = "tenure.lifecycle.phase";
pub(super) const STATE_FROM: &str = "tenure.lifecycle.from";

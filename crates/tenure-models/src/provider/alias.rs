//! Short names of models, and whose model a bare name is.

/// Short names, as cards use them. Where cards reach a model by OpenAI's responses, the name here
/// stands for the same model by chat completions.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("sonnet", "anthropic.claude-sonnet-5"),
    ("sonnet5", "anthropic.claude-sonnet-5"),
    ("sonnet4", "anthropic.claude-sonnet-4-6"),
    ("sonnet46", "anthropic.claude-sonnet-4-6"),
    ("claude", "anthropic.claude-sonnet-5"),
    ("haiku", "anthropic.claude-haiku-4-5"),
    ("haiku45", "anthropic.claude-haiku-4-5"),
    ("opus", "anthropic.claude-opus-5"),
    ("opus5", "anthropic.claude-opus-5"),
    ("opus4", "anthropic.claude-opus-4-8"),
    ("opus46", "anthropic.claude-opus-4-6"),
    ("opus47", "anthropic.claude-opus-4-7"),
    ("opus48", "anthropic.claude-opus-4-8"),
    ("fable", "anthropic.claude-fable-5"),
    ("fable5", "anthropic.claude-fable-5"),
    ("gpt51", "openai.gpt-5.1"),
    ("gpt52", "openai.gpt-5.2"),
    ("gpt54", "openai.gpt-5.4"),
    ("gpt54-mini", "openai.gpt-5.4-mini"),
    ("gpt54-nano", "openai.gpt-5.4-nano"),
    ("gpt55", "openai.gpt-5.5"),
    ("gpt56", "openai.gpt-5.6"),
    ("gpt56-sol", "openai.gpt-5.6-sol"),
    ("gpt56-terra", "openai.gpt-5.6-terra"),
    ("gpt56-luna", "openai.gpt-5.6-luna"),
    ("chatgpt", "openai.chat-latest"),
    ("chat-latest", "openai.chat-latest"),
    ("gemini", "google.gemini-3.1-pro-preview"),
    ("gemini2", "google.gemini-2.0-flash"),
    ("gemini25", "google.gemini-2.5-flash"),
    ("gemini25pro", "google.gemini-2.5-pro"),
    ("gemini3", "google.gemini-3-pro-preview"),
    ("gemini3flash", "google.gemini-3-flash-preview"),
    ("gemini3.1", "google.gemini-3.1-pro-preview"),
    ("gemini31pro", "google.gemini-3.1-pro-preview"),
    ("gemini3.1flashlite", "google.gemini-3.1-flash-lite-preview"),
    ("gemini35", "google.gemini-3.5-flash"),
    ("gemini35flash", "google.gemini-3.5-flash"),
    ("gemini3.5flash", "google.gemini-3.5-flash"),
    ("deepseek", "deepseek.deepseek-v4-flash"),
    ("deepseekpro", "deepseek.deepseek-v4-pro"),
    ("grok", "xai.grok-4.6"),
    ("grok4", "xai.grok-4.6"),
    ("grok43", "xai.grok-4.3"),
    ("grok45", "xai.grok-4.5"),
    ("grok46", "xai.grok-4.6"),
    ("kimik3", "moonshot.kimi-k3"),
    ("zaiglm", "zai.glm-5.2"),
    ("qwen-turbo", "aliyun.qwen-turbo"),
    ("qwen3-max", "aliyun.qwen3-max"),
    ("kimi", "hf.moonshotai/Kimi-K2.7-Code:fireworks-ai?temperature=1.0&top_p=0.95"),
    ("gpt-oss", "hf.openai/gpt-oss-120b:cerebras"),
    ("gpt-oss-20b", "hf.openai/gpt-oss-20b"),
    ("glm", "hf.zai-org/GLM-5.2:zai-org"),
    ("minimax", "hf.MiniMaxAI/MiniMax-M3:together?temperature=1.0&top_p=0.95&top_k=40"),
];

/// How the names of a provider's models begin.
const PREFIXES: &[(&str, &str)] = &[
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "google"),
    ("deepseek-", "deepseek"),
    ("grok-", "xai"),
];

/// What a short name stands for.
pub(super) fn expand(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, spec)| *spec)
}

/// Whose model a bare name is.
pub(super) fn owner(model: &str) -> Option<&'static str> {
    let (_, provider) = PREFIXES.iter().find(|(prefix, _)| {
        model.strip_prefix(prefix).is_some_and(|rest| {
            // `o3` and `o3-mini`, and not every word that begins so.
            prefix.ends_with('-') || rest.is_empty() || rest.starts_with('-')
        })
    })?;
    Some(provider)
}

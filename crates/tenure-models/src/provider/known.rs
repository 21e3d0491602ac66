//! The providers that Tenure knows by name, and those that it knows not to serve.

use super::config::Wire;

/// A provider with a name of its own.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// Other names that cards use.
    pub(super) also: &'static [&'static str],
    pub(super) wire: Wire,
    pub(super) base_url: &'static str,
    /// The variables that hold its address, first one first.
    pub(super) url_env: &'static [&'static str],
    /// The variables that hold its key, first one first.
    pub(super) key_env: &'static [&'static str],
    /// Whether its server answers without a key.
    pub(super) keyless: bool,
}

const fn compatible(
    name: &'static str,
    base_url: &'static str,
    url_env: &'static [&'static str],
    key_env: &'static [&'static str],
) -> Known {
    Known { name, also: &[], wire: Wire::OpenAi, base_url, url_env, key_env, keyless: false }
}

pub(super) const KNOWN: &[Known] = &[
    compatible("openai", "https://api.openai.com/v1", &["OPENAI_BASE_URL"], &["OPENAI_API_KEY"]),
    Known {
        name: "anthropic",
        also: &[],
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com",
        url_env: &["ANTHROPIC_BASE_URL"],
        key_env: &["ANTHROPIC_API_KEY"],
        keyless: false,
    },
    Known {
        name: "google",
        also: &["gemini"],
        wire: Wire::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        url_env: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        key_env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        keyless: false,
    },
    Known {
        name: "ollama",
        also: &[],
        wire: Wire::Ollama,
        base_url: "http://localhost:11434",
        url_env: &["OLLAMA_BASE_URL", "OLLAMA_HOST"],
        key_env: &["OLLAMA_API_KEY"],
        keyless: true,
    },
    Known {
        name: "generic",
        also: &[],
        wire: Wire::OpenAi,
        base_url: "http://localhost:11434/v1",
        url_env: &["GENERIC_BASE_URL"],
        key_env: &["GENERIC_API_KEY"],
        keyless: true,
    },
    Known {
        also: &["google-oai"],
        ..compatible(
            "googleoai",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            &["GOOGLEOAI_BASE_URL"],
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )
    },
    compatible("groq", "https://api.groq.com/openai/v1", &["GROQ_BASE_URL"], &["GROQ_API_KEY"]),
    compatible(
        "deepseek",
        "https://api.deepseek.com/v1",
        &["DEEPSEEK_BASE_URL"],
        &["DEEPSEEK_API_KEY"],
    ),
    compatible("xai", "https://api.x.ai/v1", &["XAI_BASE_URL"], &["XAI_API_KEY"]),
    compatible(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_BASE_URL"],
        &["OPENROUTER_API_KEY"],
    ),
    Known {
        also: &["huggingface"],
        ..compatible("hf", "https://router.huggingface.co/v1", &["HF_BASE_URL"], &["HF_TOKEN"])
    },
    compatible(
        "moonshot",
        "https://api.moonshot.ai/v1",
        &["MOONSHOT_BASE_URL"],
        &["MOONSHOT_API_KEY"],
    ),
    compatible("zai", "https://api.z.ai/api/paas/v4", &["ZAI_BASE_URL"], &["ZAI_API_KEY"]),
    compatible(
        "aliyun",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["ALIYUN_BASE_URL"],
        &["ALIYUN_API_KEY", "DASHSCOPE_API_KEY"],
    ),
    compatible("mistral", "https://api.mistral.ai/v1", &["MISTRAL_BASE_URL"], &["MISTRAL_API_KEY"]),
    compatible(
        "together",
        "https://api.together.xyz/v1",
        &["TOGETHER_BASE_URL"],
        &["TOGETHER_API_KEY"],
    ),
];

/// Providers that cards may name and that Tenure does not serve, with what to do instead.
pub(super) const UNSERVED: &[(&str, &str)] = &[
    ("responses", "use the same model by OpenAI's chat completions: `openai.<model>`"),
    ("openresponses", "use `generic.<model>` if the server has chat completions too"),
    ("codexresponses", "use `openai.<model>` with a key of its own"),
    ("anthropic-vertex", "use `anthropic.<model>` with a key of its own"),
    ("bedrock", "use the model's own provider, or `generic.<model>` with a compatible gateway"),
    ("azure", "name a provider of your own with `kind = \"openai\"` and its `base_url`"),
    ("tensorzero", "name a provider of your own with `kind = \"openai\"` and its `base_url`"),
    ("metaai", "name a provider of your own with `kind = \"openai\"` and its `base_url`"),
    ("fast-agent", "write the internal model's name alone: `passthrough`"),
];

/// The provider of this name, or of one of its other names.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name || known.also.contains(&name))
}

/// What to do instead of using an unserved provider, if `name` is one.
pub(super) fn unserved(name: &str) -> Option<&'static str> {
    UNSERVED.iter().find(|(other, _)| *other == name).map(|(_, instead)| *instead)
}

/// The variables that hold the key of a provider, unless somebody says otherwise.
pub(super) fn key_env(name: &str, known: Option<&Known>) -> Vec<String> {
    match known.map(|known| known.key_env).filter(|names| !names.is_empty()) {
        Some(names) => names.iter().map(|name| (*name).to_owned()).collect(),
        None => vec![own_key_env(name)],
    }
}

/// The variable that holds the key of a provider that is not known by name.
pub(super) fn own_key_env(name: &str) -> String {
    let upper: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("{upper}_API_KEY")
}

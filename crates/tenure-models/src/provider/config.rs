//! What is said about providers, and by whom.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The language that a provider's server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wire {
    /// OpenAI's chat completions, and every server that is compatible.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Wire {
    /// The name that a configuration uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The language of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama]
            .into_iter()
            .find(|wire| wire.name() == name)
    }
}

/// Where a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeySource {
    /// An environment variable.
    Env(String),
    /// A file that holds nothing else.
    File(PathBuf),
}

/// Who said something about a provider. A key goes only where its user sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authority {
    /// The user: their own configuration, their environment, their program.
    #[default]
    User,
    /// The project that is being run.
    Project,
}

/// What is said about one provider.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProviderEntry {
    /// Its language; needed for a provider that Tenure does not know by name.
    pub wire: Option<Wire>,
    /// Where its server is, and who says so.
    pub base_url: Option<(String, Authority)>,
    /// Where its key comes from. Only the user can say this.
    pub key: Option<KeySource>,
    /// Hosts to which the user allows the key to be sent, also where a project names them:
    /// `proxy.example.com`, `proxy.example.com:8443` or `*.example.com`.
    pub allow_hosts: Vec<String>,
    /// Command lines of tool servers to which the user allows the key to be given, as they are written.
    pub allow_commands: Vec<String>,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read that came from a cache; as `input` if it is not said.
    pub cached: Option<f64>,
}

impl Price {
    /// So much for reading and so much for writing.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached: None }
    }

    /// The same price with another one for tokens from a cache.
    #[must_use]
    pub const fn with_cached(mut self, cached: f64) -> Self {
        self.cached = Some(cached);
        self
    }
}

/// How long a provider may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From the request to the head of a streamed answer.
    pub head: Duration,
    /// Between two pieces of an answer that has begun. `None` is no limit, also to how long a
    /// streamed answer may not go on.
    pub idle: Option<Duration>,
    /// From the request to the end of an answer that comes in one piece. A streamed answer may
    /// take longer, but has to go on within this time (or `idle`, if that is longer): comments,
    /// pings and empty pieces only show that the server lives.
    pub whole: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            idle: Some(Duration::from_secs(120)),
            whole: Duration::from_secs(600),
        }
    }
}

/// Everything that is said about providers.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// By name.
    pub providers: BTreeMap<String, ProviderEntry>,
    /// Short names for models.
    pub aliases: BTreeMap<String, String>,
    /// Prices by `provider.model` or by the model alone, before the built-in ones.
    pub prices: BTreeMap<String, Price>,
    /// How long a provider may be silent.
    pub timeouts: Timeouts,
}

//! Models over the network: OpenAI and compatible servers, Anthropic, Gemini, Ollama.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A key that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// Keeps `key` from being shown.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

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
    /// Hosts to which the user allows the key to be sent, also where a project names them.
    pub allow_hosts: Vec<String>,
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
}

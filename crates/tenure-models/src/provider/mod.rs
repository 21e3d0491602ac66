//! Models over the network: OpenAI and compatible servers, Anthropic, Gemini, Ollama.
//!
//! [`Providers`] turns a model string, as cards use them, into a [`RemoteModel`]:
//!
//! ```no_run
//! use tenure_core::agent::Agent;
//! use tenure_models::provider::{ProviderConfig, Providers};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let providers = Providers::new(ProviderConfig::default());
//! let model = providers.model("openai.gpt-4o-mini?temperature=0")?;
//! let agent = Agent::builder("writer").model(model).build()?;
//! agent.startup().await?;
//! println!("{}", agent.run("Say hello.").await?.output());
//! agent.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! # Where a key goes
//!
//! A key comes from the environment, or from a file that the user's own configuration names. It is
//! sent to its provider's own host, and to a host that the user chose or allows; never to one that
//! only a project names, never along a redirect, and never by `http` to another machine unless the
//! user wrote that address. It is shown nowhere.
//!
//! # How a call fails
//!
//! Each failure has a kind ([`ModelErrorKind`](tenure_core::model::ModelErrorKind)), the status of
//! the HTTP answer if there was one, and how long to wait if the provider said so. A stream that
//! ends before the answer does is [`Truncated`](tenure_core::model::ModelErrorKind::Truncated), and
//! yields no tool call.
//!
//! # Without the feature `providers`
//!
//! Model strings are read and checked, and [`Providers::model`] refuses every one of them as
//! [`NotBuilt`](ProviderErrorKind::NotBuilt).

// What only a call reads has no reader where nothing can be called.
#![cfg_attr(not(feature = "providers"), allow(dead_code))]

mod alias;
#[cfg(feature = "providers")]
mod answer;
#[cfg(feature = "providers")]
mod anthropic;
#[cfg(feature = "providers")]
mod clients;
mod config;
mod error;
#[cfg(feature = "providers")]
mod fault;
#[cfg(feature = "providers")]
mod gemini;
mod host;
mod key;
mod known;
#[cfg(not(feature = "providers"))]
mod left_out;
#[cfg(feature = "providers")]
mod model;
#[cfg(feature = "providers")]
mod ollama;
#[cfg(feature = "providers")]
mod openai;
mod options;
mod price;
mod providers;
#[cfg(feature = "providers")]
mod retry_after;
mod spec;
#[cfg(feature = "providers")]
mod transport;
#[cfg(feature = "providers")]
mod unreached;

pub use config::{Authority, KeySource, Price, ProviderConfig, ProviderEntry, Timeouts, Wire};
pub use error::{ProviderError, ProviderErrorKind};
pub use key::ApiKey;
#[cfg(not(feature = "providers"))]
pub use left_out::RemoteModel;
#[cfg(feature = "providers")]
pub use model::RemoteModel;
pub use providers::{ModelTarget, ProviderStatus, Providers};

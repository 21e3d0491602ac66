//! Models: those that need no network, for tests, for examples, and for trying a hook out; and,
//! with the feature `providers`, those of OpenAI and compatible servers, Anthropic, Gemini and Ollama.
//!
//! | model | answers |
//! |---|---|
//! | [`Passthrough`] | with what it was told; calls a tool if told to |
//! | [`Playback`] | with the assistant messages of a conversation, one after the other |
//! | [`Script`] | as a file says: the n-th call of a turn with the n-th reply |
//! | [`Scripted`] | with what a script says, or a closure |
//! | [`Slow`] | as another model does, later |
//! | [`Silent`] | as [`Passthrough`] does, and costs nothing |
//! | [`Failing`] | with an error, always |
//! | [`Hanging`] | never |
//! | `provider::RemoteModel` | as a provider's server does; see `provider` |
//!
//! Each but the last reports usage, in words instead of tokens, so that accounting can be tested
//! without a provider; [`Silent`] reports none. Each hands its text to a reader word by word.
//!
//! ```
//! use tenure_core::agent::Agent;
//! use tenure_models::Passthrough;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let agent = Agent::builder("echo").model(Passthrough::new()).build()?;
//! agent.startup().await?;
//! assert_eq!(agent.run("hello there").await?.output(), "hello there");
//! agent.shutdown().await;
//! # Ok::<_, tenure_core::Error>(()) }).unwrap();
//! ```

mod failing;
mod hanging;
mod passthrough;
mod playback;
#[cfg(feature = "provider-names")]
pub mod provider;
mod script;
mod scripted;
mod silent;
mod slow;
mod words;

pub use failing::Failing;
pub use hanging::Hanging;
pub use passthrough::Passthrough;
pub use playback::Playback;
pub use script::{Script, ScriptError};
pub use scripted::{Reply, Scripted};
pub use silent::Silent;
pub use slow::Slow;

/// A page of the guide: its code is compiled and run with the doc tests.
#[cfg(all(doctest, feature = "providers"))]
#[doc = include_str!("../../../docs/models.md")]
mod guide {}

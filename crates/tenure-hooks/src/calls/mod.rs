//! Hooks around model and tool calls: made again, made elsewhere, bounded, kept, or not made at all.

mod backoff;
mod breaker;
mod cache;
mod circuit;
mod concurrency;
mod failure;
mod fallback;
mod names;
mod pace;
mod rate_limit;
mod refusal;
mod retry;
mod round;
mod scope;
mod timeout;
mod tool_errors;
mod tool_retry;

pub use backoff::Jitter;
pub use breaker::CircuitBreaker;
pub use cache::ResponseCache;
pub use concurrency::Concurrency;
pub use fallback::Fallback;
pub use rate_limit::RateLimit;
pub use refusal::Refusal;
pub use retry::Retry;
pub use scope::Per;
pub use timeout::Timeout;
pub use tool_errors::ToolErrors;
pub use tool_retry::ToolRetry;

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[
    Ready::of::<retry::RetryOptions>(),
    Ready::of::<tool_retry::ToolRetryOptions>(),
    Ready::of::<cache::CacheOptions>(),
    Ready::of::<fallback::FallbackOptions>(),
    Ready::of::<refusal::RefusalOptions>(),
    Ready::of::<breaker::BreakerOptions>(),
    Ready::of::<rate_limit::RateLimitOptions>(),
    Ready::of::<concurrency::ConcurrencyOptions>(),
    Ready::of::<timeout::TimeoutOptions>(),
    Ready::of::<tool_errors::ToolErrorsOptions>(),
];

//! What a model string says behind its question mark.

use super::error::{ProviderError, ProviderErrorKind as Kind, nearest};
use std::time::Duration;

/// How much a model should think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// As the provider thinks best.
    Auto,
    Off,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
    /// At most so many tokens.
    Budget(u32),
}

impl Reasoning {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "auto" | "adaptive" | "on" | "true" | "yes" | "1" => Self::Auto,
            "none" | "off" | "false" | "no" | "0" => Self::Off,
            "minimal" => Self::Minimal,
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            "xhigh" => Self::XHigh,
            "max" => Self::Max,
            number => Self::Budget(number.parse().ok()?),
        })
    }

    /// The effort that the end of an old-style model name stands for: `o3-mini.high`.
    pub(super) fn from_suffix(suffix: &str) -> Option<Self> {
        matches!(suffix, "minimal" | "low" | "medium" | "high").then(|| Self::parse(suffix))?
    }

    /// The word for an effort, if it is one of those that most providers know.
    pub(super) fn effort(self) -> Option<&'static str> {
        Some(match self {
            Self::Auto | Self::Budget(_) => return None,
            Self::Off => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        })
    }
}

/// How a model is to be called, as far as its string says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) reasoning: Option<Reasoning>,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
    pub(super) top_p: Option<f64>,
    pub(super) top_k: Option<u32>,
    pub(super) min_p: Option<f64>,
    pub(super) presence_penalty: Option<f64>,
    pub(super) repetition_penalty: Option<f64>,
    pub(super) verbosity: Option<String>,
    pub(super) service_tier: Option<String>,
    /// How long the answer may be silent; `Some(None)` for as long as it likes.
    pub(super) idle: Option<Option<Duration>>,
}

const KEYS: &[&str] = &[
    "reasoning",
    "temperature",
    "temp",
    "max_tokens",
    "maxTokens",
    "top_p",
    "topP",
    "top_k",
    "topK",
    "min_p",
    "minP",
    "presence_penalty",
    "presencePenalty",
    "repetition_penalty",
    "repetitionPenalty",
    "verbosity",
    "service_tier",
    "streaming_timeout",
];

/// Keys that cards may carry for features that are not served.
const UNSERVED: &[&str] = &[
    "structured",
    "instant",
    "context",
    "transport",
    "structured_tools",
    "structuredToolPolicy",
    "structured_tool_policy",
    "web_search",
    "x_search",
    "web_fetch",
    "task_budget",
    "taskBudget",
    "poll_period",
];

impl Options {
    /// Reads `query`, which belongs to the model string `spec`.
    pub(super) fn parse(query: &str, spec: &str) -> Result<Self, ProviderError> {
        let mut options = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            options.set(key.trim(), value.trim(), spec)?;
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str, spec: &str) -> Result<(), ProviderError> {
        let wrong = |wanted: &str| {
            ProviderError::new(
                Kind::BadSpec,
                format!("`{key}={value}` in the model `{spec}` is not {wanted}"),
                format!("write {wanted} behind `{key}=`"),
            )
        };
        let number = || {
            let number: f64 = value.parse().ok()?;
            number.is_finite().then_some(number)
        };
        let float = |wanted| number().map(Some).ok_or_else(|| wrong(wanted));
        let whole = || value.parse::<u32>().ok().filter(|number| *number > 0);
        match key {
            "reasoning" => {
                let wanted = "one of none, minimal, low, medium, high, xhigh, max, auto, on, off \
                              or a number of tokens";
                self.reasoning = Some(Reasoning::parse(value).ok_or_else(|| wrong(wanted))?);
            }
            "temperature" | "temp" => self.temperature = float("a number")?,
            "top_p" | "topP" => self.top_p = float("a number")?,
            "min_p" | "minP" => self.min_p = float("a number")?,
            "presence_penalty" | "presencePenalty" => self.presence_penalty = float("a number")?,
            "repetition_penalty" | "repetitionPenalty" => {
                self.repetition_penalty = float("a number")?;
            }
            "max_tokens" | "maxTokens" => {
                self.max_tokens = Some(whole().ok_or_else(|| wrong("a whole number above 0"))?);
            }
            "top_k" | "topK" => {
                self.top_k = Some(whole().ok_or_else(|| wrong("a whole number above 0"))?);
            }
            "verbosity" => {
                self.verbosity = Some(
                    one_of(value, &["low", "medium", "high"])
                        .ok_or_else(|| wrong("one of low, medium, high"))?,
                );
            }
            "service_tier" => {
                self.service_tier = Some(
                    one_of(value, &["fast", "flex"]).ok_or_else(|| wrong("one of fast, flex"))?,
                );
            }
            "streaming_timeout" => {
                self.idle = Some(if value == "none" {
                    None
                } else {
                    let seconds = number().filter(|seconds| (0.001..=86_400.0).contains(seconds));
                    let seconds = seconds.ok_or_else(|| wrong("a number of seconds, or none"))?;
                    Some(Duration::from_secs_f64(seconds))
                });
            }
            unserved if UNSERVED.contains(&unserved) => {
                return Err(ProviderError::new(
                    Kind::Unsupported,
                    format!("`{key}` in the model `{spec}` is not served"),
                    format!("leave `{key}` out"),
                ));
            }
            unknown => {
                let help = match nearest(unknown, KEYS.iter().copied()) {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => format!("known are {}", KEYS.join(", ")),
                };
                return Err(ProviderError::new(
                    Kind::BadSpec,
                    format!("`{unknown}` in the model `{spec}` is not an option"),
                    help,
                ));
            }
        }
        Ok(())
    }

    /// These options, and where they say nothing, the others.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            reasoning: self.reasoning.or(other.reasoning),
            temperature: self.temperature.or(other.temperature),
            max_tokens: self.max_tokens.or(other.max_tokens),
            top_p: self.top_p.or(other.top_p),
            top_k: self.top_k.or(other.top_k),
            min_p: self.min_p.or(other.min_p),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            repetition_penalty: self.repetition_penalty.or(other.repetition_penalty),
            verbosity: self.verbosity.or(other.verbosity),
            service_tier: self.service_tier.or(other.service_tier),
            idle: self.idle.or(other.idle),
        }
    }
}

fn one_of(value: &str, words: &[&str]) -> Option<String> {
    let value = value.to_ascii_lowercase();
    words.contains(&value.as_str()).then_some(value)
}

//! The four ways in which speakers are chosen.

use serde::Serialize;
use std::fmt;

/// How speakers are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pattern {
    /// By handoffs.
    Default,
    /// A model picks them. What counts in a file that does not say.
    #[default]
    Auto,
    /// One after the other.
    RoundRobin,
    /// By a chance that the seed decides.
    Random,
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Pattern; 4] = [Self::Default, Self::Auto, Self::RoundRobin, Self::Random];

    /// The pattern's name, as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "DefaultPattern",
            Self::Auto => "AutoPattern",
            Self::RoundRobin => "RoundRobinPattern",
            Self::Random => "RandomPattern",
        }
    }

    /// The pattern of this name, or of the name that a group chat of AG2 has for it: `auto`,
    /// `round_robin` and `random`. The module that a class is in may stand before it.
    pub fn of_name(name: &str) -> Option<Self> {
        let class = name.rsplit('.').next().unwrap_or(name);
        let method = match class {
            "auto" => Some(Self::Auto),
            "round_robin" => Some(Self::RoundRobin),
            "random" => Some(Self::Random),
            _ => None,
        };
        method.or_else(|| Self::ALL.into_iter().find(|pattern| pattern.as_str() == class))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

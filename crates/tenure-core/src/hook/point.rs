//! The eleven points of an agent's life.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A point of an agent's life that can be hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Point {
    /// The instance starts.
    OnStart = 0,
    /// The instance ends.
    OnShutdown = 1,
    /// A chat begins.
    BeforeChat = 2,
    /// A chat ends.
    AfterChat = 3,
    /// A turn begins.
    BeforeAgent = 4,
    /// A turn ends.
    AfterAgent = 5,
    /// A model call is about to be made.
    BeforeModel = 6,
    /// A model call is made.
    WrapModelCall = 7,
    /// A model has answered.
    AfterModel = 8,
    /// A tool call is made.
    WrapToolCall = 9,
    /// The agent moved from one phase to another.
    OnTransition = 10,
}

impl Point {
    /// Every point.
    #[doc(alias = "VALID_LIFECYCLE_HOOK_TYPES")]
    pub const ALL: [Point; 11] = [
        Point::OnStart,
        Point::OnShutdown,
        Point::BeforeChat,
        Point::AfterChat,
        Point::BeforeAgent,
        Point::AfterAgent,
        Point::BeforeModel,
        Point::WrapModelCall,
        Point::AfterModel,
        Point::WrapToolCall,
        Point::OnTransition,
    ];

    /// The point's name, as the trait and files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnStart => "on_start",
            Self::OnShutdown => "on_shutdown",
            Self::BeforeChat => "before_chat",
            Self::AfterChat => "after_chat",
            Self::BeforeAgent => "before_agent",
            Self::AfterAgent => "after_agent",
            Self::BeforeModel => "before_model",
            Self::WrapModelCall => "wrap_model_call",
            Self::AfterModel => "after_model",
            Self::WrapToolCall => "wrap_tool_call",
            Self::OnTransition => "on_transition",
        }
    }

    /// Whether the point ends a scope. Ends cannot deny, and never change an outcome (G5).
    pub const fn is_end(self) -> bool {
        matches!(self, Self::OnShutdown | Self::AfterChat | Self::AfterAgent)
    }

    /// Whether what a hook decides there is recorded and taken from the record when a run goes on:
    /// it is there that a hook may have to be called
    /// [again](super::Registration::again_on_resume).
    pub const fn decides(self) -> bool {
        matches!(self, Self::BeforeChat | Self::BeforeAgent | Self::BeforeModel | Self::AfterModel)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Point {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|point| point.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|point| point.as_str()).collect();
            crate::Error::invalid(format!(
                "`{text}` is not a hook point; use one of {}",
                names.join(", ")
            ))
        })
    }
}

/// A set of points.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Points(u16);

impl Points {
    /// No point.
    pub const NONE: Points = Points(0);
    /// Every point.
    pub const ALL: Points = Points((1 << 11) - 1);

    /// Whether `point` is in the set.
    #[inline]
    pub const fn contains(self, point: Point) -> bool {
        self.0 & (1 << point as u16) != 0
    }

    /// Whether any point of `other` is in the set.
    #[inline]
    pub const fn intersects(self, other: Points) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set with `point` added.
    #[must_use]
    pub const fn with(self, point: Point) -> Points {
        Points(self.0 | 1 << point as u16)
    }

    /// The points of the set.
    pub fn iter(self) -> impl Iterator<Item = Point> {
        Point::ALL.into_iter().filter(move |point| self.contains(*point))
    }
}

impl From<Point> for Points {
    fn from(point: Point) -> Self {
        Self::NONE.with(point)
    }
}

impl BitOr for Points {
    type Output = Points;

    fn bitor(self, other: Points) -> Points {
        Points(self.0 | other.0)
    }
}

impl BitOrAssign for Points {
    fn bitor_assign(&mut self, other: Points) {
        self.0 |= other.0;
    }
}

impl FromIterator<Point> for Points {
    fn from_iter<I: IntoIterator<Item = Point>>(points: I) -> Self {
        points.into_iter().fold(Points::NONE, Points::with)
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Point::as_str)).finish()
    }
}

//! Making things go wrong, on purpose and always in the same way.
//!
//! The plan says what goes wrong where; the hook, the model and the tool here carry it out.

mod hook;
mod model;
mod plan;
mod tool;

pub use hook::FaultyHook;
pub use model::FaultyModel;
pub use plan::{FaultPlan, Injected};
pub use tool::FaultyTool;

use std::fmt;
use std::time::Duration;
use tenure_core::hook::Point;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An error is returned.
    Fail,
    /// It panics.
    Panic,
    /// It never ends.
    Hang,
    /// It holds its thread for so long, as code does that blocks. No limit can stop it meanwhile.
    Block(Duration),
    /// It takes so long, and then goes well.
    Slow(Duration),
}

/// Where something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In a [`FaultyHook`], at this point.
    Hook(Point),
    /// In a [`FaultyModel`].
    Model,
    /// In a [`FaultyTool`].
    Tool,
}

impl Place {
    /// How many places there are.
    pub(crate) const COUNT: usize = Point::ALL.len() + 2;

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Hook(point) => point as usize,
            Self::Model => Point::ALL.len(),
            Self::Tool => Point::ALL.len() + 1,
        }
    }
}

impl From<Point> for Place {
    fn from(point: Point) -> Self {
        Self::Hook(point)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hook(point) => point.fmt(f),
            Self::Model => f.write_str("the model"),
            Self::Tool => f.write_str("the tool"),
        }
    }
}

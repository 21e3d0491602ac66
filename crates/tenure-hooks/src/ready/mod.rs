//! The ready-made hooks by name, as files use them: what each is, what it takes, and how it is made.
//!
//! ```
//! use serde_json::json;
//! use tenure_hooks::ready::{self, Bench};
//!
//! let retry = ready::find("retry").expect("there is one");
//! let bench = Bench::new();
//! assert!(retry.make(&json!({ "attempts": 3 }), &bench).is_ok());
//! let refused = retry.make(&json!({ "attempt": 3 }), &bench).unwrap_err();
//! assert!(refused.to_string().contains("unknown field `attempt`"), "{refused}");
//! ```

#[cfg(feature = "standard")]
mod apart;
mod bench;
mod describe;
mod left_out;
mod makings;
#[cfg(feature = "standard")]
mod options;
#[cfg(feature = "standard")]
mod read;
mod refusal;
#[cfg(feature = "standard")]
mod value;
#[cfg(feature = "standard")]
mod wrong;

pub use bench::Bench;
pub use describe::OptionRow;
pub use left_out::left_out;
pub use makings::{Makings, Shared};
#[cfg(feature = "standard")]
pub(crate) use options::Options;
pub use refusal::Refusal;
#[cfg(feature = "standard")]
#[allow(unused_imports)]
pub(crate) use value::{Address, CommandLine, ModelName, Pattern, ProjectPath, Time, Variable};

use serde_json::Value;
use std::fmt;
use tenure_core::hook::Registration;

/// A hook that files use by name.
#[derive(Clone, Copy)]
pub struct Ready {
    about: About,
    schema: fn() -> Value,
    make: fn(&Value, &dyn Makings) -> Result<Registration, Refusal>,
    refusals: fn(&Value, &dyn Makings, Refusal) -> Vec<Refusal>,
}

/// What is said of a ready-made hook.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct About {
    /// The name that files use.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The use cases that it covers, by id.
    pub covers: &'static [&'static str],
    /// What it is called elsewhere.
    pub peers: &'static [&'static str],
    /// A `with` that works, as JSON. It names no model and no server that has to be there, other
    /// than `passthrough`.
    pub example: &'static str,
}

impl Ready {
    /// The hook that these options make.
    #[cfg(feature = "standard")]
    pub(crate) const fn of<O: Options>() -> Self {
        Self {
            about: O::ABOUT,
            schema: options::schema::<O>,
            make: options::make::<O>,
            refusals: options::refusals::<O>,
        }
    }

    /// The name that files use.
    pub fn name(&self) -> &'static str {
        self.about.name
    }

    /// What is said of it.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The JSON Schema of what it takes by `with`. The format of a text says what it names: `model`,
    /// `path`, `url`, `env` (a variable of the environment); a list of the format `command` is one.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// The hook, made of what `with` says. Nothing is opened, reached or started by that.
    pub fn make(&self, with: &Value, makings: &dyn Makings) -> Result<Registration, Refusal> {
        (self.make)(with, makings)
    }

    /// The hook, as [`Ready::make`] makes it, or everything that is wrong with what `with` says: each
    /// with its own field, and never nothing.
    ///
    /// ```
    /// use serde_json::json;
    /// use tenure_hooks::ready::{self, Bench};
    ///
    /// let retry = ready::find("retry").expect("there is one");
    /// let with = json!({ "jitter": "ful", "initial_delay": 5 });
    /// let refused = retry.make_or_all(&with, &Bench::new()).unwrap_err();
    /// let fields: Vec<_> = refused.iter().map(|it| it.field()).collect();
    /// assert_eq!(fields, ["jitter", "initial_delay"]);
    /// ```
    pub fn make_or_all(
        &self,
        with: &Value,
        makings: &dyn Makings,
    ) -> Result<Registration, Vec<Refusal>> {
        self.make(with, makings).map_err(|first| (self.refusals)(with, makings, first))
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready").field("about", &self.about).finish_non_exhaustive()
    }
}

/// All of them, by group.
#[cfg(feature = "standard")]
const GROUPS: &[(&str, &[Ready])] = &[
    ("calls", crate::calls::READY),
    ("input", crate::input::READY),
    ("context", crate::context::READY),
    ("guards", crate::guard::READY),
    ("people", crate::people::READY),
    ("critics", crate::critic::READY),
    ("tools", crate::tools::READY),
    ("seeing", crate::see::READY),
    ("adaptation", crate::adapt::READY),
    ("results", crate::result::READY),
];
#[cfg(not(feature = "standard"))]
const GROUPS: &[(&str, &[Ready])] = &[];

/// Every ready-made hook with the name of its group, in the order of the documentation.
pub fn all() -> impl Iterator<Item = (&'static str, &'static Ready)> {
    GROUPS.iter().flat_map(|(group, hooks)| hooks.iter().map(|hook| (*group, hook)))
}

/// The hook of this name.
pub fn find(name: &str) -> Option<&'static Ready> {
    all().map(|(_, hook)| hook).find(|hook| hook.name() == name)
}

//! The one evaluator of templates and expressions.

use minijinja::{Environment, UndefinedBehavior};

/// What one evaluation may do. Whoever needs more has written a program.
const FUEL: u64 = 100_000;

/// It loads nothing, takes what is not there for an error, and ends.
pub(crate) fn evaluator() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment
}

//! The one evaluator of templates and expressions.

use crate::limit;
use minijinja::{Environment, Error, ErrorKind, Expression, UndefinedBehavior};

/// What one evaluation may do. Whoever needs more has written a program.
const FUEL: u64 = 100_000;

/// It loads nothing, takes what is not there for an error, and ends.
pub(crate) fn evaluator() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment
}

/// Compiles an expression that is within the limits.
pub(crate) fn expression(
    environment: &'static Environment<'static>,
    text: &str,
) -> Result<Expression<'static, 'static>, Error> {
    limit::check_expression(text).and_then(|()| limit::check_constants(text)).map_err(refused)?;
    environment.compile_expression_owned(text.to_owned())
}

/// Refuses a template that is not within the limits.
pub(crate) fn bounded(template: &str) -> Result<&str, Error> {
    limit::check_template(template).map_err(refused)?;
    Ok(template)
}

fn refused(why: limit::TooMuch) -> Error {
    Error::new(ErrorKind::SyntaxError, why.to_string())
}

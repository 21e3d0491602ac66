//! Errors collected, so that one compilation reports all of them.

use syn::Error;

/// No error so far, or some.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Keeps the value, or the error.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// The errors, if there are any.
    pub(crate) fn into_option(self) -> Option<Error> {
        self.0
    }
}

//! The untyped errors of `genai`, typed.

use super::super::fault::Blame;
use genai::Error;
use genai::webc::{self, StreamTimeout};
use tenure_core::model::{ModelError, ModelErrorKind as Kind};
use tenure_http::reqwest;

/// What an error is, wherever it hides.
pub(super) fn typed(blame: Blame<'_>, error: Error) -> ModelError {
    match error {
        Error::HttpError { status, body, headers, .. } => {
            blame.status(status.as_u16(), &headers, body.as_bytes())
        }
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
            of_web(blame, webc_error)
        }
        // In a stream, every error of HTTP is inside of this one.
        Error::WebStream { error, cause, .. } => match error.downcast::<Error>() {
            Ok(inner) => typed(blame, *inner),
            Err(error) => of_stream(blame, error, &cause),
        },
        Error::ChatResponse { body, .. } => {
            if body.get("error").is_some() {
                blame.reported(&body)
            } else {
                blame.malformed("a piece of the answer holds nothing that is known")
            }
        }
        Error::StreamParse { serde_error, .. } => {
            blame.malformed(&format!("a piece of the answer cannot be read: {serde_error}"))
        }
        // Others show the request, or the answer, in full.
        _ => blame.error(Kind::Other, "the request could not be made"),
    }
}

fn of_web(blame: Blame<'_>, error: webc::Error) -> ModelError {
    match error {
        webc::Error::ResponseFailedStatus { status, body, headers } => {
            blame.status(status.as_u16(), &headers, body.as_bytes())
        }
        webc::Error::Reqwest(error) => blame.unsent(error),
        _ => blame.malformed("the server's answer is not JSON"),
    }
}

fn of_stream(
    blame: Blame<'_>,
    error: Box<dyn std::error::Error + Send + Sync>,
    cause: &str,
) -> ModelError {
    match error.downcast::<reqwest::Error>() {
        Ok(error) if error.is_connect() || error.is_request() || error.is_builder() => {
            blame.unsent(*error)
        }
        Ok(error) => blame.broken(*error),
        Err(error) => match error.downcast_ref::<StreamTimeout>() {
            Some(StreamTimeout::Headers) => {
                blame.error(Kind::Timeout, "the server did not answer in time")
            }
            Some(StreamTimeout::Read) => {
                blame.error(Kind::Timeout, "the answer stopped, and did not go on")
            }
            None => blame.malformed(&format!("the answer cannot be read: {cause}")),
        },
    }
}

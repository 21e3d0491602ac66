//! How a call fails: every kind of failure gets its kind of error, and no error shows a key.

use super::key::ApiKey;
use super::providers::ModelTarget;
use super::{retry_after, unreached};
use serde_json::Value;
use std::error::Error as _;
use std::time::Duration;
use tenure_core::model::{ModelError, ModelErrorKind as Kind};
use tenure_http::reqwest::{self, header::HeaderMap};

/// As much as an error repeats of what a server said.
const MOST_SAID: usize = 300;

/// Who is to blame, and which key must not be shown.
#[derive(Clone, Copy)]
pub(super) struct Blame<'a> {
    /// `provider.model`.
    pub(super) name: &'a str,
    pub(super) key: Option<&'a ApiKey>,
    /// Why there is no key, if there is none.
    pub(super) keyless: Option<&'a str>,
    pub(super) target: &'a ModelTarget,
}

impl Blame<'_> {
    /// An error of this kind that says what happened.
    pub(super) fn error(self, kind: Kind, what: &str) -> ModelError {
        ModelError::new(kind, format!("{}: {}", self.name, self.line(what)))
    }

    /// The same in which the server is quoted.
    fn quoting(
        self,
        kind: Kind,
        what: &str,
        said: &str,
        retry_after: Option<Duration>,
    ) -> ModelError {
        let said = self.line(said);
        let mut what = if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") };
        if let (Kind::Auth, None, Some(why)) = (kind, self.key, self.keyless) {
            what.push_str(&format!("; no key was sent: {why}"));
        }
        let Some(after) = retry_after else {
            return ModelError::new(kind, format!("{}: {what}", self.name));
        };
        let what = format!("{}: {what}; the provider asks to wait {after:?}", self.name);
        ModelError::new(kind, what).with_retry_after(after)
    }

    /// What an error is called before the server's own words.
    fn in_words(self, kind: Kind) -> &'static str {
        match kind {
            Kind::RateLimited => "too many requests",
            Kind::Overloaded => "the server is overloaded or failed",
            Kind::Auth if self.key.is_none() => "the server wants a key",
            Kind::Auth => "the key was not accepted",
            Kind::Timeout => "the server took too long",
            Kind::Transport => "the server could not be reached",
            _ => "the request was not accepted",
        }
    }

    pub(super) fn malformed(self, what: &str) -> ModelError {
        self.error(Kind::Malformed, what)
    }

    pub(super) fn truncated(self) -> ModelError {
        self.error(Kind::Truncated, "the answer was cut off before its end")
    }

    pub(super) fn timeout(self, what: &str, limit: Duration) -> ModelError {
        self.error(Kind::Timeout, &format!("{what} within {limit:?}"))
    }

    /// An HTTP answer that is none of success.
    pub(super) fn status(self, status: u16, headers: &HeaderMap, body: &[u8]) -> ModelError {
        let parsed: Option<Value> = serde_json::from_slice(body).ok();
        let problem = parsed.as_ref().map(Problem::read).unwrap_or_default();
        if (300..400).contains(&status) {
            let to = headers.get("location").and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            let what = format!("the server sends on to {to}, which is not followed ({status})");
            return self.error(Kind::BadRequest, &what).with_status(status);
        }
        let kind = problem.kind().filter(|_| !matches!(status, 401 | 403 | 404 | 413)).unwrap_or(
            match status {
                401 | 403 => Kind::Auth,
                408 | 504 => Kind::Timeout,
                429 => Kind::RateLimited,
                502 => Kind::Transport,
                500.. => Kind::Overloaded,
                _ => Kind::BadRequest,
            },
        );
        let what = format!("{} ({status})", self.in_words(kind));
        let text = String::from_utf8_lossy(body);
        let said = if parsed.is_some() { problem.said.as_str() } else { visible(&text) };
        let after = match kind {
            Kind::RateLimited | Kind::Overloaded => retry_after::find(headers, parsed.as_ref()),
            _ => retry_after::said(headers, parsed.as_ref()),
        };
        self.quoting(kind, &what, said, after).with_status(status)
    }

    /// An error that a server reports in the middle of its answer.
    pub(super) fn reported(self, body: &Value) -> ModelError {
        let problem = Problem::read(body);
        let kind = problem.kind().unwrap_or(Kind::Overloaded);
        let what = format!("{} (said in its answer)", self.in_words(kind));
        let after = retry_after::said(&HeaderMap::new(), Some(body));
        let error = self.quoting(kind, &what, &problem.said, after);
        match problem.status {
            Some(status) => error.with_status(status),
            None => error,
        }
    }

    /// A request that got no answer.
    pub(super) fn unsent(self, error: reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return self.error(Kind::Timeout, &unreached::too_late(self.target));
        }
        if error.is_builder() {
            return self.error(Kind::BadRequest, &chain(error));
        }
        let what = unreached::in_words(self.target, error);
        if what.contains("UnknownIssuer") && !tenure_http::has_certificates() {
            let what = "this machine has no certificates to trust, so that no https address can \
                        be reached; install them (ca-certificates)";
            return self.error(Kind::Transport, what);
        }
        self.error(Kind::Transport, &what)
    }

    /// An answer that broke off.
    pub(super) fn broken(self, error: reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return self.error(Kind::Timeout, "the answer stopped coming");
        }
        let what = chain(error);
        let cut = ["eof", "end of file", "incomplete"];
        if cut.iter().any(|cut| what.to_ascii_lowercase().contains(cut)) {
            return self.truncated();
        }
        self.error(Kind::Transport, &format!("the connection broke in mid-answer: {what}"))
    }

    /// One line of bounded length, without the key.
    fn line(self, text: &str) -> String {
        let text = match self.key {
            Some(key) => key.scrub(text),
            None => text.to_owned(),
        };
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.extend(word.chars().filter(|c| !c.is_control()));
            if line.len() > MOST_SAID {
                let end = (0..=MOST_SAID).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
                line.truncate(end);
                line.push('…');
                break;
            }
        }
        line
    }
}

/// What is worth quoting of a text that is not JSON: a page's markup is not.
fn visible(text: &str) -> &str {
    if text.trim_start().starts_with('<') { "the server answered with a web page" } else { text }
}

/// An error and its causes in one line, without the address, which names the model and no more.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}

/// What a server says about an error, in any of the forms that servers use.
#[derive(Default)]
struct Problem {
    said: String,
    /// Its type, its code, and what else names it.
    names: Vec<String>,
    status: Option<u16>,
}

impl Problem {
    fn read(body: &Value) -> Self {
        // Some wrap the error into a list of one.
        let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
        let inner = body.get("error").filter(|inner| !inner.is_null()).unwrap_or(body);
        let said = ["message", "detail", "error", "title"]
            .iter()
            .find_map(|key| inner.get(key).and_then(Value::as_str))
            .or_else(|| inner.as_str())
            .map(str::to_owned)
            .unwrap_or_else(|| if inner.is_null() { String::new() } else { inner.to_string() });
        let mut names = Vec::new();
        let mut status = None;
        for key in ["type", "code", "status"] {
            match inner.get(key) {
                Some(Value::String(name)) => names.push(name.to_ascii_lowercase()),
                Some(Value::Number(number)) => {
                    let number = number.as_u64().and_then(|number| u16::try_from(number).ok());
                    status = status.or(number.filter(|number| (400..600).contains(number)));
                }
                _ => {}
            }
        }
        // Google calls a wrong key a wrong argument, and says which one further down.
        let details = inner.get("details").and_then(Value::as_array).into_iter().flatten();
        let reasons = details.filter_map(|detail| detail.get("reason")?.as_str());
        names.extend(reasons.map(str::to_ascii_lowercase));
        Self { said, names, status }
    }

    fn kind(&self) -> Option<Kind> {
        let named = |words: &[&str]| {
            self.names.iter().any(|name| words.iter().any(|word| name.contains(word)))
        };
        Some(if named(&["insufficient_quota", "billing"]) {
            // More requests will not help; the account has to.
            Kind::Auth
        } else if named(&["rate_limit", "ratelimit", "resource_exhausted", "too_many"]) {
            Kind::RateLimited
        } else if named(&["overloaded", "unavailable"]) {
            Kind::Overloaded
        } else if named(&[
            "authentication",
            "permission",
            "unauthenticated",
            "invalid_api_key",
            "api_key_invalid",
        ]) {
            Kind::Auth
        } else if named(&["timeout", "deadline"]) {
            Kind::Timeout
        } else if named(&["server_error", "api_error", "internal"]) {
            Kind::Overloaded
        } else if named(&["invalid_request", "invalid_argument", "not_found", "too_large"]) {
            Kind::BadRequest
        } else {
            match self.status? {
                429 => Kind::RateLimited,
                401 | 403 => Kind::Auth,
                408 | 504 => Kind::Timeout,
                502 => Kind::Transport,
                500.. => Kind::Overloaded,
                _ => Kind::BadRequest,
            }
        })
    }
}

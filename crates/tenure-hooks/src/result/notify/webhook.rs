//! Tells somebody by HTTP.

use super::signature::sign;
use crate::ready::Refusal;
use crate::words::Moment;
use std::time::Duration;
use tenure_http::reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use tenure_http::reqwest::{Client, StatusCode, Url};
use tenure_http::{client, is_loopback, loopback_client};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};

/// The pause before the first retry; it doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// No pause is longer, unless the receiver asks for it.
const LONGEST: Duration = Duration::from_secs(3);

/// Where notifications go, and how they are signed.
#[derive(Debug)]
pub(super) struct Webhook {
    url: Url,
    /// The variable that holds the secret.
    secret: Option<String>,
    attempts: u32,
    client: OnceCell<Client>,
}

/// How an attempt failed.
enum Failed {
    /// Another one may do better; not before this has passed, if the receiver says so.
    Again(String, Option<Duration>),
    /// None would.
    Never(String),
}

impl Webhook {
    pub(super) fn new(
        address: &str,
        secret: Option<String>,
        attempts: u32,
        any_http: bool,
    ) -> Result<Self, Refusal> {
        let refused = |why: String| Refusal::new("url", why);
        let url = Url::parse(address.trim())
            .map_err(|error| refused(format!("this is no address: {error}")))?;
        let Some(host) = url.host_str() else {
            return Err(refused("the address names no host".to_owned()));
        };
        match url.scheme() {
            "https" => {}
            "http" if any_http || is_loopback(host) => {}
            "http" => {
                let why = "everybody on the way reads what goes over http; use https, or say \
                           `allow_http: true`";
                return Err(refused(why.to_owned()));
            }
            other => {
                return Err(refused(format!("it begins with {other}, not with https")));
            }
        }
        if !url.username().is_empty() || url.password().is_some() {
            let why = "it holds a name or a password, and a file is no place for these; take them \
                       away";
            return Err(refused(why.to_owned()));
        }
        Ok(Self { url, secret, attempts, client: OnceCell::new() })
    }

    /// Sends it, more than once if need be, until the time is up.
    pub(super) async fn send(
        &self,
        delivery: &str,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<(), String> {
        let ends = Instant::now() + limit;
        let secret = self.read_secret()?;
        let client = self.client().await?;
        let host = self.url.host_str().unwrap_or_default();
        // One that hangs leaves time for another attempt.
        let each = if self.attempts > 1 { limit / 2 } else { limit };
        let mut pause = PAUSE;
        let mut made = 0;
        loop {
            made += 1;
            let left = ends.saturating_duration_since(Instant::now()).min(each);
            let attempt = self.attempt(client, delivery, &body, secret.as_deref());
            let failed = match timeout(left, attempt).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(failed)) => failed,
                Err(_) => Failed::Again(format!("no answer within {left:?}"), None),
            };
            let (why, wait) = match failed {
                Failed::Never(why) => return Err(format!("{host} was not told: {why}")),
                Failed::Again(why, wait) => (why, wait.unwrap_or(pause)),
            };
            if made >= self.attempts || Instant::now() + wait >= ends {
                return Err(format!("{host} was not told in {made} attempts: {why}"));
            }
            sleep(wait).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    fn read_secret(&self) -> Result<Option<String>, String> {
        let Some(variable) = &self.secret else { return Ok(None) };
        match std::env::var(variable) {
            Ok(secret) if !secret.is_empty() => Ok(Some(secret)),
            _ => Err(format!(
                "the variable {variable}, which holds the secret to sign with, is not set"
            )),
        }
    }

    async fn client(&self) -> Result<&Client, String> {
        let is_near = self.url.host_str().is_some_and(is_loopback);
        let make = async || {
            let client = match is_near {
                true => loopback_client(),
                // This reads certificates from disk.
                false => tenure_core::blocking(client).await,
            };
            client.map_err(|error| format!("there is no HTTP client: {error}"))
        };
        self.client.get_or_try_init(make).await
    }

    async fn attempt(
        &self,
        client: &Client,
        delivery: &str,
        body: &[u8],
        secret: Option<&str>,
    ) -> Result<(), Failed> {
        let timestamp = Moment::now().seconds().to_string();
        let mut request = client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("x-tenure-delivery", delivery)
            .header("x-tenure-timestamp", &timestamp);
        if let Some(secret) = secret {
            request = request.header("x-tenure-signature", sign(secret, &timestamp, body));
        }
        let answer = request.body(body.to_vec()).send().await.map_err(|error| {
            let is_hopeless = error.is_builder();
            // The address may hold something that is nobody's business.
            let why = chain(&error.without_url());
            if is_hopeless { Failed::Never(why) } else { Failed::Again(why, None) }
        })?;
        let status = answer.status();
        let why = || format!("the answer was {status}");
        match status {
            _ if status.is_success() => Ok(()),
            _ if status.is_redirection() => {
                Err(Failed::Never(format!("{}, and redirects are not followed", why())))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => {
                Err(Failed::Again(why(), retry_after(answer.headers())))
            }
            _ if status.is_server_error() => {
                Err(Failed::Again(why(), retry_after(answer.headers())))
            }
            _ => Err(Failed::Never(why())),
        }
    }
}

/// An error with what is behind it, which says more.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// In how many seconds the receiver wants to be told again. A date is taken for nothing: the usual
/// pause is as good.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(3600.0)))
}

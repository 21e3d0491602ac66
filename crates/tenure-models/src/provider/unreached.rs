//! A request that got no answer, in words that say where it went and what to do.

use super::config::Authority;
use super::known;
use super::providers::ModelTarget;
use std::error::Error;
use std::io::ErrorKind;
use tenure_http::is_loopback;
use tenure_http::reqwest::{self, Url};

/// What is said of a server that could not be reached.
pub(super) fn in_words(target: &ModelTarget, error: reqwest::Error) -> String {
    let error = error.without_url();
    let (host, port) = place(target);
    let remedy = remedy(target);
    let by_proxy = if may_go_by_proxy(target, &host) { " (or its proxy)" } else { "" };
    if causes(&error).any(|cause| cause.to_string().contains("dns error")) {
        return format!("the host {host}{by_proxy} was not found; {remedy}");
    }
    let io = causes(&error).find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match io.map(std::io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => {
            format!("nothing answers at {host}:{port}{by_proxy}: connection refused; {remedy}")
        }
        // The last cause says what happened; those before it only which part of a client met it.
        _ => {
            let last = causes(&error).last().map_or_else(|| error.to_string(), ToString::to_string);
            format!("{host}:{port}{by_proxy} could not be reached: {last}; {remedy}")
        }
    }
}

/// The same if the time was up before there was a connection.
pub(super) fn too_late(target: &ModelTarget) -> String {
    let (host, port) = place(target);
    format!("{host}:{port} could not be reached in time; {}", remedy(target))
}

fn place(target: &ModelTarget) -> (String, u16) {
    let url = Url::parse(&target.base_url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or(&target.host).to_owned();
    (host, url.and_then(|url| url.port_or_known_default()).unwrap_or(443))
}

/// Servers on this machine are called past every proxy, unless by https.
fn may_go_by_proxy(target: &ModelTarget, host: &str) -> bool {
    let names = match target.base_url.starts_with("https:") {
        true => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false if is_loopback(host) => return false,
        false => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    names.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn remedy(target: &ModelTarget) -> String {
    let known = known::find(&target.provider);
    let is_own = known.is_some_and(|known| known.base_url.trim_end_matches('/') == target.base_url);
    match (known.map(|known| known.name), target.url_by) {
        (_, Authority::Project) => {
            let name = &target.provider;
            format!("is it running? The project's [providers.{name}] base_url says where it is")
        }
        (Some("ollama"), _) => "is Ollama running (`ollama serve`)? OLLAMA_HOST says where it is \
                                if it is elsewhere"
            .to_owned(),
        (Some(_), _) if is_own && !is_loopback(&place(target).0) => {
            "is there a network?".to_owned()
        }
        (Some(name), _) => {
            let variable = known.and_then(|known| known.url_env.first()).unwrap_or(&"base_url");
            format!("is it running? {variable}, or [providers.{name}] base_url, says where it is")
        }
        (None, _) => {
            format!("is it running? [providers.{}] base_url says where it is", target.provider)
        }
    }
}

/// What an error was caused by, the nearest cause first.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

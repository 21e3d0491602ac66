//! A server that speaks HTTP.

use super::wire::MOST_MESSAGE;
use rmcp::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use std::collections::HashMap;
use std::error::Error;
use tenure_http::reqwest::Url;
use tenure_http::reqwest::header::{HeaderName, HeaderValue};

/// The way to a server at this address. Redirects are not followed, so what the headers say stays
/// with the host that they were meant for.
pub(super) fn transport(
    url: &str,
    headers: &[(String, String)],
) -> Result<impl Transport<RoleClient> + 'static, String> {
    let parsed = Url::parse(url).map_err(|error| format!("this is no address: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("the address has to begin with http:// or https://".to_owned());
    }
    let client =
        if is_here(&parsed) { tenure_http::loopback_client() } else { tenure_http::client() };
    let client = client.map_err(|error| format!("there is no HTTP client: {error}"))?;
    let mut all = HashMap::new();
    for (name, value) in headers {
        let wrong = || format!("the header `{name}` cannot be sent");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        all.insert(name, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(all)
        .max_sse_event_size(MOST_MESSAGE);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Why something could not be sent, with everything that led to it, each said once.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    // The client of the protocol does not say what led to its own error.
    let mut cause = match error.downcast_ref::<StreamableHttpError<tenure_http::reqwest::Error>>() {
        Some(StreamableHttpError::Client(inner)) => inner,
        _ => error,
    };
    let mut text = cause.to_string();
    while let Some(source) = cause.source() {
        let said = source.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = source;
    }
    text
}

/// Whether a server is on this machine and needs no certificate.
fn is_here(url: &Url) -> bool {
    url.scheme() == "http" && url.host_str().is_some_and(tenure_http::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_this_machine_that_has_a_certificate_has_to_show_it() {
        for (url, expected) in [
            ("http://localhost:1/mcp", true),
            ("http://127.0.0.2/mcp", true),
            ("http://[::1]:1/mcp", true),
            ("https://localhost:1/mcp", false),
            ("https://127.0.0.1/mcp", false),
            ("http://localhost.example/mcp", false),
        ] {
            assert_eq!(is_here(&Url::parse(url).expect("an address")), expected, "{url}");
        }
    }
}

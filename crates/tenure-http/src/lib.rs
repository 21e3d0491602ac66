//! The one HTTP client of Tenure, and its one TLS provider.
//!
//! A build without the feature `client` reaches nothing, and has only what can be said of an address.
//!
//! A part of Tenure, not for use by itself: its API shows types of another crate, and changes with
//! them.

#[cfg(feature = "client")]
mod client;

#[cfg(feature = "client")]
pub use client::{CONNECT_LIMIT, client, has_certificates, init_tls, loopback_client};
#[cfg(feature = "client")]
pub use reqwest;
pub use url::Url;

/// Whether `host` is this machine: `localhost`, or an address that no network routes.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_this_machine_from_others() {
        for host in ["localhost", "LocalHost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.1", "0.0.0.0", "example.com", "::2", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}

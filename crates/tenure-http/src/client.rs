//! Clients, all of them made alike.

use reqwest::redirect::Policy;
use std::sync::OnceLock;
use std::time::Duration;

/// The longest that a connection may take to open.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Chooses how TLS is done, once for the process. Every client constructor calls this first.
pub fn init_tls() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        // If somebody else has chosen already, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A client for hosts anywhere. It trusts the certificates of the system, uses the proxies that the
/// environment names, and follows no redirect, so that a header with a key stays with the host that
/// it was meant for.
///
/// A machine without any certificates gets a client too: it reaches every `http` address, and an
/// `https` one fails when it is called, with an error that says that the issuer is unknown. See
/// [`has_certificates`].
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    match builder().build() {
        Ok(client) => Ok(client),
        Err(_) => builder().tls_certs_only([]).build(),
    }
}

/// A client for servers on this machine: past every proxy, whatever the environment says. It trusts
/// no certificate, and is cheap to make.
pub fn loopback_client() -> Result<reqwest::Client, reqwest::Error> {
    builder().no_proxy().tls_certs_only([]).build()
}

/// Whether this machine has any certificate to trust. Without one, no `https` address can be
/// reached. Reads the certificates from disk.
pub fn has_certificates() -> bool {
    builder().build().is_ok()
}

fn builder() -> reqwest::ClientBuilder {
    init_tls();
    reqwest::Client::builder()
        .user_agent(concat!("tenure/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .redirect(Policy::none())
        .pool_idle_timeout(Duration::from_secs(60))
        .pool_max_idle_per_host(32)
        .tcp_nodelay(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_needs_no_certificates_to_be_made() {
        assert!(builder().tls_certs_only([]).build().is_ok());
        assert!(loopback_client().is_ok());
        assert!(client().is_ok());
    }
}

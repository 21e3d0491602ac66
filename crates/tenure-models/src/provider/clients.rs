//! The HTTP clients that models share.

use super::error::{ProviderError, ProviderErrorKind as Kind};
use super::host::Address;
use std::sync::OnceLock;
use tenure_http::reqwest::Client;

/// The clients of one [`Providers`](super::Providers), each made by the first model that needs it: a
/// client reads the system's certificates.
#[derive(Default)]
pub(super) struct Clients {
    anywhere: OnceLock<Result<Client, String>>,
    loopback: OnceLock<Result<Client, String>>,
}

impl Clients {
    /// Refuses every model in a build that has no clients, which this is not.
    pub(super) fn check(_spec: &str) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Returns the client for the server at `address`.
    pub(super) fn for_address(&self, address: &Address) -> Result<Client, ProviderError> {
        let made = if address.is_loopback() && !address.is_https {
            self.loopback
                .get_or_init(|| tenure_http::loopback_client().map_err(|error| error.to_string()))
        } else {
            self.anywhere.get_or_init(|| tenure_http::client().map_err(|error| error.to_string()))
        };
        made.clone().map_err(|error| {
            ProviderError::new(
                Kind::Unsupported,
                format!("no HTTP client could be made: {error}"),
                "check the certificates of this machine",
            )
        })
    }
}

//! The one HTTP client of Tenure, and its one TLS provider.
//!
//! A part of Tenure, not for use by itself: its API shows a type of another crate, and changes with
//! it.

use std::sync::OnceLock;

/// Chooses how TLS is done, once for the process. Every client constructor calls this first.
pub fn init_tls() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        // If somebody else has chosen already, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

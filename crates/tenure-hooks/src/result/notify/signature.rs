//! The signature of a notification.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a signature begins with.
const SCHEME: &str = "sha256=";

fn mac(secret: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    // A key of any length is one.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of every length");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac
}

pub(super) fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let bytes = mac(secret, timestamp, body).finalize().into_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SCHEME}{hex}")
}

/// Whether a notification is from somebody who knows the secret: `timestamp` and `signature` are its
/// headers `X-Tenure-Timestamp` and `X-Tenure-Signature`, and `body` is its body as it came.
///
/// It takes the same time wherever the signature is wrong. A receiver also looks whether the
/// timestamp is of now, and whether it has seen the delivery before (`X-Tenure-Delivery`).
///
/// ```
/// use tenure_hooks::result::verify_signature;
///
/// let signature = "sha256=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
/// assert!(verify_signature("secret", "1700000000", b"{}", signature));
/// assert!(!verify_signature("secret", "1700000001", b"{}", signature));
/// ```
#[must_use]
pub fn verify_signature(secret: &str, timestamp: &str, body: &[u8], signature: &str) -> bool {
    let Some(bytes) = signature.strip_prefix(SCHEME).and_then(unhex) else { return false };
    mac(secret, timestamp, body).verify_slice(&bytes).is_ok()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = text.as_bytes().chunks_exact(2);
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_what_was_signed_and_nothing_else() {
        let signature = sign("key", "17", b"body");
        assert!(verify_signature("key", "17", b"body", &signature));
        assert!(!verify_signature("kez", "17", b"body", &signature));
        assert!(!verify_signature("key", "18", b"body", &signature));
        assert!(!verify_signature("key", "17", b"bodz", &signature));
        assert!(!verify_signature("key", "17", b"body", &signature[..signature.len() - 2]));
        for wrong in ["", "sha256=", "sha256=zz", "md5=00", "sha256=0", "sha256=éé"] {
            assert!(!verify_signature("key", "17", b"body", wrong), "{wrong}");
        }
    }

    #[test]
    fn it_is_what_others_compute() {
        // `printf '17.body' | openssl dgst -sha256 -hmac key`
        let expected = "sha256=f396e100b9d459f9cc69ac84217fdd31385e6bb294e18214a84a45c1e264af52";
        assert_eq!(sign("key", "17", b"body"), expected);
    }
}

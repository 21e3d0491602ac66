//! Addresses of servers, and which of them may get a key.

use super::config::{Authority, ProviderEntry};
use super::error::{ProviderError, ProviderErrorKind as Kind, USER_CONFIG};
use super::known::Known;
use tenure_http::{Url, is_loopback};

/// Where a provider's server is, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Without a slash at its end.
    pub(super) base_url: String,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) by: Authority,
    pub(super) is_https: bool,
}

impl Address {
    /// Reads an address that `by` named for `provider`.
    pub(super) fn parse(provider: &str, text: &str, by: Authority) -> Result<Self, ProviderError> {
        Self::read(text, by).map_err(|what| {
            ProviderError::new(
                Kind::BadUrl,
                format!("the address of `{provider}` {what}"),
                "write an address like https://api.example.com/v1 as its `base_url`",
            )
        })
    }

    /// Reads the address that a variable of the user's holds.
    pub(super) fn from_variable(variable: &str, text: &str) -> Result<Self, ProviderError> {
        Self::read(text, Authority::User).map_err(|what| {
            ProviderError::new(
                Kind::BadVariable,
                format!("the address in the variable {variable} {what}"),
                format!(
                    "set {variable} to an address like https://api.example.com/v1, or unset it"
                ),
            )
        })
    }

    /// What is wrong is said without the text, which may hold a secret.
    fn read(text: &str, by: Authority) -> Result<Self, String> {
        let wrong = |what: &str| what.to_owned();
        let url = Url::parse(text.trim()).map_err(|error| match text.contains("://") {
            true => format!("is none: {error}"),
            false => wrong("begins with neither https:// nor http://"),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(&format!("begins with {}, not http or https", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds a name or a password, which is no place for a secret"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has something behind a `?` or `#`"));
        }
        let host = url.host_str().ok_or_else(|| wrong("names no host"))?.to_ascii_lowercase();
        Ok(Self {
            base_url: url.as_str().trim_end_matches('/').to_owned(),
            host,
            port: url.port(),
            by,
            is_https: url.scheme() == "https",
        })
    }

    /// The host, and the port if it is not the usual one.
    pub(super) fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Whether the server runs on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// Whether the user's key may be sent there: to the provider's own host, or to one that the
    /// user chose or allows.
    pub(super) fn may_have_users_key(
        &self,
        provider: &str,
        known: Option<&Known>,
        entry: Option<&ProviderEntry>,
    ) -> Result<(), ProviderError> {
        if self.by == Authority::User {
            return Ok(());
        }
        let own = known.and_then(|known| Self::parse(provider, known.base_url, self.by).ok());
        if own.is_some_and(|own| {
            (own.host.as_str(), own.port, own.is_https)
                == (self.host.as_str(), self.port, self.is_https)
        }) {
            return Ok(());
        }
        let allowed = entry
            .is_some_and(|entry| entry.allow_hosts.iter().any(|pattern| self.matches(pattern)));
        let host = self.authority();
        let is_safe = self.is_safe_for_a_key(provider);
        if !allowed && is_safe.is_err() {
            return Err(ProviderError::new(
                Kind::HostNotAllowed,
                format!(
                    "the project wants the key of `{provider}` sent to {host}, which you have not \
                     allowed, and by http, where others can read it"
                ),
                format!(
                    "`allow_hosts` is not enough for http: either the project uses https and you \
                     put into {USER_CONFIG}: [providers.{provider}] allow_hosts = [\"{host}\"]; or, \
                     if you trust the host and the way to it, you write the address there yourself, \
                     which is all that is needed then: [providers.{provider}] base_url = \"{}\"",
                    self.base_url
                ),
            ));
        }
        if !allowed {
            return Err(ProviderError::new(
                Kind::HostNotAllowed,
                format!(
                    "the project wants the key of `{provider}` sent to {host}, which you have not \
                     allowed"
                ),
                format!(
                    "if you trust that host with the key, put into {USER_CONFIG}: \
                     [providers.{provider}] allow_hosts = [\"{host}\"]"
                ),
            ));
        }
        is_safe
    }

    /// Whether a key can be read on its way there. A user may choose that; a project may not.
    pub(super) fn is_safe_for_a_key(&self, provider: &str) -> Result<(), ProviderError> {
        if self.is_https || self.is_loopback() || self.by == Authority::User {
            return Ok(());
        }
        let host = self.authority();
        Err(ProviderError::new(
            Kind::HostNotAllowed,
            format!(
                "the project wants the key of `{provider}` sent to {host} by http, where others \
                 can read it"
            ),
            format!(
                "use https, or choose the address yourself in {USER_CONFIG}: \
                 [providers.{provider}] base_url = \"{}\"",
                self.base_url
            ),
        ))
    }

    fn matches(&self, pattern: &str) -> bool {
        let pattern = pattern.trim().to_ascii_lowercase();
        if let Some(domain) = pattern.strip_prefix("*.") {
            return self.host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        }
        pattern == self.host || pattern == self.authority()
    }
}

/// The address that `OLLAMA_HOST` means: it may lack the scheme and the port, and names the address
/// that the server listens on.
pub(super) fn from_ollama_host(text: &str) -> String {
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let Ok(mut url) = Url::parse(&with_scheme) else { return with_scheme };
    let everywhere = matches!(url.host_str(), Some("0.0.0.0" | "[::]"));
    if everywhere && url.set_host(Some("127.0.0.1")).is_err() {
        return with_scheme;
    }
    if url.port().is_none() && !text.contains("://") && url.set_port(Some(11434)).is_err() {
        return with_scheme;
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollamas_own_variable_is_read_as_ollama_reads_it() {
        for (text, url) in [
            ("0.0.0.0", "http://127.0.0.1:11434/"),
            ("0.0.0.0:9999", "http://127.0.0.1:9999/"),
            ("box.example", "http://box.example:11434/"),
            ("http://box.example", "http://box.example/"),
            ("https://box.example:1/x", "https://box.example:1/x"),
        ] {
            assert_eq!(from_ollama_host(text), url, "{text}");
        }
    }

    #[test]
    fn an_address_with_a_secret_in_it_is_refused_without_showing_it() {
        let error = Address::parse("openai", "https://user:hunter2@example.com", Authority::User)
            .expect_err("refused");
        assert_eq!(error.kind(), Kind::BadUrl);
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn patterns_of_hosts_match_whole_names() {
        let at = |text: &str| Address::parse("x", text, Authority::Project).expect("an address");
        let inner = at("https://a.example.com:8443/v1");
        for pattern in ["a.example.com", "a.example.com:8443", "*.example.com", "A.Example.com"] {
            assert!(inner.matches(pattern), "{pattern}");
        }
        for pattern in ["example.com", "*.a.example.com", "a.example.com:1", "*", "*.com.evil", ""]
        {
            assert!(!inner.matches(pattern), "{pattern}");
        }
        assert!(!at("https://evilexample.com").matches("*.example.com"));
    }
}

//! What files say of metrics.

use super::{KIND, MOST_NAMES, Metrics};
use crate::ready::{About, Makings, Options, ProjectPath, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::SocketAddr;
use tenure_core::hook::{IntoRegistration, Registration};

/// What `metrics` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::see) struct MetricsOptions {
    /// The address that answers `GET /metrics`, as in `127.0.0.1:9464`. Agents that name the same
    /// one count together.
    listen: Option<String>,
    /// Whether the address may be one that other machines reach. There is no password.
    allow_remote: bool,
    /// A file that gets the metrics at the end of each turn, for a collector of text files.
    file: Option<ProjectPath>,
    /// The most values that a label has. What comes after them counts as `other`.
    names: usize,
}

impl Default for MetricsOptions {
    fn default() -> Self {
        Self { listen: None, allow_remote: false, file: None, names: MOST_NAMES }
    }
}

impl Options for MetricsOptions {
    const ABOUT: About = About {
        name: KIND,
        summary: "Counts turns, calls, lifecycle tools, tokens, cost and failures for Prometheus.",
        covers: &["UC-3.4", "UC-6.3"],
        peers: &[],
        example: r#"{ "listen": "127.0.0.1:0" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        if self.listen.is_none() && self.file.is_none() {
            return Err(Refusal::new("", "nobody would see them: give `listen`, `file`, or both"));
        }
        if self.names == 0 {
            return Err(Refusal::new("names", "0 would make every name `other`; give 1 or more"));
        }
        let listen = match &self.listen {
            None => None,
            Some(text) => Some(self.address(text)?),
        };
        let file = match &self.file {
            None => None,
            Some(path) => Some(makings.path(&path.0).map_err(|why| Refusal::new("file", why))?),
        };
        // Agents of a team that say the same count together: there is one port, and one file.
        let key = format!("{listen:?} {file:?} {}", self.names);
        let make = || Metrics::made(listen, file.clone(), self.names);
        let metrics = makings.shared().part::<Metrics>(KIND, &key, make);
        Ok(Metrics::clone(&metrics).into_registration())
    }
}

impl MetricsOptions {
    fn address(&self, text: &str) -> Result<SocketAddr, Refusal> {
        let address: SocketAddr = text.parse().map_err(|_| {
            let why = format!("`{text}` is no address with a port; write 127.0.0.1:9464");
            Refusal::new("listen", why)
        })?;
        if !address.ip().is_loopback() && !self.allow_remote {
            let why = format!(
                "other machines can reach {text}, and anybody could read the metrics; write \
                 127.0.0.1, or say `allow_remote: true`"
            );
            return Err(Refusal::new("listen", why));
        }
        Ok(address)
    }
}

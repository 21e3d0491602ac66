//! How a tool server is reached, and what an agent wants of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tenure_process::{Environment, StartCheck};

/// A tool server: how it is reached, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServer {
    /// Its name. Its tools are called `<name>__<tool>`.
    pub name: Arc<str>,
    /// How it is reached.
    pub transport: McpTransport,
    /// Which protocol it speaks.
    pub protocol: McpProtocol,
    /// How long it may take to start, until its tools are known; 20 seconds.
    pub start_limit: Duration,
    /// How long it may take to end by itself; 3 seconds. After that it is killed.
    pub stop_limit: Duration,
    /// How long a call may take, without the time that a person takes to answer; 5 minutes. `None`
    /// leaves it to the limit of the turn.
    pub call_limit: Option<Duration>,
    /// The environment of its process, if it has one of its own.
    pub environment: Option<Environment>,
    /// What is asked before each start of its process.
    pub(super) check: Option<StartCheck>,
}

impl McpServer {
    /// A server with the usual limits.
    pub fn new(name: impl Into<Arc<str>>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            protocol: McpProtocol::Auto,
            start_limit: Duration::from_secs(20),
            stop_limit: Duration::from_secs(3),
            call_limit: Some(Duration::from_secs(300)),
            environment: None,
            check: None,
        }
    }

    /// Asks `check` before each start of its process, also before those that follow when it has
    /// died. Its error is what the status shows. A server at an address is not started, and so not
    /// checked.
    #[must_use]
    pub fn checked_by(mut self, check: StartCheck) -> Self {
        self.check = Some(check);
        self
    }
}

/// How a tool server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A process of ours that speaks on its standard streams.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// What its environment has beside the allow-list.
        env: BTreeMap<String, String>,
        /// The folder that it is started in.
        dir: PathBuf,
    },
    /// A server that runs by itself and speaks HTTP.
    Http {
        /// Its address.
        url: String,
        /// What every request carries, for instance `("Authorization", "Bearer ...")`.
        headers: Vec<(String, String)>,
    },
}

impl McpTransport {
    /// A process that is started in this folder.
    pub fn stdio(
        command: impl IntoIterator<Item = impl Into<String>>,
        dir: impl Into<PathBuf>,
    ) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self::Stdio { command, env: BTreeMap::new(), dir: dir.into() }
    }

    /// A server at this address.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), headers: Vec::new() }
    }
}

/// Values of variables and of headers may be secrets, and so may be a part of an address.
impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, env, dir } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("env", &env.keys().map(|name| format!("{name}=***")).collect::<Vec<_>>())
                .field("dir", dir)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", &shown_url(url))
                .field("headers", &headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
                .finish(),
        }
    }
}

impl McpTransport {
    /// A message about this, without what may be a secret.
    pub(super) fn redacted(&self, mut message: String) -> String {
        let Self::Http { url, headers } = self else { return message };
        let (address, asked) = url.split_once('?').unwrap_or((url, ""));
        let who = address.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
        let mut secrets = vec![asked, who.map_or("", |(who, _)| who)];
        for (_, value) in headers {
            // Of `Bearer abc` the last word alone is one too.
            secrets.push(value);
            secrets.extend(value.split_whitespace().last());
        }
        for secret in secrets.into_iter().filter(|secret| secret.len() > 3) {
            message = message.replace(secret, "***");
        }
        message
    }
}

/// An address without what may be a secret: who logs in, and what is asked.
pub(super) fn shown_url(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').map_or((rest, None), |(h, p)| (h, Some(p)));
            let host = host.rsplit('@').next().unwrap_or_default();
            match path {
                Some(path) => format!("{scheme}://{host}/{path}"),
                None => format!("{scheme}://{host}"),
            }
        }
        None => url.to_owned(),
    }
}

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpProtocol {
    /// The one of 2026 if the server knows it, else an older one. That is found out at the first
    /// connection.
    #[default]
    Auto,
    /// The one of 2026, without a handshake.
    Modern,
    /// The one of 2025 and before, which begins with `initialize`.
    Legacy,
}

/// What an agent wants of a server. `None` means everything.
///
/// Patterns are those of shells: `*`, `?` and `[a-z]`. They are held against the names that the
/// server itself uses, and of resources against the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpSelection {
    /// The server's name.
    pub server: Arc<str>,
    /// The tools.
    pub tools: Option<Vec<String>>,
    /// The resources. If some are named, the agent gets a tool `<server>__read_resource` for them.
    pub resources: Option<Vec<String>>,
    /// The prompts.
    pub prompts: Option<Vec<String>>,
}

impl McpSelection {
    /// Everything that the server has.
    pub fn all(server: impl Into<Arc<str>>) -> Self {
        Self { server: server.into(), tools: None, resources: None, prompts: None }
    }

    /// Only tools that one of these patterns fits.
    #[must_use]
    pub fn tools(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Only resources that one of these patterns fits, and a tool to read them.
    #[must_use]
    pub fn resources(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.resources = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Only prompts that one of these patterns fits.
    #[must_use]
    pub fn prompts(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.prompts = Some(patterns.into_iter().map(Into::into).collect());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let stdio = McpTransport::Stdio {
            command: vec!["serve".into()],
            env: [("TOKEN".to_owned(), "hush".to_owned())].into(),
            dir: ".".into(),
        };
        let http = McpTransport::Http {
            url: "https://me:hush@host.example/mcp?key=hush".into(),
            headers: vec![("Authorization".into(), "Bearer hush".into())],
        };
        for server in [McpServer::new("s", stdio), McpServer::new("s", http)] {
            let shown = format!("{server:?}");
            assert!(!shown.contains("hush"), "{shown}");
        }
        let http = McpTransport::Http {
            url: "https://me:p4ss@host.example/mcp?key=k3y".into(),
            headers: vec![("Authorization".into(), "Bearer t0ken".into())],
        };
        let said = "no answer of https://me:p4ss@host.example/mcp?key=k3y to t0ken".to_owned();
        let shown = "no answer of https://***@host.example/mcp?*** to ***";
        assert_eq!(http.redacted(said), shown);
        assert_eq!(shown_url("https://me:p@host.example/mcp?k=1"), "https://host.example/mcp");
        assert_eq!(shown_url("http://127.0.0.1:80"), "http://127.0.0.1:80");
    }
}

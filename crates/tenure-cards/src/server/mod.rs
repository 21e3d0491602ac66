//! Tool servers, as `tenure.toml` and cards describe them. Which agent takes what of them is its
//! card's business; talking to them is that of `tenure-hosts`.

mod target;

pub(crate) use target::{Target, default_name};

use crate::card::{Environ, Meaning, ProtocolMode, Secret, expand_each};
use crate::hook::CommandRef;
use crate::sandbox::Grant;
use crate::source::{Source, Span};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::hook::Limit;
use tenure_core::secret::{is_secret_name, passwords};

/// A tool server that can be connected to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Server {
    /// Its name.
    pub name: Arc<str>,
    /// How it is reached.
    pub reach: Reach,
    /// Which edition of the protocol is spoken.
    pub protocol: ProtocolMode,
    /// How long connecting may take.
    pub start_limit: Option<Limit>,
    /// How long a call may take.
    pub call_limit: Option<Limit>,
    /// The confinement of its process, if it is not the project's.
    pub sandbox: Option<Grant>,
    /// The file that describes it.
    pub source: Arc<Source>,
    /// The place in it.
    pub span: Span,
}

/// How a tool server is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reach {
    /// It is a program that is started.
    Command {
        /// The program and what it is given.
        command: CommandRef,
        /// Variables that it gets beside the usual ones, each as it is written, `${VAR}` included.
        env: BTreeMap<String, Secret>,
    },
    /// It is there already.
    Url {
        /// The address.
        url: String,
        /// The address as it is written.
        written: String,
        /// Headers of every request, each as it is written, `${VAR}` included.
        headers: BTreeMap<String, Secret>,
    },
}

impl Server {
    /// Why its name cannot be told from that of its tools, `<server>__<tool>`, if it cannot.
    pub(crate) fn ambiguous_name(&self) -> Option<&'static str> {
        // What a model cannot say becomes `_`.
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = self.name.chars().map(plain).collect();
        match (name.contains("__"), name.ends_with('_')) {
            (true, _) => Some("has two signs in a row that are `_` or become it"),
            (_, true) => Some("ends in `_`, or in a sign that becomes it"),
            _ => None,
        }
    }

    /// Whether both are the same server: reached in the same way, with the same limits.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let reach = match (&self.reach, &other.reach) {
            (Reach::Command { command: a, env: x }, Reach::Command { command: b, env: y }) => {
                a.argv == b.argv && a.dir == b.dir && x == y
            }
            (Reach::Url { url: a, headers: x, .. }, Reach::Url { url: b, headers: y, .. }) => {
                a == b && x == y
            }
            _ => false,
        };
        reach
            && self.protocol == other.protocol
            && self.start_limit == other.start_limit
            && self.call_limit == other.call_limit
            && self.sandbox == other.sandbox
    }

    /// What it is reached by, as it is written: a command line or an address.
    pub fn written(&self) -> String {
        match &self.reach {
            Reach::Command { command, .. } => {
                let parts: Vec<String> = command.written.iter().map(|it| quoted(it)).collect();
                parts.join(" ")
            }
            Reach::Url { written, .. } => written.clone(),
        }
    }

    /// What it is given by name: variables of its environment, or headers. Each as it is written.
    pub(crate) fn given(&self) -> &BTreeMap<String, Secret> {
        match &self.reach {
            Reach::Command { env, .. } => env,
            Reach::Url { headers, .. } => headers,
        }
    }

    /// Every value that it is given and that is a secret: what stands for a variable, and what is
    /// written under the name of a secret.
    pub(crate) fn secrets(&self, environ: &Environ) -> Vec<String> {
        let is_url = matches!(self.reach, Reach::Url { .. });
        let mut found = Vec::new();
        for (name, written) in self.given() {
            let is_secret = is_secret_name(name);
            let value = expand_each(written.reveal(), environ, |variable, meaning| {
                let Meaning::Set(value) = meaning else { return };
                if is_url || is_secret || is_secret_name(variable) {
                    found.push(value.to_owned());
                }
                found.extend(passwords(value).into_iter().map(str::to_owned));
            });
            if is_secret {
                // Of `Bearer abc` it is the second part that gives something away.
                let parts = value.split_once(' ').map(|(_, token)| token.trim().to_owned());
                found.extend(parts.into_iter().chain([value]));
            }
        }
        found
    }
}

/// A part of a command line as a person would have to type it.
pub(crate) fn quoted(part: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:+,@%".contains(c);
    if !part.is_empty() && part.chars().all(plain) {
        part.to_owned()
    } else {
        format!("'{}'", part.replace('\'', "'\\''"))
    }
}

/// The names of the variables in a text.
pub(crate) fn variables(written: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    expand_each(written, &Environ::empty(), |name, _| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    });
    names
}

//! What `audit` takes by `with`.

use super::content::{Content, MOST};
use super::{AuditLog, Keep};
use crate::guard::dry_run::tools;
use crate::guard::permissions::argument::Argument;
use crate::ready::{About, Makings, Options, ProjectPath, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::hook::{IntoRegistration, Registration};

/// What `audit` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::guard) struct AuditOptions {
    /// The file that lines are appended to. It is made, with the folders it is in.
    file: Option<ProjectPath>,
    /// The tools whose calls are logged, by name or pattern; without any, all of them.
    tools: Vec<String>,
    /// The tools whose calls are not logged.
    except: Vec<String>,
    /// Whether model calls are logged too.
    models: bool,
    /// What is kept of arguments, results and answers.
    content: ContentOptions,
    /// The most bytes that are kept of each of them; of what is longer the beginning is kept, with
    /// its length and its hash.
    most: usize,
    /// Arguments that are kept as `[redacted]`: `password`, `headers.authorization`.
    redact: Vec<String>,
    /// Whether every line is waited for until it is on the disk.
    sync: bool,
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum ContentOptions {
    /// All of it, up to a bound.
    #[default]
    Full,
    /// Its SHA-256 and its length.
    Hash,
    /// Nothing.
    None,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            file: None,
            tools: Vec::new(),
            except: Vec::new(),
            models: false,
            content: ContentOptions::Full,
            most: Content::default().most,
            redact: Vec::new(),
            sync: false,
        }
    }
}

impl Options for AuditOptions {
    const ABOUT: About = About {
        name: "audit",
        summary: "Logs who had which tool called with what, in a file whose lines are chained.",
        covers: &["UC-5.3"],
        peers: &[],
        example: r#"{ "file": "audit.jsonl", "redact": ["password"] }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let Some(file) = self.file else {
            return Err(Refusal::new("file", "name the file that lines are appended to"));
        };
        let path = makings.path(&file.0).map_err(|why| Refusal::new("file", why))?;
        if path.file_name().is_none() {
            return Err(Refusal::new("file", format!("`{}` names no file", file.0)));
        }
        if !(1..=MOST).contains(&self.most) {
            let message = format!("{} is not between 1 and {MOST}", self.most);
            return Err(Refusal::new("most", message));
        }
        let mut redact = Vec::new();
        for (at, argument) in self.redact.iter().enumerate() {
            let argument = Argument::new(argument);
            redact.push(argument.map_err(|why| Refusal::new(format!("redact[{at}]"), why))?);
        }
        let keep = match self.content {
            ContentOptions::Full => Keep::Full,
            ContentOptions::Hash => Keep::Hash,
            ContentOptions::None => Keep::Nothing,
        };
        let log = AuditLog {
            path,
            tools: tools(&self.tools, &self.except)?,
            models: self.models,
            content: Content { keep, most: self.most, redact },
            sync: self.sync,
        };
        Ok(log.into_registration())
    }
}

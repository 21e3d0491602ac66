//! What is kept of a run for doing it again.

use super::super::asked::{Asked, ModelChoice};
use super::Place;
use crate::args::OfWorkflow;
use crate::terminal::sink::redactor;
use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenure_core::engine::RunInfo;

/// The kind of a run of cards.
pub(crate) const CARD: &str = "card";
/// The kind of a run of a workflow.
pub(crate) const WORKFLOW: &str = "workflow";

/// A run as it is on record: what was asked, and what was there when it began.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) asked: Asked,
    /// When it began.
    pub(crate) date: SystemTime,
    /// What the agent had before it of the conversation, if it continues one.
    pub(crate) history: Option<Head>,
}

/// What a history was, without the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) messages: usize,
    pub(crate) sha256: String,
}

/// As it is in the file.
#[derive(Serialize, Deserialize)]
struct Written {
    /// From the project's folder, with `/` between its parts.
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// With its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    app: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    set: Vec<(String, Value)>,
    /// In milliseconds since 1970.
    date: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    history: Option<Head>,
}

impl Recorded {
    /// A run that begins now. What is not written is not used either, so that every life has the
    /// same.
    pub(crate) fn now(mut asked: Asked) -> Self {
        if let Some(message) = &mut asked.message {
            redactor().redact_recorded_text(message);
        }
        for (_, value) in &mut asked.of_workflow.set {
            redactor().redact_record(value);
        }
        // As exact as the record is: every life has the same.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { asked, date: UNIX_EPOCH + Duration::from_millis(millis), history: None }
    }

    /// As it is put on record. What is run has to be beneath the project's folder.
    pub(crate) fn to_value(&self, root: &Path) -> Result<Value> {
        let asked = &self.asked;
        let of = &asked.of_workflow;
        let since = self.date.duration_since(UNIX_EPOCH).unwrap_or_default();
        let written = Written {
            path: relative(root, &asked.path)?,
            agent: asked.agent.clone(),
            message: asked.message.clone(),
            model: asked.model.clone(),
            timeout: asked.timeout.map(|limit| limit.to_string()),
            app: of.app.clone(),
            user: of.user.clone(),
            chat_id: of.chat_id.clone(),
            seed: of.seed,
            set: of.set.clone(),
            date: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            history: self.history.clone(),
        };
        serde_json::to_value(written).context("what is to be run cannot be put on record")
    }

    /// A run of the record. Its path must lead to something beneath the project's folder.
    pub(crate) fn of(place: &Place, info: &RunInfo) -> Result<Self> {
        if info.kind != CARD && info.kind != WORKFLOW {
            bail!(
                "run {} is of the kind `{}`, which this program did not start; whatever started it \
                 has to go on with it",
                info.id,
                info.kind
            );
        }
        let written: Written = serde_json::from_value(info.input.clone()).with_context(|| {
            format!("what run {} was started with cannot be read; it was not changed", info.id)
        })?;
        let path =
            tenure_cards::project::confine(&place.root, &place.root, Path::new(&written.path));
        let path = path.map_err(|error| {
            anyhow::anyhow!(
                "run {} is of `{}`, which {error}; put it back, or go to the folder that the run was \
                 started in (looked for it beneath {})",
                info.id,
                written.path,
                place.root.display()
            )
        })?;
        let timeout = written.timeout.map(|limit| limit.parse()).transpose().map_err(|error| {
            anyhow::anyhow!("the time limit of run {} cannot be read: {error}", info.id)
        })?;
        let Written { agent, message, model, app, user, chat_id, seed, set, history, .. } = written;
        // A workflow is named by its path.
        let of_workflow = OfWorkflow { workflow: None, app, user, chat_id, seed, set };
        let (path, may_be_piped) = (shown(&path), false);
        Ok(Self {
            asked: Asked {
                path,
                agent,
                message,
                may_be_piped,
                model,
                model_by: ModelChoice::Record,
                timeout,
                of_workflow,
            },
            date: UNIX_EPOCH + Duration::from_millis(written.date),
            history,
        })
    }
}

/// The path as people in the working directory would write it.
fn shown(path: &Path) -> std::path::PathBuf {
    let here = std::env::current_dir().ok().and_then(|here| here.canonicalize().ok());
    match here.as_deref().and_then(|here| path.strip_prefix(here).ok()) {
        Some(short) if short.as_os_str().is_empty() => ".".into(),
        Some(short) => short.to_owned(),
        None => path.to_owned(),
    }
}

/// The path from the project's folder, with `/` between its parts. A link is where its name is.
fn relative(root: &Path, path: &Path) -> Result<String> {
    let unknown = || format!("{} cannot be put on record", path.display());
    let found = match (path.is_dir(), path.file_name()) {
        (false, Some(name)) => {
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
            folder.unwrap_or(Path::new(".")).canonicalize().with_context(unknown)?.join(name)
        }
        _ => path.canonicalize().with_context(unknown)?,
    };
    let Ok(relative) = found.strip_prefix(root) else {
        bail!("{} is not beneath the project's folder {}", path.display(), root.display());
    };
    let parts: Vec<_> = relative.components().map(|it| it.as_os_str().to_string_lossy()).collect();
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

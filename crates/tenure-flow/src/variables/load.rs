//! The values that a chat begins with.

use super::provided::ENTERPRISE_ID;
use super::{File, FileFormat, Kind, Refresh, Session, Source, Variables};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_cards::Report;
use tenure_cards::project::{ConfineError, confine};
use tenure_cards::source::{self, MAX_FILE, ReadError, Span};
use tenure_core::Error;
use tenure_core::step::Steps;

/// What a recorded chat began with.
#[derive(Serialize, Deserialize)]
struct Loaded {
    values: BTreeMap<String, Value>,
    /// What the databases had.
    written: BTreeMap<String, Value>,
    /// Variables whose values are not on record.
    secret: Vec<String>,
}

/// What the platform knows of a chat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeKeys {
    /// The workflow.
    pub workflow_name: String,
    /// The app that it runs in.
    pub app_id: String,
    /// Who it is for.
    pub user_id: String,
    /// The chat.
    pub chat_id: String,
}

impl RuntimeKeys {
    /// The keys of a chat.
    pub fn new(
        workflow_name: impl Into<String>,
        app_id: impl Into<String>,
        user_id: impl Into<String>,
        chat_id: impl Into<String>,
    ) -> Self {
        Self {
            workflow_name: workflow_name.into(),
            app_id: app_id.into(),
            user_id: user_id.into(),
            chat_id: chat_id.into(),
        }
    }

    /// The keys as variables.
    pub(super) fn values(&self) -> [(&'static str, &str); 4] {
        [
            ("workflow_name", &self.workflow_name),
            ("app_id", &self.app_id),
            ("user_id", &self.user_id),
            ("chat_id", &self.chat_id),
        ]
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let key = if key == ENTERPRISE_ID { "app_id" } else { key };
        self.values().into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

impl File {
    /// Where the file is: from the workflow's folder, or else from the project's. Both are absolute
    /// and resolved.
    pub fn located(&self, root: &Path, folder: &Path) -> Result<PathBuf, ConfineError> {
        let found = confine(root, folder, &self.path);
        match confine(root, root, &self.path) {
            Ok(elsewhere) if found.is_err() => Ok(elsewhere),
            _ => found,
        }
    }
}

impl Variables {
    /// Opens the variables of a chat, before its agents start: reads the environment, the files and
    /// the databases, and computes what follows. `given` are values that the chat is to begin with;
    /// those of states and documents take the place of their defaults, and what is not declared is
    /// scratch.
    ///
    /// The values are in [`Session::values`], the system's own not among them.
    pub async fn open(
        self: &Arc<Self>,
        keys: RuntimeKeys,
        given: BTreeMap<String, Value>,
    ) -> Result<Session, Error> {
        self.open_at(keys, given, None).await
    }

    /// The same for a chat that is recorded: in every life of its run it begins with the same values,
    /// and what is read and written for it later is on record too.
    pub(crate) async fn open_at(
        self: &Arc<Self>,
        keys: RuntimeKeys,
        given: BTreeMap<String, Value>,
        steps: Option<&Steps>,
    ) -> Result<Session, Error> {
        let session = Session::new(self.clone(), keys, steps.cloned());
        let mut values = match steps {
            None => self.load(&session, given).await?,
            Some(steps) => self.load_recorded(&session, given, steps).await?,
        };
        self.compute_all(&mut values).map_err(Error::invalid)?;
        session.opened(values);
        Ok(session)
    }

    /// Everything that is not computed.
    async fn load(
        &self,
        session: &Session,
        given: BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Value>, Error> {
        let mut values: BTreeMap<String, Value> = BTreeMap::new();
        for (name, value) in session.keys().values() {
            values.insert(name.to_owned(), value.into());
        }
        for (name, value) in given {
            let value = self.accept(&name, value)?;
            values.insert(name, value);
        }
        self.load_plain(&mut values)?;
        self.load_files(&mut values).await?;
        session.load_provided(&mut values).await?;
        session.load_data(&mut values).await?;
        Ok(values)
    }

    /// The same, once in all lives of a run.
    async fn load_recorded(
        &self,
        session: &Session,
        given: BTreeMap<String, Value>,
        steps: &Steps,
    ) -> Result<BTreeMap<String, Value>, Error> {
        let load = async {
            let values = self.load(session, given.clone()).await?;
            // What must not be written down is read again by every life. What is in its place in
            // the record would be no good as a password, nor as part of a document.
            let is_secret = |value: &Value| steps.log().redact(&mut value.clone());
            let (secret, values): (BTreeMap<_, _>, BTreeMap<_, _>) =
                values.into_iter().partition(|(_, value)| is_secret(value));
            let mut written = session.written();
            written.retain(|name, _| !secret.contains_key(name));
            Ok(Loaded { values, written, secret: secret.into_keys().collect() })
        };
        let Loaded { mut values, mut written, secret } =
            steps.step("variables", &given, load).await?;
        if !secret.is_empty() {
            let again = self.load(session, given).await?;
            let again = again.into_iter().filter(|(name, _)| secret.contains(name));
            values.extend(again);
            let again = session.written().into_iter().filter(|(name, _)| secret.contains(name));
            written.extend(again);
        }
        session.was_written(written);
        Ok(values)
    }

    /// Whether a chat may begin with this value.
    fn accept(&self, name: &str, value: Value) -> Result<Value, Error> {
        if !self.accepts(name) {
            let from = self.get(name).map_or("the platform", |it| it.source.as_str());
            return Err(Error::invalid(format!(
                "context variable `{name}` cannot be given to a chat: it comes from {from}"
            )));
        }
        let Some(definition) = self.get(name) else { return Ok(value) };
        definition.kind.coerce(value).map_err(|error| {
            Error::invalid(format!("context variable `{name}`, given to the chat: {error}"))
        })
    }

    fn load_plain(&self, values: &mut BTreeMap<String, Value>) -> Result<(), Error> {
        let mut wrong = Vec::new();
        for definition in &self.definitions {
            let (name, kind) = (&definition.name, definition.kind);
            let value = match &definition.source {
                Source::Static(value) => Ok(value.clone()),
                Source::State(_) if values.contains_key(name) => continue,
                Source::State(state) => kind.coerce(state.default.clone()),
                Source::Config(config) => match self.environ.value(&config.env_var) {
                    // The value may be a secret, so it is not shown.
                    Some(text) => kind
                        .read(&text)
                        .map_err(|_| format!("{} is not {}", config.env_var, kind.described())),
                    None => match &config.default {
                        Some(default) => kind.coerce(default.clone()),
                        None if config.required => Err(format!(
                            "the environment variable {} is not set; set it, or give the variable \
                             a default",
                            config.env_var
                        )),
                        None => Ok(Value::Null),
                    },
                },
                _ => continue,
            };
            match value {
                Ok(value) => {
                    values.insert(name.clone(), value);
                }
                Err(error) => wrong.push(format!("context variable `{name}`: {error}")),
            }
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid(wrong.join("; "))),
        }
    }

    async fn load_files(&self, values: &mut BTreeMap<String, Value>) -> Result<(), Error> {
        let mut wanted: Vec<(String, Kind, File)> = Vec::new();
        for definition in &self.definitions {
            if let Source::File(file) = &definition.source {
                wanted.push((definition.name.clone(), definition.kind, file.clone()));
            }
        }
        wanted.extend(self.overview_files());
        if wanted.is_empty() {
            return Ok(());
        }
        let (root, folder) = (self.root.clone(), self.folder.clone());
        let read = tokio::task::spawn_blocking(move || {
            wanted
                .into_iter()
                .map(|(name, kind, file)| match read(&root, &folder, &file, kind) {
                    Ok(value) => Ok((name, value)),
                    Err(error) => Err(format!("context variable `{name}`: {error}")),
                })
                .collect::<Result<Vec<_>, _>>()
        });
        let read = read.await.map_err(|_| Error::orchestration("files could not be read"))?;
        values.extend(read.map_err(Error::invalid)?);
        Ok(())
    }

    /// Whether a reference is read when a chat starts.
    pub(super) fn is_read_at_start(refresh: Refresh) -> bool {
        refresh != Refresh::OnDemand
    }
}

/// Reads a file of the project.
fn read(root: &Path, folder: &Path, file: &File, kind: Kind) -> Result<Value, String> {
    let shown = file.path.display();
    let path = match file.located(root, folder) {
        Ok(path) => path,
        Err(ConfineError::Missing) if file.default.is_some() || !file.required => {
            return kind.coerce(file.default.clone().unwrap_or_default());
        }
        Err(error) => return Err(format!("the file `{shown}` {error}")),
    };
    let text = read_text(&path).map_err(|error| format!("the file `{shown}` {error}"))?;
    let value = match file.format {
        FileFormat::Text => return kind.read(&text),
        FileFormat::Json => serde_json::from_str(&text)
            .map_err(|error| format!("the file `{shown}` is no JSON: {error}"))?,
        FileFormat::Yaml => {
            let mut report = Report::new();
            let length = text.len();
            let source = Arc::new(source::Source::new(file.path.clone(), text));
            let node = source::parse_yaml(&source, Span::new(0, length), &mut report);
            if let Some(problem) =
                report.iter().find(|it| it.severity == tenure_cards::Severity::Error)
            {
                let line = source.line_col(problem.span.start as usize).line;
                let message = &problem.message;
                return Err(format!("the file `{shown}` is no YAML: line {line}: {message}"));
            }
            node.map(|node| node.to_json()).unwrap_or_default()
        }
    };
    kind.coerce(value).map_err(|error| format!("the file `{shown}`: {error}"))
}

fn read_text(path: &Path) -> Result<String, String> {
    let bytes = source::read_bytes(path).map_err(|error| match error {
        ReadError::TooLarge => {
            let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
            format!("has {size} bytes; {MAX_FILE} are the most that is read")
        }
        other => other.to_string(),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| "is not utf-8".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::read_text;

    #[test]
    fn neither_a_pipe_nor_a_file_without_end_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (pipe, large) = (folder.path().join("pipe"), folder.path().join("large"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("it starts").success());
        let (told, hears) = std::sync::mpsc::channel();
        // A reader that waits would wait for ever.
        std::thread::spawn(move || told.send(read_text(&pipe)));
        let said = hears.recv_timeout(std::time::Duration::from_secs(10)).expect("it returns");
        assert_eq!(said, Err("is not a regular file".to_owned()));
        let file = std::fs::File::create(&large).expect("it is made");
        file.set_len(1 << 40).expect("it has holes");
        let said = format!("has {} bytes; 1048576 are the most that is read", 1_u64 << 40);
        assert_eq!(read_text(&large), Err(said));
    }
}

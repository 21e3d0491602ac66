//! The user's own configuration: what nobody's project may decide. Where its keys are, and to which
//! servers they may be sent.
//!
//! ```toml
//! default_model = "openai.gpt-4.1-mini"
//!
//! [providers.openai]
//! api_key_file = "~/.secrets/openai"       # or: api_key_env = "WORK_OPENAI_KEY"
//! allow_hosts = ["llm.example.net"]        # the key may go there if a project says base_url
//! ```

use crate::diagnostic::Report;
use crate::project::{
    ALIASES, DEFAULT_MODEL, ModelSettings, Owner, PRICES, PROVIDERS, Settings, read_models,
};
use crate::source::{self, Source};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the user's own configuration says. The default says nothing.
///
/// The library looks for no such file by itself: whoever runs teams names it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UserConfig {
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// What it says about models.
    pub models: ModelSettings,
    pub(crate) report: Report,
}

impl UserConfig {
    /// Reads the file. One that is not there says nothing; what is wrong with one that is, is in
    /// [`UserConfig::report`].
    pub fn read(path: &Path) -> Self {
        if !path.exists() {
            return Self::default();
        }
        let mut report = Report::new();
        match source::read(path, path, &mut report) {
            Some(source) => Self::of(&source, path, report),
            None => Self { path: Some(path.to_owned()), report, ..Self::default() },
        }
    }

    /// Reads this text as if it stood in the file `path`.
    pub fn parse(text: &str, path: &Path) -> Self {
        Self::of(&Arc::new(Source::new(path, text)), path, Report::new())
    }

    /// What is wrong with it.
    pub fn report(&self) -> &Report {
        &self.report
    }

    fn of(source: &Arc<Source>, path: &Path, mut report: Report) -> Self {
        let mut reader = Settings { source, report: &mut report };
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut models = ModelSettings::default();
        if let Some(root) = reader.parse(source.text()) {
            let known = [DEFAULT_MODEL, PROVIDERS, ALIASES, PRICES];
            reader.only(root.get_ref(), "your configuration", &known);
            models = read_models(&mut reader, root.get_ref(), &Owner::User(folder));
        }
        Self { path: Some(path.to_owned()), models, report }
    }
}

//! Folders of workflows that are written for one test.

use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tenure_cards::LoadOptions;
use tenure_cards::card::Environ;
use tenure_cards::diagnostic::Color;
use tenure_flow::{LoadedWorkflow, load};

/// Where the files of these tests are.
pub(crate) fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/loading")
}

/// A project with the workflow `Demo` in it.
pub(crate) struct Project {
    dir: TempDir,
}

impl Project {
    /// The base, changed as `text` says: `=== path` begins a file, `=== -path` removes one.
    pub(crate) fn with(text: &str) -> Self {
        let project = Self { dir: tempfile::tempdir().expect("there is room") };
        std::fs::create_dir(project.root()).expect("it is new");
        let databases = "[databases.app]\npath = \"app.sqlite\"\n";
        std::fs::write(project.root().join("tenure.toml"), databases).expect("there is room");
        let base = here().join("base");
        for file in ["orchestrator.yaml", "agents.yaml", "tools/helpers.py"] {
            let text = std::fs::read_to_string(base.join(file)).expect("the base is there");
            project.write(file, &text);
        }
        for section in text.split("=== ").filter(|section| !section.is_empty()) {
            let (path, text) = section.split_once('\n').unwrap_or((section, ""));
            match path.trim().strip_prefix('-') {
                Some(path) => {
                    std::fs::remove_file(project.workflow().join(path)).expect("it is there");
                }
                None => project.write(path.trim(), text),
            }
        }
        project
    }

    /// The project's folder; around it is room for files that are outside.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// The workflow's folder.
    pub(crate) fn workflow(&self) -> PathBuf {
        self.root().join("workflows/Demo")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.workflow().join(path);
        let folder = path.parent().expect("it is in a folder");
        std::fs::create_dir_all(folder).expect("there is room");
        std::fs::write(path, text).expect("there is room");
    }

    /// Loads it; nothing is set in the environment.
    pub(crate) fn load(&self) -> LoadedWorkflow {
        load(&self.workflow(), &options())
    }

    /// The report as people read it, with paths as seen from the project.
    pub(crate) fn report(&self, loaded: &LoadedWorkflow) -> String {
        let root = format!("{}/", self.root().display());
        loaded.report.render_text(Color::Never).replace(&root, "")
    }
}

pub(crate) fn options() -> LoadOptions {
    LoadOptions::default().environ(Environ::empty()).registered_hooks(["retry", "audit"])
}

//! The files that this program brings along: templates and the demo.

use crate::args::Template;
use anyhow::{Context as _, Result};
use std::io::Write as _;
use std::path::Path;

/// A file: its name, its text.
pub(super) type Embedded = (&'static str, &'static str);

macro_rules! files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../", $folder, "/", $name)))),+]
    };
}

pub(super) const DEMO: &[Embedded] = files!("demo":
    "tenure.toml", "editor.md", "editor.json", "researcher.md", "researcher.json", "hooks.py",
    "tools.py", "audit.sh", "desk/about.txt");
const HELLO: &[Embedded] = files!("templates/hello":
    "tenure.toml", "greeter.md", "greeter.json", "hooks.py");
const APPROVAL: &[Embedded] = files!("templates/approval":
    "tenure.toml", "clerk.md", "clerk.json", "hooks.py", "tools.py", "notes/about.txt");
const TEAM: &[Embedded] = files!("templates/team":
    "tenure.toml", "lead.md", "lead.json", "researcher.md", "researcher.json", "hooks.py",
    "tools.py", "audit.sh");
const WORKFLOW: &[Embedded] = files!("templates/workflow":
    "tenure.toml", "workflows/story/orchestrator.yaml", "workflows/story/agents.yaml",
    "workflows/story/handoffs.yaml", "workflows/story/context_variables.yaml",
    "workflows/story/tools.yaml", "workflows/story/tools/desk.py", "workflows/story/writer.json",
    "workflows/story/editor.json");

impl Template {
    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Approval => "approval",
            Self::Team => "team",
            Self::Workflow => "workflow",
        }
    }

    pub(super) fn files(self) -> &'static [Embedded] {
        match self {
            Self::Hello => HELLO,
            Self::Approval => APPROVAL,
            Self::Team => TEAM,
            Self::Workflow => WORKFLOW,
        }
    }

    /// A message that shows what it does, if it needs one.
    pub(super) fn message(self) -> Option<&'static str> {
        Some(match self {
            Self::Hello => "good morning",
            Self::Approval => "buy milk",
            Self::Team => "octopuses",
            // Its agents begin by themselves.
            Self::Workflow => return None,
        })
    }
}

/// Writes files into a folder that is there. None of them may exist.
pub(super) fn write(folder: &Path, files: &[Embedded]) -> Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("the folder {} cannot be made", parent.display()))?;
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}

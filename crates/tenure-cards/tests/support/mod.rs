//! Projects in temporary folders.

use std::path::Path;
use tenure_cards::Team;
use tenure_cards::check::{LoadOptions, Loaded, load};
use tenure_cards::diagnostic::Report;
use tenure_cards::team::TeamBuilder;
use tenure_testkit::{Recorder, TestFolder};

/// Python hooks that write down who was called and how.
pub(crate) const LOG: &str = r#"
import os

LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log.txt")

def log(line):
    with open(LOG, "a") as file:
        file.write(line + "\n")

def start(ctx):
    log("start " + ctx.agent_name)

async def stop(ctx):
    log("stop " + ctx.agent_name)

def boom(ctx):
    log("boom " + ctx.agent_name)
    raise ValueError("the disk is full")
"#;

pub(crate) struct Project {
    folder: TestFolder,
}

impl Project {
    /// A project of these files, with hooks that write down who was called.
    pub(crate) fn new<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self::with(("log.py", LOG), files)
    }

    /// A project of these files, and one that they import.
    pub(crate) fn with<const N: usize>(imported: (&str, &str), files: [(&str, &str); N]) -> Self {
        let folder = TestFolder::new(&[("tenure.toml", ""), imported]);
        for (name, text) in files {
            folder.write(name, text);
        }
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn make_executable(&self, name: &str) {
        self.folder.make_executable(name);
    }

    pub(crate) fn loaded(&self) -> Loaded {
        load(self.path(), &LoadOptions::default())
    }

    pub(crate) fn builder(&self) -> TeamBuilder {
        checked(self.loaded())
    }

    /// A builder of cards that are loaded in this way.
    pub(crate) fn builder_with(&self, options: LoadOptions) -> TeamBuilder {
        checked(load(self.path(), &options))
    }

    pub(crate) fn team(&self) -> Team {
        self.builder().build().unwrap_or_else(|report| panic!("{:#?}", messages(&report)))
    }

    /// A team under a recorder.
    pub(crate) fn recorded(&self) -> (Team, Recorder) {
        let (bus, recorder) = Recorder::with_bus();
        let team = self.builder().events(&bus).build();
        (team.unwrap_or_else(|report| panic!("{:#?}", messages(&report))), recorder)
    }

    /// What the hooks wrote down.
    pub(crate) fn log(&self) -> Vec<String> {
        self.folder.read("log.txt").lines().map(str::to_owned).collect()
    }
}

fn checked(loaded: Loaded) -> TeamBuilder {
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    Team::builder(loaded)
}

/// What is wrong: code and message of each.
pub(crate) fn messages(report: &Report) -> Vec<String> {
    report.iter().map(|it| format!("{} {}", it.code, it.message)).collect()
}

/// A card that writes down its start and its stop.
pub(crate) fn logged(name: &str, more: &str) -> String {
    format!(
        "---\nname: {name}\n{more}\nlifecycle_hooks:\n  on_start: log.py:start\n  \
         on_shutdown: log.py:stop\n---\nYou are {name}.\n"
    )
}

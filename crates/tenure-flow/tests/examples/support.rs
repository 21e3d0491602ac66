//! The folders under `examples/workflows`, loaded and run as a program would.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_cards::{LoadOptions, Report};
use tenure_core::event::{Event, EventKind};
use tenure_flow::{ChatReport, LoadedWorkflow, Workflow, load};
use tenure_testkit::Recorder;

pub(crate) const CHAT: &str = "chat_abc123";

pub(crate) fn folder(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../../examples/workflows").join(name).canonicalize().expect("the example is there")
}

pub(crate) fn messages(report: &Report) -> Vec<String> {
    let line = |it: &tenure_cards::Diagnostic| {
        format!("{} {} {}", it.source.path().display(), it.code, it.message)
    };
    report.iter().map(line).collect()
}

/// A workflow that has neither errors nor warnings.
pub(crate) fn loaded(path: &Path) -> LoadedWorkflow {
    let loaded = load(path, &LoadOptions::default());
    assert_eq!(messages(&loaded.report), Vec::<String>::new());
    loaded
}

pub(crate) struct Ran {
    pub(crate) report: ChatReport,
    pub(crate) events: Vec<Arc<Event>>,
}

/// Runs one chat of a workflow.
pub(crate) async fn run(path: &Path) -> Ran {
    let (bus, recorder) = Recorder::with_bus();
    let workflow = Workflow::builder(loaded(path)).events(&bus).build();
    let workflow = workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    assert_eq!(messages(workflow.warnings()), Vec::<String>::new());
    let flow = workflow.open().await.unwrap_or_else(|error| panic!("{error}"));
    let report = flow.chat().id(CHAT).user("user_xyz").app("ent_001").run().await;
    workflow.shutdown().await;
    tenure_testkit::assert_paired(&recorder);
    Ran { report, events: recorder.events() }
}

impl Ran {
    /// What was printed, with who printed it.
    pub(crate) fn lines(&self) -> Vec<(String, String)> {
        let lines = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Log { source, line, .. } => Some((source.to_string(), line.clone())),
            _ => None,
        });
        lines.collect()
    }

    /// The only line that has this in it.
    pub(crate) fn line(&self, part: &str) -> String {
        let lines: Vec<_> = self.lines().into_iter().filter(|it| it.1.contains(part)).collect();
        match &*lines {
            [(_, line)] => line.clone(),
            _ => panic!("not one line has `{part}`: {:#?}", self.lines()),
        }
    }

    /// What was announced under this name, in order.
    pub(crate) fn announced(&self, name: &str) -> Vec<Value> {
        let all = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Announced { name: found, data } if *found == name => Some(data.clone()),
            _ => None,
        });
        all.collect()
    }

    /// The lifecycle events of this name that the workflow's own tools caused, not the platform's.
    pub(crate) fn tools(&self, name: &str) -> Vec<Value> {
        let own = |data: &Value| data["file"].as_str().is_some_and(|file| file.ends_with(".py"));
        self.announced(name).into_iter().filter(own).collect()
    }

    /// Where the first event stands that fits.
    pub(crate) fn place(&self, what: &str, fits: impl Fn(&Event) -> bool) -> usize {
        let place = self.events.iter().position(|event| fits(event));
        place.unwrap_or_else(|| panic!("there is no {what} among {:#?}", self.names()))
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(|event| event.name()).collect()
    }
}

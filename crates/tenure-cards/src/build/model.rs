//! The models that cards name.

use crate::card::{Card, load_history};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::project::Project;
use crate::source::{self, Span};
use std::path::Path;
use std::sync::Arc;
use tenure_core::model::Model;
use tenure_models::{Passthrough, Playback, Script, Silent, Slow};

/// What a card without a model uses.
pub(super) const DEFAULT: &str = "passthrough";

/// A model that a card or a run names.
#[derive(Debug)]
pub(super) struct Named<'a> {
    pub(super) text: &'a str,
    /// Whether the run names it and not the card. A path in it starts from the project then.
    pub(super) overridden: bool,
    /// The field that names it.
    pub(super) field: &'static str,
}

/// The model of this name; `None` if it was refused. Nothing is reached over the network.
pub(super) fn model(
    named: &Named<'_>,
    card: &Card,
    project: &Project,
    report: &mut Report,
) -> Option<Arc<dyn Model>> {
    let text = named.text.trim();
    if let Some(path) = text.strip_prefix("script:") {
        return script(path.trim(), named, card, project, report).map(|it| Arc::new(it) as _);
    }
    Some(match text {
        "passthrough" => Arc::new(Passthrough::new()),
        "playback" if card.messages.is_empty() => Arc::new(Playback::loading()),
        "playback" => Arc::new(Playback::new(load_history(card).iter().cloned())),
        "slow" => Arc::new(Slow::new()),
        "silent" => Arc::new(Silent::new()),
        _ => {
            report.push(
                Diagnostic::new(
                    Code::RemoteModel,
                    &card.source,
                    place(card, named.field),
                    format!("the model `{text}` is reached over the network"),
                )
                .help(
                    "models over the network are not in this release; use passthrough, playback, \
                     slow, silent or script:<file>, in the card or by --model",
                ),
            );
            return None;
        }
    })
}

/// Where a field of a card is written; its name if the card does not write it.
pub(super) fn place(card: &Card, field: &str) -> Span {
    match card.tree().entry(field) {
        Some((key, node)) => key.span.to(node.span),
        None => card.name_span,
    }
}

fn script(
    path: &str,
    named: &Named<'_>,
    card: &Card,
    project: &Project,
    report: &mut Report,
) -> Option<Script> {
    let base = if named.overridden { &project.root } else { card.dir() };
    let refuse = |report: &mut Report, message: String, help: &str| {
        let span = place(card, named.field);
        report.push(Diagnostic::new(Code::BadScript, &card.source, span, message).help(help));
    };
    let file = match project.confine(base, Path::new(path)) {
        Ok(file) => file,
        Err(error) => {
            let help = "name a YAML or JSON file beneath the project, relative to the card";
            refuse(report, format!("the script `{path}` {error}"), help);
            return None;
        }
    };
    let source = source::read(&file, project.relative(&file), report)?;
    let span = Span::new(0, source.text().len());
    let before = report.errors();
    let tree = source::parse_yaml(&source, span, report)?;
    if report.errors() > before {
        return None;
    }
    match Script::from_json(&tree.to_json()) {
        Ok(script) => Some(script),
        Err(error) => {
            let help = "a script is a list of replies: {text}, {call, with}, {calls} or {error}";
            refuse(report, format!("the script `{path}` cannot be used: {error}"), help);
            None
        }
    }
}

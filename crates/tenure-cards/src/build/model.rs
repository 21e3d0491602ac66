//! The models that cards name.

use super::agent::{Choice, Workshop};
use super::reference::follow;
use super::remote;
use crate::card::{Card, ModelFields, load_history};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::project::{Project, Written, confine};
use crate::source::{self, Source, Span};
use crate::team::ModelExplanation;
use std::path::Path;
use std::sync::Arc;
use tenure_core::model::Model;
use tenure_models::{Passthrough, Playback, Script, Silent, Slow};

/// What a card without a model uses.
pub(super) const DEFAULT: &str = "passthrough";

/// A model that somebody names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) text: &'a str,
    pub(super) by: By<'a>,
}

/// Who names a model.
#[derive(Clone, Copy, Debug)]
pub(super) enum By<'a> {
    /// This field of the card.
    Field(&'static str),
    /// The run, in place of all cards. A path in it starts from the project.
    Run,
    /// A configuration, for cards that name none.
    Config(&'a Written),
    /// Nobody.
    Nobody,
}

impl Named<'_> {
    /// Where it is written.
    fn place(&self, card: &Card) -> (Arc<Source>, Span) {
        match self.by {
            By::Field(field) => (card.source.clone(), place(card, field)),
            // No card is to blame for what the command says.
            By::Run => {
                let source = Source::new("--model", self.text);
                (Arc::new(source), Span::new(0, self.text.len()))
            }
            By::Nobody => (card.source.clone(), place(card, "model")),
            By::Config(written) => (written.source.clone(), written.span),
        }
    }

    pub(super) fn problem(
        &self,
        code: Code,
        card: &Card,
        message: String,
        help: &str,
    ) -> Diagnostic {
        let (source, span) = self.place(card);
        Diagnostic::new(code, &source, span, message).help(help)
    }
}

/// A model, and what is to be said of it.
pub(super) struct Chosen {
    pub(super) model: Arc<dyn Model>,
    /// Where it is, if it is reached over the network.
    pub(super) remote: Option<ModelExplanation>,
}

impl Chosen {
    /// The model of this name; a passthrough if it is refused, so that its agent can still be
    /// explained. Nothing is reached over the network.
    pub(super) fn new(named: &Named<'_>, card: &Card, workshop: &mut Workshop<'_>) -> Self {
        let text = named.text.trim();
        if let Some(path) = text.strip_prefix("script:") {
            let script = script(path.trim(), named, card, workshop.project, &mut workshop.report);
            return Self::local(script.map(|it| Arc::new(it) as _));
        }
        let model: Arc<dyn Model> = match text {
            "passthrough" => Arc::new(Passthrough::new()),
            "playback" if card.messages.is_empty() => Arc::new(Playback::loading()),
            "playback" => Arc::new(Playback::new(load_history(card).iter().cloned())),
            "slow" => Arc::new(Slow::new()),
            "silent" => Arc::new(Silent::new()),
            _ => return remote::choose(named, card, workshop),
        };
        Self::local(Some(model))
    }

    pub(super) fn local(model: Option<Arc<dyn Model>>) -> Self {
        let model = model.unwrap_or_else(|| Arc::new(Passthrough::new()));
        Self { model, remote: None }
    }
}

impl Workshop<'_> {
    /// The agent's model and its name: the run's before the card's, and a configuration's for a
    /// card that names none.
    pub(super) fn model(&mut self, card: &Card, fields: &ModelFields) -> (Arc<dyn Model>, Choice) {
        let settings = self.settings;
        if let Some(model) = settings.brought.get(&card.name) {
            let text = fields.model.clone().unwrap_or_else(|| "its own".to_owned());
            return (model.clone(), Choice { text, remote: None });
        }
        let (project, user) = (self.project, self.user);
        let configs = [&project.config.models, &user.models];
        let config = configs.into_iter().find_map(|it| it.default_model.as_ref());
        let request = fields.request_params.model.as_deref();
        let named = match (&settings.model, request, &fields.model, config) {
            (Some(text), ..) => Named { text, by: By::Run },
            (None, Some(text), ..) => Named { text, by: By::Field("request_params") },
            (None, None, Some(text), _) => Named { text, by: By::Field("model") },
            (None, None, None, Some(it)) => Named { text: &it.text, by: By::Config(it) },
            (None, None, None, None) => Named { text: DEFAULT, by: By::Nobody },
        };
        let named = match follow(named, card, project, user) {
            Ok(named) => named,
            Err(found) => {
                self.report.push(found);
                let chosen = Chosen::local(None);
                return (chosen.model, Choice { text: named.text.to_owned(), remote: None });
            }
        };
        let before = self.report.errors();
        let chosen = Chosen::new(&named, card, self);
        let is_local = chosen.remote.is_none() && self.report.errors() == before;
        if is_local && fields.api_key.is_some() {
            let message = format!("`api_key` means nothing to the model `{}`", named.text);
            let span = place(card, "api_key");
            let diagnostic = Diagnostic::new(Code::MeaninglessField, &card.source, span, message);
            self.report.push(diagnostic.help("it is kept and not used"));
        }
        (chosen.model, Choice { text: named.text.to_owned(), remote: chosen.remote })
    }
}

/// Whether a model is a part of this program, and nothing is sent anywhere.
pub(crate) fn is_internal(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("script:") || matches!(text, "passthrough" | "playback" | "slow" | "silent")
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
    let base = match named.by {
        By::Field(_) => card.dir(),
        By::Run | By::Config(_) | By::Nobody => &project.root,
    };
    let refuse = |report: &mut Report, message: String, help: &str| {
        report.push(named.problem(Code::BadScript, card, message, help));
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

/// The script in a file beneath the project, for a model that no field of a card names. The error
/// says what is wrong with it.
pub(super) fn read_script(path: &str, base: &Path, root: &Path) -> Result<Script, String> {
    let refuse = |why: &dyn std::fmt::Display| format!("the script `{path}` {why}");
    let file = confine(root, base, Path::new(path)).map_err(|error| refuse(&error))?;
    let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
    let mut report = Report::new();
    let broken = |report: &Report| {
        let found = report.iter().next().map(|it| it.message.clone());
        refuse(&format_args!("cannot be used: {}", found.unwrap_or_default()))
    };
    let Some(source) = source::read(&file, shown, &mut report) else {
        return Err(broken(&report));
    };
    let tree = source::parse_yaml(&source, Span::new(0, source.text().len()), &mut report);
    let Some(tree) = tree.filter(|_| !report.has_errors()) else { return Err(broken(&report)) };
    let script = Script::from_json(&tree.to_json());
    script.map_err(|error| refuse(&format_args!("cannot be used: {error}")))
}

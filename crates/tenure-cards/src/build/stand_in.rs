//! Agents that no card is written for.

use crate::card::{Card, CardContext, parse_card};
use crate::check::Loaded;
use crate::project::Written;
use crate::python::PythonFiles;
use crate::source::{Document, FileKind, Key, Layout, Node, Source, Span, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An agent that a program adds to those of the cards: it stands for a chat, for a person, or helps
/// to choose who speaks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StandIn {
    /// Its name.
    pub name: String,
    /// The system instruction.
    pub instruction: String,
    /// Its model, with the place that names it; none means the default one.
    pub model: Option<Written>,
    /// Whether a turn sees the turns before it.
    pub use_history: bool,
    /// The file that it is there for.
    pub source: Arc<Source>,
    /// The folder that relative paths start from.
    pub dir: PathBuf,
}

impl StandIn {
    /// An agent that is there for this file; relative paths start from `dir`.
    pub fn new(name: impl Into<String>, source: &Arc<Source>, dir: &Path) -> Self {
        Self {
            name: name.into(),
            instruction: "You take part in a workflow.".to_owned(),
            model: None,
            use_history: true,
            source: source.clone(),
            dir: dir.to_owned(),
        }
    }

    /// What it is told.
    #[must_use]
    pub fn instruction(mut self, instruction: impl Into<String>) -> Self {
        self.instruction = instruction.into();
        self
    }

    /// Makes every turn begin with nothing but what it is told.
    #[must_use]
    pub fn without_history(mut self) -> Self {
        self.use_history = false;
        self
    }

    /// Its model, in place of the default one.
    #[must_use]
    pub fn model(mut self, model: Written) -> Self {
        self.model = Some(model);
        self
    }

    /// Its card, as if somebody had written one.
    pub(crate) fn card(&self, loaded: &mut Loaded) -> Option<Card> {
        let here = Span::at(0);
        let text = |span: Span, text: &str| Node::new(span, Value::Text(text.to_owned()));
        let key = |name: &str| Key { span: here, text: name.to_owned() };
        let mut fields = vec![
            (key("name"), text(here, &self.name)),
            (key("instruction"), text(here, &self.instruction)),
        ];
        if !self.use_history {
            fields.push((key("use_history"), Node::new(here, Value::Bool(false))));
        }
        let source = match &self.model {
            Some(model) => {
                fields.push((key("model"), text(model.span, &model.text)));
                model.source.clone()
            }
            None => self.source.clone(),
        };
        let document = Document {
            kind: FileKind::Yaml,
            tree: Node::new(here, Value::Map(fields)),
            body: None,
            layout: Layout::new(here),
            source,
        };
        let context = CardContext {
            project: &loaded.project,
            environ: &loaded.environ,
            python: &mut PythonFiles::default(),
            registered: None,
            dir: &self.dir,
            filled: &[],
        };
        let mut card = parse_card(document, context, &mut loaded.report).card?;
        // Whoever adds it names it by this name, spaces and all.
        card.name = self.name.as_str().into();
        Some(card)
    }
}

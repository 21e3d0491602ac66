//! The typed card: what a file declares, with every field checked and every default filled in.
//!
//! A [`Card`] is made by [`load`](crate::check::load) and by nothing else. It keeps the tree it was
//! made from, so that a dump shows what was written; `${VAR}` is expanded in the typed values only.
//! This room reads one card; how cards refer to each other is the business of
//! [`check`](crate::check).

mod agent;
mod expand;
mod field;
mod history;
mod instruction;
mod kind;
mod mcp;
mod params;
mod parse;
mod reader;
mod reference;
mod secret;
mod tool_schema;
mod tools;
mod workflow;

pub use agent::{AgentCard, ChildSettings, HistoryMerge, HistorySource, PluginCommand, Skills};
pub use expand::{Environ, Expansion};
pub(crate) use expand::{Meaning, Place, expand as expand_each, expand_text as expand};
pub use field::{FIELDS, Field};
pub use history::{HistoryFile, load_history};
pub(crate) use instruction::included;
pub use instruction::{DEFAULT_INSTRUCTION, TemplateContext, TemplateError, render_instruction};
pub use kind::{CardKind, CardType};
pub use mcp::{Management, McpConnection, McpFields, ProtocolMode};
pub use params::{ModelFields, RequestParams};
pub(crate) use parse::{CardContext, parse_card};
pub use reader::{Reader, found, list as list_words, present};
pub use reference::AgentRef;
pub use secret::Secret;
pub use tool_schema::InputSchema;
pub use tools::{CodeTool, FunctionTool};
pub use workflow::{
    A2aCard, A2aTransport, ChainCard, EvaluatorOptimizerCard, IterativePlannerCard, MakerCard,
    MatchStrategy, OrchestratorCard, ParallelCard, PlanType, Rating, RouterCard,
};

use crate::hook::CardHooks;
use crate::source::{Document, Node, Source, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::secret::is_secret_name;

/// One agent as its file declares it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Card {
    /// The agent's name: the field `name`, else the file's stem; spaces are `_`.
    pub name: Arc<str>,
    /// Where the name is written; the beginning of the file if the file's name gives it.
    pub name_span: Span,
    /// The type, and the fields that belong to it.
    pub kind: CardKind,
    /// The instruction of the body or of the field, before its templates are rendered. None means
    /// [`DEFAULT_INSTRUCTION`].
    pub instruction: Option<Arc<str>>,
    /// What the agent is for; the description of the tool when it is a child.
    pub description: Option<String>,
    /// Whether a run without a name talks to this agent.
    pub default: bool,
    /// Whether the agent is there only as a tool of others, and hidden from lists.
    pub tool_only: bool,
    /// The hooks that the card declares.
    pub hooks: CardHooks,
    /// The history files of `messages`, in order. They exist and could be read.
    pub messages: Vec<HistoryFile>,
    /// Every `${VAR}` that the card mentions, in order of appearance.
    pub expansions: Vec<Expansion>,
    /// The file.
    pub source: Arc<Source>,
    /// The file as it is written: nothing expanded, nothing defaulted.
    pub document: Document,
    pub(crate) dir: PathBuf,
}

impl Card {
    /// The card's type.
    pub fn card_type(&self) -> CardType {
        self.kind.card_type()
    }

    /// The fields as they are written: nothing expanded, nothing defaulted.
    pub fn tree(&self) -> &Node {
        &self.document.tree
    }

    /// The folder that relative paths of hooks, tools and messages start from; absolute, with its
    /// links resolved.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The field that a place of the card belongs to.
    pub(crate) fn field_at(&self, span: Span) -> &str {
        let fields = self.tree().map().unwrap_or_default().iter();
        let mut holds =
            fields.filter(|(_, node)| node.span.start <= span.start && span.end <= node.span.end);
        holds.next().map_or("instruction", |(key, _)| &key.text)
    }

    /// The variables that `api_key` is made of.
    pub(crate) fn key_variables(&self) -> Vec<&str> {
        let place = self.tree().field("api_key").map(|node| node.span);
        let own = self.expansions.iter().filter(|it| Some(it.span) == place);
        own.filter(|it| it.place == Place::Secret).map(|it| it.name.as_str()).collect()
    }

    /// Returns the secrets that are written in the card itself: keys, tokens and headers that no
    /// variable stands for.
    pub fn literal_secrets(&self) -> Vec<String> {
        let mut found = Vec::new();
        literals(self.tree(), Held::Anything, &mut found);
        found
    }

    /// Every other agent that the card names, in order of appearance.
    pub fn references(&self) -> Vec<&AgentRef> {
        self.kind.references()
    }
}

/// The value of a field of a card.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Anything,
    /// Values by names, some of which are those of secrets.
    Named,
    Secret,
}

fn literals(node: &Node, held: Held, found: &mut Vec<String>) {
    for (key, value) in node.map().unwrap_or_default() {
        let plain: String = key.text.to_ascii_lowercase().replace(['_', '-'], "");
        let beneath = match held {
            Held::Secret => Held::Secret,
            Held::Named if is_secret_name(&key.text) => Held::Secret,
            _ if SECRET_FIELDS.contains(&&*plain) => Held::Secret,
            _ if matches!(&*plain, "headers" | "env") => Held::Named,
            _ => Held::Anything,
        };
        literals(value, beneath, found);
    }
    node.list().unwrap_or_default().iter().for_each(|item| literals(item, held, found));
    if let Some(text) = node.text().filter(|text| held == Held::Secret && !text.contains("${")) {
        // Of `Bearer abc` it is the second part that gives something away.
        let token = text.split_once(' ').map(|(_, token)| token.trim());
        found.extend([text].into_iter().chain(token).map(str::to_owned));
    }
}

/// Fields whose value is a secret wherever they stand, without the signs between their words.
const SECRET_FIELDS: &[&str] = &[
    "accesstoken",
    "apikey",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "password",
    "privatekey",
    "secret",
    "token",
];

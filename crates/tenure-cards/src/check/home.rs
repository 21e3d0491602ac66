//! Cards in the folders of a home of fast-agent.

use super::load::{CardLoader, default_of, folder_as_written};
use crate::card::{AgentRef, Card, CardKind};
use crate::project::{TOOL_CARDS, sibling_cards};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl CardLoader<'_> {
    /// Loads a home of fast-agent: its agents, and those that are tools of the default one.
    pub(super) fn home(&mut self, asked: &Path, [agents, tools]: &[PathBuf; 2]) {
        let there = |folder: &PathBuf| folder.is_dir().then(|| folder.clone());
        let folders: Vec<PathBuf> = [agents, tools].into_iter().filter_map(there).collect();
        self.folder(asked, &folders);
        let tools = tools.canonicalize().unwrap_or_else(|_| tools.clone());
        let cards = std::mem::take(&mut self.cards).into_iter();
        let (tools, mut agents): (Vec<Card>, Vec<Card>) =
            cards.partition(|card| card.dir() == tools);
        attach_tools(&mut agents, &tools);
        let helper = |card| Card { tool_only: true, default: false, ..card };
        self.cards = agents.into_iter().chain(tools.into_iter().map(helper)).collect();
    }
}

/// Makes the cards of `tools` tools of the agent that a run without a name would talk to.
fn attach_tools(agents: &mut [Card], tools: &[Card]) {
    let may = |card: &&Card| !card.tool_only && matches!(card.kind, CardKind::Agent(_));
    let default = default_of(agents).filter(may).or_else(|| agents.iter().find(may));
    let Some(name) = default.map(|card| Arc::clone(&card.name)) else { return };
    let Some(parent) = agents.iter_mut().find(|card| card.name == name) else { return };
    let CardKind::Agent(agent) = &mut parent.kind else { return };
    for tool in tools {
        if !agent.agents.iter().any(|known| known.name == tool.name) {
            let (name, field) = (Arc::clone(&tool.name), TOOL_CARDS);
            agent.agents.push(AgentRef { name, field, span: parent.name_span });
        }
    }
}

/// The folders in which the cards are looked for that the card in a file names.
pub(super) fn folders_beside(file: &Path) -> Vec<PathBuf> {
    let own = folder_as_written(file);
    [own.to_owned()].into_iter().chain(sibling_cards(own)).collect()
}

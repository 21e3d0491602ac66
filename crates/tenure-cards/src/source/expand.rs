//! From the arena to the tree: aliases replaced by copies of what they name, merge keys merged.
//!
//! Every copied node and byte is counted before it is made, so the cost is bounded by the limits
//! and not by what the aliases would multiply to.

use std::collections::HashSet;
use std::sync::Arc;

use super::arena::{Arena, Id, RawKind};
use super::faults::Faults;
use super::loader::Stopped;
use super::{Key, MAX_DEPTH, MAX_NODES, MAX_TEXT, Node, Source, Span, Value};
use crate::diagnostic::{Code, Report};

/// The tree of the node `root`.
pub(super) fn expand(
    arena: &Arena,
    root: Id,
    source: &Arc<Source>,
    report: &mut Report,
) -> Result<Node, Stopped> {
    let faults = Faults::new(source, report);
    let mut expansion = Expansion { arena, faults, nodes: 0, text: 0 };
    let tree = expansion.node(root, 0);
    expansion.faults.finish();
    tree
}

struct Expansion<'a> {
    arena: &'a Arena,
    faults: Faults<'a>,
    nodes: usize,
    text: usize,
}

impl Expansion<'_> {
    fn node(&mut self, id: Id, depth: usize) -> Result<Node, Stopped> {
        let span = self.arena.nodes[id].span;
        let arena = self.arena;
        let raw = arena.target(id);
        self.count(1, 0, span)?;
        match &raw.kind {
            RawKind::Scalar { value, raw } => {
                let len = if let Value::Text(text) = value { text.len() } else { raw.len() };
                self.count(0, len, span)?;
                Ok(Node { span, value: value.clone(), raw: raw.clone() })
            }
            RawKind::List(items) => {
                let depth = self.deeper(depth, span)?;
                let items = items.iter().map(|item| self.node(*item, depth));
                Ok(Node::new(span, Value::List(items.collect::<Result<_, _>>()?)))
            }
            RawKind::Map { entries, merge } => {
                let depth = self.deeper(depth, span)?;
                let mut own = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    self.count(0, key.text.len(), key.span)?;
                    own.push((key.clone(), self.node(*value, depth)?));
                }
                if let Some(merge) = merge {
                    let merged = self.node(*merge, depth)?;
                    own = self.merge(own, merged);
                }
                Ok(Node::new(span, Value::Map(own)))
            }
            // The loader closes every collection and resolves every alias before this runs.
            RawKind::Alias(_) | RawKind::Open => Ok(Node::new(span, Value::Null)),
        }
    }

    /// The entries of `merged` that are not in `own`, then `own`. Of several mappings the first
    /// that has a key wins.
    fn merge(&mut self, own: Vec<(Key, Node)>, merged: Node) -> Vec<(Key, Node)> {
        let span = merged.span;
        let maps = match merged.value {
            Value::List(items) => items,
            value => vec![Node::new(span, value)],
        };
        let mut seen: HashSet<String> = own.iter().map(|(key, _)| key.text.clone()).collect();
        let mut entries = Vec::new();
        for map in maps {
            match map.value {
                Value::Map(found) => {
                    let fresh = found.into_iter().filter(|(key, _)| seen.insert(key.text.clone()));
                    entries.extend(fresh);
                }
                value => self.faults.bad_merge(value.kind(), map.span),
            }
        }
        entries.extend(own);
        entries
    }

    fn deeper(&mut self, depth: usize, span: Span) -> Result<usize, Stopped> {
        if depth < MAX_DEPTH {
            return Ok(depth + 1);
        }
        let message =
            format!("lists and mappings are nested more than {MAX_DEPTH} deep through aliases");
        Err(self.faults.stop(Code::TooDeep, span, &message, "flatten it"))
    }

    fn count(&mut self, nodes: usize, text: usize, span: Span) -> Result<(), Stopped> {
        self.nodes += nodes;
        self.text += text;
        if self.nodes <= MAX_NODES && self.text <= MAX_TEXT {
            return Ok(());
        }
        let message = format!(
            "with its aliases expanded the file holds more than {MAX_NODES} values or {} MiB of text",
            MAX_TEXT / (1024 * 1024)
        );
        Err(self.faults.stop(Code::TooManyNodes, span, &message, "use fewer aliases of aliases"))
    }
}

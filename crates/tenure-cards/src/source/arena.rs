//! The YAML as it was written: nodes in the order of the text, aliases not yet expanded.

use super::{Key, Span, Value};

/// The place of a raw node in its arena.
pub(super) type Id = usize;

/// A node before aliases and merge keys are expanded.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) span: Span,
    pub(super) kind: RawKind,
}

/// What a raw node is.
#[derive(Debug)]
pub(super) enum RawKind {
    /// A scalar with its value and, if that is no text, what was written.
    Scalar { value: Value, raw: Box<str> },
    /// A list that is complete.
    List(Vec<Id>),
    /// A mapping that is complete; each key once.
    Map { entries: Vec<(Key, Id)>, merge: Option<Id> },
    /// Another name for an earlier node.
    Alias(Id),
    /// A list or mapping that is still being read.
    Open,
}

/// The whole document.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pub(super) nodes: Vec<Raw>,
}

impl Arena {
    pub(super) fn add(&mut self, span: Span, kind: RawKind) -> Id {
        self.nodes.push(Raw { span, kind });
        self.nodes.len() - 1
    }

    /// The node that an alias, or a chain of them, stands for.
    pub(super) fn target(&self, mut id: Id) -> &Raw {
        // An alias only ever names an earlier node, so this ends.
        while let RawKind::Alias(next) = self.nodes[id].kind {
            id = next;
        }
        &self.nodes[id]
    }
}

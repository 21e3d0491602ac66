//! Cleaning a text while it is made.

use super::detector::Strategy;
use super::fold::{Folded, folds};
use super::scan::{Scanner, Source};
use super::trace::Trace;
use std::sync::Arc;
use tenure_core::hook::{FilteredText, TextFilter};

/// Lets a text through up to where something may begin that has to be taken out.
#[derive(Clone, Debug)]
pub(super) struct Filter(pub(super) Arc<Scanner>);

impl TextFilter for Filter {
    fn open(&self) -> Box<dyn FilteredText> {
        let own = self.0.rules.iter().filter_map(|rule| match &rule.source {
            Source::Own(custom) => Some(custom.trace.clone()),
            Source::Known(_) => None,
        });
        Box::new(Flowing {
            traces: own.collect(),
            folded: None,
            scanner: self.0.clone(),
            text: String::new(),
            done: 0,
            next: 0,
            blocked: false,
        })
    }
}

/// One text on its way.
struct Flowing {
    scanner: Arc<Scanner>,
    traces: Vec<Trace>,
    /// The plain copy of the text, from when it is another one, and what follows it.
    folded: Option<(Folded, Vec<Trace>)>,
    /// All of it so far: what is found depends on what stands before it.
    text: String,
    /// How much of it is settled, and out.
    done: usize,
    /// How long it has to be before it is worth looking again.
    next: usize,
    blocked: bool,
}

impl FilteredText for Flowing {
    fn push(&mut self, piece: &str) -> String {
        if self.blocked {
            return String::new();
        }
        self.fold(piece);
        let from = self.text.len();
        self.text.push_str(piece);
        for trace in &mut self.traces {
            trace.follow(piece.as_bytes(), from);
        }
        if self.text.len() < self.next {
            return String::new();
        }
        let out = self.settle();
        // What is held back is looked at again when there is a good part more of it, so that a long
        // stretch is not gone over with every piece.
        let held = self.text.len() - self.done;
        self.next = if held < 1024 { 0 } else { self.text.len() + held / 4 };
        out
    }
}

impl Flowing {
    /// Goes on with the plain copy, before the text does.
    fn fold(&mut self, piece: &str) {
        if self.folded.is_none() && folds(piece) {
            // Up to here they were the same.
            self.folded = Some((Folded::copy(&self.text), self.traces.clone()));
        }
        if let Some((folded, traces)) = &mut self.folded {
            let from = folded.text().len();
            folded.push(piece);
            for trace in traces {
                trace.follow(&folded.text().as_bytes()[from..], from);
            }
        }
    }

    /// Where something begins that may still become something, or more, when the text goes on.
    fn undecided(&self, text: &str, done: usize, traces: &[Trace]) -> usize {
        let known = self.scanner.rules.iter().filter_map(|rule| match &rule.source {
            Source::Known(detector) => Some(detector.open(text, done)),
            Source::Own(_) => None,
        });
        let own = traces.iter().filter_map(Trace::open);
        let open = known.chain(own).fold(text.len(), usize::min).max(done);
        text.floor_char_boundary(open)
    }

    /// What can no longer change, as it may go out.
    fn settle(&mut self) -> String {
        let (text, done) = (&self.text, self.done);
        let mut end = self.undecided(text, done, &self.traces);
        if let Some((folded, traces)) = &self.folded {
            let open = self.undecided(folded.text(), folded.place(done), traces);
            end = end.min(folded.start(open));
        }
        let folded = self.folded.as_ref().map(|(folded, _)| folded);
        let mut hits = self.scanner.hits(text, folded, done);
        // What is undecided may become part of something that is found already.
        while let Some(hit) = hits.last()
            && hit.end > end
        {
            end = end.min(hit.start);
            hits.pop();
        }
        let mut out = String::new();
        for hit in hits {
            out.push_str(&text[self.done..hit.start]);
            self.done = hit.end;
            if self.scanner.rule(&hit).strategy == Strategy::Block {
                self.blocked = true;
                return out;
            }
            out.push_str(&self.scanner.replaced(text, &hit));
        }
        out.push_str(&text[self.done..end]);
        self.done = end;
        out
    }
}

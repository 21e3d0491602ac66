//! The values that a redactor knows, ready to be looked for.

use super::Shape;
use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// Anything shorter is too likely to be a part of something else.
const SHORTEST: usize = 6;

/// A further change to texts that a guard asks for, by where they go: `None` leaves a text as it is.
pub(super) type Pass = Arc<dyn Fn(&str, PassScope) -> Option<String> + Send + Sync>;

/// The values and passes of a redactor at one moment. A new one is made when something is learnt.
#[derive(Clone, Default)]
pub(super) struct Plan {
    /// The longest first, each once.
    pub(super) values: Vec<Box<str>>,
    finder: Option<AhoCorasick>,
    pub(super) ignores_shapes: bool,
    pub(super) passes: Vec<NamedPass>,
}

/// A pass by the name of what asked for it.
#[derive(Clone)]
pub(super) struct NamedPass {
    pub(super) name: Box<str>,
    pub(super) scope: PassScope,
    pub(super) pass: Pass,
}

/// The sinks whose texts a pass changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassScope {
    /// Whatever is shown, logged, sent or exported, but not the record of a run: for what an agent goes
    /// on using, and must find again when it is resumed.
    Shown,
    /// The record too. What is taken out of it is taken out of the run.
    Recorded,
}

/// The texts that tell which shapes there may be in a text, and which shape each is a sign of.
static SIGNS: LazyLock<Option<(AhoCorasick, Vec<Shape>)>> = LazyLock::new(|| {
    let signs: Vec<(&str, Shape)> = Shape::ALL
        .into_iter()
        .flat_map(|shape| shape.signs().into_iter().map(move |sign| (sign, shape)))
        .collect();
    let finder = AhoCorasick::new(signs.iter().map(|(sign, _)| *sign)).ok()?;
    Some((finder, signs.into_iter().map(|(_, shape)| shape).collect()))
});

impl Plan {
    /// Returns a plan that knows these values too, or `None` if it knows them all.
    pub(super) fn with_values<'v>(&self, values: impl Iterator<Item = &'v str>) -> Option<Self> {
        let mut all = self.values.clone();
        for value in values {
            let value = value.trim();
            let lines = value.lines().map(str::trim).filter(|line| *line != value);
            for part in [value].into_iter().chain(lines) {
                if part.chars().count() >= SHORTEST {
                    all.extend(spellings(part));
                }
            }
        }
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        if all.len() == self.values.len() {
            return None;
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(all.iter().map(|value| value.as_bytes()));
        Some(Self { values: all, finder: finder.ok(), ..self.clone() })
    }

    /// Returns the stretches of a text that are secret, in their order; none of them overlap.
    pub(super) fn found(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        match &self.finder {
            Some(finder) => found.extend(finder.find_iter(text).map(|it| it.range())),
            None if self.values.is_empty() => {}
            // There are more values than can be looked for: nothing may be shown.
            None => return Vec::from([Range { start: 0, end: text.len() }]),
        }
        if !self.ignores_shapes {
            for shape in shapes_in(text) {
                shape.find(text, 0, &mut |start, end| found.push(start..end));
            }
        }
        if found.len() < 2 {
            return found;
        }
        found.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match joined.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }
}

/// Returns the shapes that there may be in a text: those of which there is a sign.
fn shapes_in(text: &str) -> impl Iterator<Item = Shape> {
    let mut seen = [false; Shape::ALL.len()];
    if let Some((finder, shapes)) = &*SIGNS
        && finder.is_match(text)
    {
        for found in finder.find_overlapping_iter(text) {
            seen[shapes[found.pattern().as_usize()] as usize] = true;
            if seen == [true; Shape::ALL.len()] {
                break;
            }
        }
    }
    Shape::ALL.into_iter().filter(move |shape| seen[*shape as usize])
}

/// Returns a value as it is, as it reads inside JSON, and as it stands in an address.
fn spellings(value: &str) -> [Box<str>; 3] {
    let json = Value::from(value).to_string();
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    [value.into(), json[1..json.len() - 1].into(), encoded.into()]
}

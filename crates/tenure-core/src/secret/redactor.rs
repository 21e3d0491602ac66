//! The one mechanism that takes secrets out of what is shown, written, sent or stored.

use super::Shape;
use super::armour::{KeyLine, key_line};
use super::plan::{NamedPass, PassScope, Plan};
use crate::sync::Mutex;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The text that stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// The secrets of a project, taken out of whatever it shows, writes, sends or stores.
///
/// A known value is found as it is, as it reads inside JSON, as it stands in an address, and by its
/// lines if it has several; values of less than six characters are left alone. A value that nobody
/// named is found if it looks like a secret ([`Shape`]). One that was encoded otherwise, cut or
/// spelled backwards is not found: this keeps secrets from being shown by accident, and does not
/// stop a hook that wants to give them away.
///
/// Clones are one redactor: what one of them learns, all of them hide from then on. Looking through a
/// text takes time that grows with its length and, but for what is found, with nothing else.
///
/// ```
/// use tenure_core::secret::Redactor;
///
/// let redactor = Redactor::of(["sesame-12345", "short"]);
/// assert_eq!(redactor.redact("it is sesame-12345, short"), "it is [redacted], short");
/// let url = redactor.redact("see postgres://me:hunter2@db/x").into_owned();
/// assert_eq!(url, "see postgres://me:[redacted]@db/x");
/// ```
#[derive(Clone, Default)]
pub struct Redactor(Arc<Shared>);

#[derive(Default)]
struct Shared {
    plan: Mutex<Arc<Plan>>,
    /// Sources of lines that are in the middle of a private key.
    open: Mutex<Vec<Arc<str>>>,
}

impl Redactor {
    /// Returns a redactor that knows no values, and what secrets look like.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a redactor that knows these values, and what secrets look like.
    pub fn of<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let redactor = Self::new();
        redactor.learn(values);
        redactor
    }

    /// Hides these values from now on, in every sink that has this redactor.
    pub fn learn<S: AsRef<str>>(&self, values: impl IntoIterator<Item = S>) {
        let values: Vec<S> = values.into_iter().collect();
        let mut plan = self.0.plan.lock();
        if let Some(more) = plan.with_values(values.iter().map(AsRef::as_ref)) {
            *plan = Arc::new(more);
        }
    }

    /// Hides only known values from now on, and nothing because of the way that it looks.
    pub fn ignore_shapes(&self) {
        let mut plan = self.0.plan.lock();
        let mut next = (**plan).clone();
        next.ignores_shapes = true;
        *plan = Arc::new(next);
    }

    /// Puts the texts of these sinks through `pass` from now on; one of the same name is replaced. A
    /// pass is told where a text goes, returns `None` for one that stays as it is, and leaves alone what
    /// it has changed already.
    pub fn add_pass(
        &self,
        name: &str,
        scope: PassScope,
        pass: impl Fn(&str, PassScope) -> Option<String> + Send + Sync + 'static,
    ) {
        let mut plan = self.0.plan.lock();
        let mut next = (**plan).clone();
        next.passes.retain(|known| *known.name != *name);
        next.passes.push(NamedPass { name: name.into(), scope, pass: Arc::new(pass) });
        *plan = Arc::new(next);
    }

    /// Returns `text` with `[redacted]` in the place of each secret. Where several begin at one place
    /// the longest counts.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        redact(&self.plan(), PassScope::Shown, text)
    }

    /// Does the same in place. Returns `true` if there was a secret.
    pub fn redact_text(&self, text: &mut String) -> bool {
        replace(&self.plan(), PassScope::Shown, text)
    }

    /// Does the same for a line that `source` printed. A private key has several lines, none of which looks
    /// like one: they are hidden from its begin to its end.
    pub fn redact_line(&self, source: &Arc<str>, line: &mut String) -> bool {
        let plan = self.plan();
        let mut open = self.0.open.lock();
        let place = open.iter().position(|known| known == source);
        let part =
            if plan.ignores_shapes { KeyLine::None } else { key_line(line, place.is_some()) };
        match (part, place) {
            (KeyLine::Begin, None) => open.push(source.clone()),
            (KeyLine::End | KeyLine::None, Some(place)) => drop(open.swap_remove(place)),
            _ => {}
        }
        drop(open);
        if part == KeyLine::Body {
            *line = REDACTED.to_owned();
            return true;
        }
        replace(&plan, PassScope::Shown, line)
    }

    /// Does the same for every text in `value`, the names of its fields included. Returns `true` if
    /// there was a secret.
    pub fn redact_json(&self, value: &mut Value) -> bool {
        redact_json(&self.plan(), PassScope::Shown, value)
    }

    /// Does the same for what goes into the record of a run, where only passes count that may take
    /// something out of the run itself.
    pub fn redact_record(&self, value: &mut Value) -> bool {
        redact_json(&self.plan(), PassScope::Recorded, value)
    }

    /// Does the same for a text.
    pub fn redact_recorded_text(&self, text: &mut String) -> bool {
        replace(&self.plan(), PassScope::Recorded, text)
    }

    /// Returns how many bytes at the end of `text` could be the beginning of a secret, so that only
    /// what follows tells. For text that is shown while it comes.
    pub fn unfinished(&self, text: &str) -> usize {
        let plan = self.plan();
        let known = plan.values.iter().filter_map(|value| beginning(value, text)).max();
        let shaped = (!plan.ignores_shapes)
            .then(|| Shape::ALL.into_iter().filter_map(|shape| shape.open(text, 0)).min())
            .flatten();
        known.unwrap_or(0).max(shaped.map_or(0, |start| text.len() - start))
    }

    fn plan(&self) -> Arc<Plan> {
        self.0.plan.lock().clone()
    }
}

fn redact<'t>(plan: &Plan, scope: PassScope, text: &'t str) -> Cow<'t, str> {
    let found = plan.found(text);
    let mut shown = Cow::Borrowed(text);
    if !found.is_empty() {
        let mut out = String::with_capacity(text.len());
        let mut seen = 0;
        for range in found {
            out.push_str(&text[seen..range.start]);
            out.push_str(REDACTED);
            seen = range.end;
        }
        out.push_str(&text[seen..]);
        shown = Cow::Owned(out);
    }
    for known in plan.passes.iter().filter(|known| known.scope >= scope) {
        if let Some(changed) = (known.pass)(&shown, scope) {
            shown = Cow::Owned(changed);
        }
    }
    shown
}

fn replace(plan: &Plan, scope: PassScope, text: &mut String) -> bool {
    match redact(plan, scope, text) {
        Cow::Owned(redacted) => {
            *text = redacted;
            true
        }
        Cow::Borrowed(_) => false,
    }
}

fn redact_json(plan: &Plan, scope: PassScope, value: &mut Value) -> bool {
    match value {
        Value::String(text) => replace(plan, scope, text),
        Value::Array(items) => {
            items.iter_mut().fold(false, |changed, item| redact_json(plan, scope, item) | changed)
        }
        Value::Object(fields) => {
            let mut changed = fields
                .values_mut()
                .fold(false, |changed, it| redact_json(plan, scope, it) | changed);
            if fields.keys().any(|name| matches!(redact(plan, scope, name), Cow::Owned(_))) {
                let fields = std::mem::take(fields);
                let renamed = fields
                    .into_iter()
                    .map(|(name, it)| (redact(plan, scope, &name).into_owned(), it));
                *value = Value::Object(renamed.collect());
                changed = true;
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The length of the longest beginning of `value`, but not all of it, that `text` ends with.
fn beginning(value: &str, text: &str) -> Option<usize> {
    let longest = text.len().min(value.len() - 1);
    (1..=longest)
        .rev()
        .filter(|length| value.is_char_boundary(*length))
        .find(|length| text.ends_with(&value[..*length]))
}

/// Shows how many values it knows, and none of them.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.plan().values.len())
    }
}

//! What is on record of a run, in memory: steps by their names, and what began and ended.

use crate::journal::Row;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tenure_core::step::{ScopeKind, ScopeRecord, StepKey};

/// A step's name, whatever its input.
struct Name(StepKey);

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same_step(&other.0)
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.path, &self.0.kind, &self.0.name, self.0.ordinal).hash(state);
    }
}

/// A step that is on record.
pub(super) struct Recorded {
    pub(super) seq: u64,
    pub(super) input: u64,
    /// Its result as it is stored, until it is served. Then it is read from the file if it is needed
    /// again.
    value: Option<Box<str>>,
    /// The id of the step in whose effect it was taken.
    within: Option<Box<str>>,
    served: bool,
}

enum Step {
    /// Its effect runs now.
    Running,
    Recorded(Recorded),
}

/// What is known of a scope.
struct Scope {
    record: ScopeRecord,
    ended: bool,
}

/// What a step's name is found to mean.
pub(super) enum Found {
    /// It is not on record, and from here on it runs.
    New,
    /// It runs already.
    Running,
    /// It is on record with this input, at this place, with this result. The result was served
    /// before if it is not here.
    Recorded { seq: u64, input: u64, detail: Arc<str>, value: Option<Box<str>> },
}

#[derive(Default)]
pub(super) struct Table {
    steps: HashMap<Name, Step>,
    scopes: HashMap<Arc<str>, Scope>,
    /// The announcements by their names, and of each its places.
    announced: HashMap<Box<str>, HashSet<Box<str>>>,
    /// How many records were there when the run was taken up again.
    pub(super) loaded: usize,
}

impl Table {
    /// A step that an earlier life recorded. The first record of a step counts.
    pub(super) fn load(&mut self, row: Row) {
        let Some(key) = row.key() else { return };
        let (seq, input, value, within) = (row.seq, key.input, row.data, row.cause);
        if let Entry::Vacant(place) = self.steps.entry(Name(key)) {
            place.insert(Step::Recorded(Recorded { seq, input, value, within, served: false }));
            self.loaded += 1;
        }
    }

    /// Looks a step up. What is served is served whole: nothing of it stays in memory.
    pub(super) fn find(&mut self, key: &StepKey) -> Found {
        match self.steps.entry(Name(key.clone())) {
            Entry::Vacant(place) => {
                place.insert(Step::Running);
                Found::New
            }
            Entry::Occupied(mut step) => {
                let detail = step.key().0.detail.clone();
                let Step::Recorded(step) = step.get_mut() else { return Found::Running };
                let same = step.input == key.input;
                step.served |= same;
                let value = if same { step.value.take() } else { step.value.clone() };
                Found::Recorded { seq: step.seq, input: step.input, detail, value }
            }
        }
    }

    /// The effect of a step came to nothing.
    pub(super) fn give_up(&mut self, key: &StepKey) {
        if let Entry::Occupied(step) = self.steps.entry(Name(key.clone()))
            && matches!(step.get(), Step::Running)
        {
            step.remove();
        }
    }

    /// A step is on record from now on.
    pub(super) fn record(&mut self, key: StepKey, seq: u64) {
        let input = key.input;
        let step = Recorded { seq, input, value: None, within: None, served: true };
        self.steps.insert(Name(key), Step::Recorded(step));
    }

    /// The first step of an earlier life that the run has come past without asking for it.
    ///
    /// What was taken in the effect of a step that was served is not asked for again. Nor need it be
    /// what a wrap does on its way, which is code that runs again, nor what a dead instance was told.
    pub(super) fn passed_over(&self, id: impl Fn(&StepKey) -> String) -> Option<(StepKey, u64)> {
        let left = self.steps.iter().filter_map(|(name, step)| match step {
            Step::Recorded(step) if !step.served => Some((&name.0, step)),
            _ => None,
        });
        let mut left: Vec<_> = left.filter(|(key, _)| must_come(key)).collect();
        if left.is_empty() {
            return None;
        }
        left.sort_unstable_by_key(|(_, step)| step.seq);
        let by_id: HashMap<String, &Recorded> = self
            .steps
            .iter()
            .filter_map(|(name, step)| match step {
                Step::Recorded(step) => Some((id(&name.0), step)),
                Step::Running => None,
            })
            .collect();
        let is_within_served = |step: &Recorded| {
            let mut within = step.within.as_deref();
            // A record has no circles, and one that has must not hang whoever reads it.
            for _ in 0..by_id.len() {
                match within.and_then(|id| by_id.get(id)) {
                    Some(outer) if outer.served => return true,
                    Some(outer) => within = outer.within.as_deref(),
                    None => return false,
                }
            }
            false
        };
        let (key, step) = left.into_iter().find(|(_, step)| !is_within_served(step))?;
        Some((key.clone(), step.seq))
    }

    /// A scope began, or has passed more entries. Whether that is news.
    pub(super) fn begin(&mut self, scope: &ScopeRecord) -> bool {
        match self.scopes.entry(scope.id.clone()) {
            Entry::Vacant(place) => {
                place.insert(Scope { record: scope.clone(), ended: false });
                true
            }
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().record;
                let news = scope.entered > known.entered;
                known.entered = known.entered.max(scope.entered);
                news
            }
        }
    }

    /// A scope ended. Whether that is news: the first end counts, and of what never began, such as
    /// an instance whose startup was given up before its first hook, there is none.
    pub(super) fn end(&mut self, scope: &ScopeRecord) -> bool {
        let known = self.scopes.get_mut(&scope.id);
        known.is_some_and(|known| !std::mem::replace(&mut known.ended, true))
    }

    /// An end could not be recorded.
    pub(super) fn unend(&mut self, id: &str) {
        if let Some(scope) = self.scopes.get_mut(id) {
            scope.ended = false;
        }
    }

    /// An end is on record, by its name.
    pub(super) fn load_end(&mut self, id: &str) {
        if let Some(scope) = self.scopes.get_mut(id) {
            scope.ended = true;
        }
    }

    /// The instances at this place that earlier lives have left.
    pub(super) fn unended(&self, path: &str, life: u32) -> Vec<ScopeRecord> {
        let left = self.scopes.values().filter(|scope| {
            let record = &scope.record;
            let is_here = record.kind == ScopeKind::Instance && &*record.path == path;
            is_here && record.life < life && !scope.ended
        });
        let mut left: Vec<_> = left.map(|scope| scope.record.clone()).collect();
        left.sort_by_key(|scope| scope.life);
        left
    }

    /// An event is announced at this place. Returns `true` if it was not announced there before.
    pub(super) fn announce(&mut self, place: &str, name: &str) -> bool {
        match self.announced.get_mut(name) {
            Some(places) => places.insert(place.into()),
            None => self.announced.entry(name.into()).or_default().insert(place.into()),
        }
    }

    /// Everything that has begun and not ended, inner ones first.
    pub(super) fn open(&self) -> Vec<ScopeRecord> {
        let open = self.scopes.values().filter(|scope| !scope.ended);
        let mut open: Vec<_> = open.map(|scope| scope.record.clone()).collect();
        let depth = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
        let rank = |kind| match kind {
            ScopeKind::Turn => 0,
            ScopeKind::Chat => 1,
            _ => 2,
        };
        open.sort_by(|a, b| {
            let order = depth(&b.path).cmp(&depth(&a.path));
            order.then(rank(a.kind).cmp(&rank(b.kind))).then(a.id.cmp(&b.id))
        });
        open
    }
}

/// Whether a run that is not over before it comes to this step has to take it.
fn must_come(key: &StepKey) -> bool {
    match &*key.kind {
        "ask" | "intent" | "on_shutdown" => false,
        "step" => !key.name.starts_with("wrap_") && !key.name.starts_with("on_"),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, name: &str) -> StepKey {
        StepKey::new("turn", kind, name, 0, 7)
    }

    fn row(seq: u64, key: &StepKey, within: Option<&StepKey>) -> Row {
        Row {
            seq,
            time: 0,
            of: "step.recorded".into(),
            agent: None,
            instance: None,
            trace: None,
            cause: within.map(|outer| id(outer).into()),
            path: Some((&*key.path).into()),
            kind: Some((&*key.kind).into()),
            name: Some((&*key.name).into()),
            ordinal: Some(key.ordinal),
            input: Some(key.input),
            detail: None,
            data: Some("\"then\"".into()),
        }
    }

    fn id(key: &StepKey) -> String {
        key.to_string()
    }

    #[test]
    fn a_step_runs_once_at_a_time_and_is_served_once_from_memory() {
        let mut table = Table::default();
        let it = key("tool", "pay");
        assert!(matches!(table.find(&it), Found::New));
        assert!(matches!(table.find(&it), Found::Running));
        table.give_up(&it);
        assert!(matches!(table.find(&it), Found::New));
        table.record(it.clone(), 4);
        assert!(matches!(table.find(&it), Found::Recorded { seq: 4, input: 7, value: None, .. }));
    }

    #[test]
    fn what_was_taken_in_a_served_step_need_not_come_again() {
        let mut table = Table::default();
        let (hook, model) = (key("before_agent", "audit"), key("model", "model"));
        table.load(row(1, &key("step", "before_agent@0/audit/load"), Some(&hook)));
        table.load(row(2, &hook, None));
        table.load(row(3, &model, None));
        assert_eq!(table.passed_over(id).map(|(_, seq)| seq), Some(1));
        table.find(&hook);
        assert_eq!(table.passed_over(id).map(|(_, seq)| seq), Some(3));
        table.find(&model);
        assert!(table.passed_over(id).is_none());
    }

    #[test]
    fn an_announcement_is_known_by_its_place_and_its_name() {
        let mut table = Table::default();
        assert!(table.announce("1:host", "select_speaker"));
        assert!(!table.announce("1:host", "select_speaker"));
        assert!(table.announce("1:host", "orchestrator.execute"));
        assert!(table.announce("2:host", "select_speaker"));
    }

    #[test]
    fn a_record_of_another_input_is_not_served() {
        let mut table = Table::default();
        let mut other = key("model", "model");
        table.load(row(1, &other, None));
        other.input = 8;
        let Found::Recorded { input: 7, value: Some(value), .. } = table.find(&other) else {
            panic!("it is on record with the input 7");
        };
        assert_eq!(&*value, "\"then\"");
        assert!(table.passed_over(id).is_some());
    }
}

//! What really happened against what is on record.

use super::view::{View, marks};
use super::{Finding, Run};
use crate::crash::case::Life;
use crate::crash::ledger::{Deed, Line};
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::step::StepKey;
use tenure_core::tool::Effect;

/// How a turn is known to its model: by the id of a step that nobody takes.
fn token(run: &Run<'_>, path: &str) -> String {
    StepKey::new(path, "wrap_model_call", "", 0, 0).id(run.scenario.run())
}

/// An idempotency key is `run/path/step/call`.
fn path_of(key: &str) -> &str {
    let within = key.split_once('/').map_or("", |(_, rest)| rest);
    let mut parts = within.rsplitn(3, '/');
    parts.nth(2).unwrap_or_default()
}

/// Nothing that was on record when a life began was done again in it, and nothing twice in one.
pub(super) fn nothing_recorded_is_done_again(run: &Run<'_>, found: &mut Vec<Finding>) {
    let undisturbed = run.undisturbed();
    let models = undisturbed.steps.iter().filter(|step| &*step.key.kind == "model");
    let paths: BTreeMap<String, &str> =
        models.map(|step| (token(run, &step.key.path), &*step.key.path)).collect();
    let labels: BTreeMap<&str, &str> = run
        .lines()
        .filter_map(|(_, line)| match &line.deed {
            Deed::Step { label, mark } => Some((mark.as_str(), label.as_str())),
            _ => None,
        })
        .collect();
    let id = run.scenario.run();
    for (number, life) in run.lives.iter().enumerate() {
        let empty = Default::default();
        let before = life.before.runs.get(&run.scenario).unwrap_or(&empty);
        let view = View::of(id, before);
        let recorded = view.ids();
        let mut given = BTreeSet::new();
        view.steps.iter().for_each(|step| marks(step.value, &mut given));
        let taken: BTreeSet<&str> =
            given.iter().filter_map(|mark| labels.get(mark).copied()).collect();
        let mut done = BTreeSet::new();
        for line in lines_of(run, life) {
            let (step, what) = match &line.deed {
                Deed::Tool { tool, call, key, .. } => {
                    let key = StepKey::new(path_of(key), "tool", format!("{tool}:{call}"), 0, 0);
                    (key.id(id), format!("tool {key}"))
                }
                Deed::Model { turn, call } => {
                    let Some(path) = paths.get(turn) else {
                        found.push(format!(
                            "a model was called in a turn that is unknown: {line:?}"
                        ));
                        continue;
                    };
                    let ordinal = u32::try_from(*call).unwrap_or(u32::MAX);
                    let key = StepKey::new(*path, "model", "model", ordinal, 0);
                    (key.id(id), format!("model {key}"))
                }
                Deed::Hook { point, .. } if point == "on_start" => continue,
                Deed::Hook { point, hook, delivery, of, .. } => {
                    (delivery.clone(), format!("{point} of {hook} ({of})"))
                }
                Deed::Step { label, .. } => {
                    if taken.contains(label.as_str()) {
                        found.push(format!("life {}: step {label} ran again", number + 1));
                    }
                    (label.clone(), format!("step {label}"))
                }
            };
            if recorded.contains(step.as_str()) {
                found
                    .push(format!("life {}: {what} was on record, and was done again", number + 1));
            }
            if !done.insert(step) {
                found.push(format!("life {}: {what} was done twice", number + 1));
            }
        }
    }
}

/// How often tools ran is within the promise of their class.
pub(super) fn tools_keep_their_promise(run: &Run<'_>, found: &mut Vec<Finding>) {
    let made = |lines: &mut dyn Iterator<Item = &Line>| {
        let mut made: BTreeMap<String, (Effect, String, usize)> = BTreeMap::new();
        for line in lines {
            if let Deed::Tool { key, class, call, tool } = &line.deed {
                let what = format!("{tool}:{call} at `{}`", path_of(key));
                made.entry(key.clone()).or_insert((*class, what, 0)).2 += 1;
            }
        }
        made
    };
    let now = made(&mut run.lines().map(|(_, line)| line));
    let then = made(&mut run.undisturbed_lines.iter());
    for (key, (class, what, count)) in &now {
        if !then.contains_key(key) {
            found.push(format!("{what} ran with the key {key}, which no call of the run has"));
        }
        let allowed = run.allowed(key);
        if *class == Effect::AtMostOnce && *count > 1 + allowed {
            found.push(format!(
                "{what} may run once, and ran {count} times; {allowed} times a person allowed it"
            ));
        }
    }
    if run.given_up.is_some() {
        return;
    }
    for (key, (class, what, _)) in &then {
        if *class != Effect::AtMostOnce && !now.contains_key(key) {
            found.push(format!("{what} never ran"));
        }
        // Nobody but a person may say what came of it.
        if *class == Effect::AtMostOnce && !now.contains_key(key) && !run.was_told(key) {
            found.push(format!("{what} never ran, and nobody said what came of it"));
        }
    }
}

/// Ends are delivered at least once, under one id whenever that happens, and are on record then.
pub(super) fn ends_are_delivered(run: &Run<'_>, view: &View<'_>, found: &mut Vec<Finding>) {
    let mut ids: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut ofs: BTreeMap<&str, BTreeSet<(&str, &str, &str)>> = BTreeMap::new();
    let mut outcomes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut started, mut stopped) = (BTreeMap::new(), BTreeSet::new());
    for (number, line) in run.lines() {
        let Deed::Hook { point, hook, of, delivery, outcome, resumed } = &line.deed else {
            continue;
        };
        let is_known = run.lives[number].before.runs.contains_key(&run.scenario);
        match point.as_str() {
            "on_start" => {
                if *resumed != is_known {
                    found.push(format!(
                        "life {}: on_start of {of} has resumed = {resumed}, and the run {}",
                        number + 1,
                        if is_known { "was on record" } else { "is new" }
                    ));
                }
                if started.insert((hook, of), number).is_some() {
                    found.push(format!("on_start of {hook} was called twice for instance {of}"));
                }
            }
            "on_shutdown" | "after_agent" | "after_chat" => {
                let mut of = of;
                if of.contains("is lost") {
                    if view.has_begin_of(delivery) {
                        found.push(format!("life {}: {point} of {hook}: {of}", number + 1));
                    }
                    // Nothing is known of what the begin did that was not recorded.
                    of = delivery;
                }
                let what = (point.as_str(), hook.as_str(), of.as_str());
                ids.entry(what).or_default().insert(delivery);
                ofs.entry(delivery).or_default().insert(what);
                if point == "on_shutdown" {
                    stopped.insert((hook, of));
                    let crashed = outcome.as_deref() == Some("crashed");
                    // Of one that died in its first hook nobody knows.
                    let began = started.get(&(hook, of));
                    if began.is_some_and(|began| crashed != (*began < number)) {
                        found.push(format!(
                            "life {}: on_shutdown of instance {of} of life {began:?} with {outcome:?}",
                            number + 1,
                        ));
                    }
                } else if let Some(outcome) = outcome {
                    outcomes.entry(delivery).or_default().insert(outcome);
                }
            }
            _ => {}
        }
    }
    for (what, ids) in ids.iter().filter(|(_, ids)| ids.len() > 1) {
        found.push(format!("{what:?} was delivered under {} ids: {ids:?}", ids.len()));
    }
    for (id, whats) in ofs.iter().filter(|(_, whats)| whats.len() > 1) {
        found.push(format!("the delivery id {id} was used for {} ends: {whats:?}", whats.len()));
    }
    for (id, outcomes) in outcomes.iter().filter(|(_, outcomes)| outcomes.len() > 1) {
        found.push(format!("delivery {id} ({:?}) had several outcomes: {outcomes:?}", ofs[id]));
    }
    for ((hook, instance), number) in &started {
        if !stopped.contains(&(hook, instance)) {
            found.push(format!(
                "instance {instance} was started in life {} (hook {hook}), and never shut down",
                number + 1
            ));
        }
    }
    let recorded: BTreeMap<&str, &StepKey> = view
        .steps
        .iter()
        .filter(|step| step.key.is_end())
        .map(|step| (step.id.as_str(), step.key))
        .collect();
    for (id, key) in &recorded {
        if !ofs.contains_key(id) {
            found.push(format!("{key} is on record, and its hook was never called"));
        }
    }
    for (id, whats) in &ofs {
        if !recorded.contains_key(id) {
            found.push(format!("{whats:?} was delivered, and is not on record"));
        }
    }
}

/// A run that is given up does nothing more but its ends.
pub(super) fn given_up_is_given_up(run: &Run<'_>, found: &mut Vec<Finding>) {
    for (number, line) in run.lines() {
        if !run.lives[number].gives_up.contains(&run.scenario) {
            continue;
        }
        let is_end = match &line.deed {
            Deed::Hook { point, .. } => !point.starts_with("before_") && point != "after_model",
            _ => false,
        };
        if !is_end {
            found.push(format!("life {} gave the run up, and did {:?}", number + 1, line.deed));
        }
    }
}

fn lines_of<'a>(run: &Run<'_>, life: &'a Life) -> impl Iterator<Item = &'a Line> + use<'a> {
    let scenario = run.scenario;
    life.lines.iter().filter(move |line| line.scenario == scenario.name())
}

impl Run<'_> {
    /// What the run did, and in which life.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &Line)> {
        let lives = self.lives.iter().enumerate();
        lives.flat_map(|(number, life)| lines_of(self, life).map(move |line| (number, line)))
    }

    /// How often a person allowed a call to be made once more.
    fn allowed(&self, key: &str) -> usize {
        self.asked_of(key).filter(|question| question.allows_another()).count()
    }

    /// Whether a person said what came of a call.
    fn was_told(&self, key: &str) -> bool {
        self.asked_of(key).any(|question| !question.allows_another())
    }

    fn asked_of(&self, key: &str) -> impl Iterator<Item = &crate::crash::subject::Question> {
        let questions = self.after.questions.iter().filter(|it| it.is_of_unknown_outcome());
        let (path, call) = (path_of(key).to_owned(), key.rsplit('/').next().unwrap_or_default());
        let call = call.to_owned();
        questions.filter(move |question| {
            question.call() == Some(&call) && question.path.as_deref() == Some(&path)
        })
    }
}

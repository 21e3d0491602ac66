//! The record against itself and against that of the undisturbed run.

use super::view::{View, short, value_of};
use super::{Finding, Run};
use crate::crash::subject::Recorded;
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::step::StepKey;

/// Nothing that was on record is gone or different later, and no row is missing in between.
pub(super) fn only_grows(run: &Run<'_>, found: &mut Vec<Finding>) {
    let mut states: Vec<&Recorded> =
        run.lives.iter().filter_map(|life| life.before.runs.get(&run.scenario)).collect();
    states.push(run.after);
    for pair in states.windows(2) {
        let (then, now) = (&pair[0].entries, &pair[1].entries);
        let kept = then.iter().zip(now).take_while(|(then, now)| then == now).count();
        if kept < then.len() {
            found.push(format!(
                "row {} was on record, and is gone or different: {:?}",
                kept + 1,
                then[kept]
            ));
        }
    }
    let gap = run.after.entries.iter().zip(1..).find(|(entry, seq)| entry.seq != *seq);
    if let Some((entry, expected)) = gap {
        found.push(format!("row {expected} is missing; there is row {}", entry.seq));
    }
}

/// Each step is on record once.
pub(super) fn steps_are_recorded_once(view: &View<'_>, found: &mut Vec<Finding>) {
    let mut seen = BTreeMap::new();
    for step in &view.steps {
        if let Some(first) = seen.insert(step.place(), step.seq) {
            found.push(format!("step {} is on record twice: {first} and {}", step.key, step.seq));
        }
    }
}

/// Every scope that began has one end, with the outcome that it should have.
pub(super) fn scopes_end_once(run: &Run<'_>, view: &View<'_>, found: &mut Vec<Finding>) {
    for (scope, kind) in &view.began {
        let ends = view.ended.get(scope).map_or(&[][..], |ends| ends);
        let [end] = ends else {
            found.push(format!("{scope} has {} ends: {ends:?}", ends.len()));
            continue;
        };
        if *kind != "instance" {
            continue;
        }
        let life = scope.rsplit('#').next().and_then(|life| life.parse::<usize>().ok());
        let ended_in = view.life_at(end.seq);
        let expected = match life == Some(ended_in) {
            true => ("ok", Some("completed")),
            false => ("abandoned", Some("crashed")),
        };
        // Its parent was given up while it started.
        let started = run.given_up.is_some() && end.reason == Some("startup_failed");
        if (end.outcome, end.reason) != expected && !started {
            found.push(format!(
                "{scope} ended in life {ended_in} as {} ({:?}), and should have as {expected:?}",
                end.outcome, end.reason
            ));
        }
    }
    for (scope, ends) in &view.ended {
        if !view.began.contains_key(scope) {
            found.push(format!("{scope} never began, and ended: {ends:?}"));
        }
    }
    let others = |view: &View<'_>| -> BTreeMap<String, String> {
        let ended = view.ended.iter().filter(|(scope, _)| !scope.starts_with("instance:"));
        ended.map(|(scope, ends)| ((*scope).to_owned(), ends[0].outcome.to_owned())).collect()
    };
    let (now, then) = (others(view), others(&run.undisturbed()));
    for (scope, outcome) in &now {
        let expected = then.get(scope);
        let given_up = run.given_up.is_some_and(|as_what| as_what.as_str() == outcome);
        if expected != Some(outcome) && !given_up {
            found.push(format!("{scope} ended as {outcome}; undisturbed it is {expected:?}"));
        }
    }
    if run.given_up.is_none() {
        let missing = then.keys().filter(|scope| !now.contains_key(*scope));
        found.extend(missing.map(|scope| format!("{scope} never ended; undisturbed it does")));
    }
}

/// Whatever was killed, it came to the same: the same steps, with the same inputs and results.
pub(super) fn came_to_the_same(run: &Run<'_>, view: &View<'_>, found: &mut Vec<Finding>) {
    let asked: BTreeSet<_> = run
        .after
        .questions
        .iter()
        .filter(|question| question.is_of_unknown_outcome())
        .map(|question| question.id.as_str())
        .collect();
    // What a person allowed to be done again is said on record too.
    let is_again = |key: &StepKey| &*key.kind == "intent" && key.name.ends_with("/again");
    let again = view.steps.iter().filter(|step| is_again(step.key));
    let extra: BTreeSet<&str> = asked.into_iter().chain(again.map(|step| &*step.id)).collect();
    let undisturbed = run.undisturbed();
    let (now, then) = (view.common(&extra), undisturbed.common(&BTreeSet::new()));
    for (place, step) in &now {
        let Some(expected) = then.get(place) else {
            let is_end = run.given_up.is_some() && step.key.is_end();
            if !is_end {
                found.push(format!("step {} is on record; the undisturbed run has none", step.key));
            }
            continue;
        };
        if run.given_up.is_some() && step.key.is_end() {
            continue;
        }
        if step.key.input != expected.key.input {
            found.push(format!("step {} was taken with another input", step.key));
        }
        let (value, expected) = (value_of(step), value_of(expected));
        if value != expected {
            let (value, expected) = (short(&value), short(&expected));
            found.push(format!("step {} came to {value}; undisturbed it is {expected}", step.key));
        }
    }
    if run.given_up.is_some() {
        return;
    }
    for (place, step) in then {
        if !now.contains_key(&place) {
            found.push(format!("step {} is not on record; the undisturbed run has it", step.key));
        }
    }
}

/// The run is over, as it should be.
pub(super) fn is_over(run: &Run<'_>, found: &mut Vec<Finding>) {
    let Recorded { status, outcome, output, error, .. } = run.after;
    let expected = run.baseline;
    if status != "ended" {
        found.push(format!("the run is {status}: {error:?}"));
    } else if run.given_up.is_some() {
        let ends = *outcome == run.given_up
            || (*outcome == expected.outcome && *output == expected.output);
        if !ends {
            found.push(format!("it was given up, and ended as {outcome:?} with {output:?}"));
        }
    } else if (outcome, output) != (&expected.outcome, &expected.output) {
        found.push(format!(
            "it ended as {outcome:?} with {output:?} ({error:?}); undisturbed it is {:?} with {:?}",
            expected.outcome, expected.output
        ));
    }
    for question in &run.after.questions {
        let answers = run.after.entries.iter().filter(|entry| {
            entry.of == "ask.answered" && entry.data["ask"].as_str() == Some(&question.id)
        });
        let answers = answers.count();
        if answers != 1 || question.answer.is_none() {
            found.push(format!("question {} was decided {answers} times", question.id));
        }
    }
}

/// In a run that was given up whoever began before gets its end: what is on record of a begin has
/// an end of the same hook on record.
pub(super) fn begins_have_ends(view: &View<'_>, found: &mut Vec<Finding>) {
    const PAIRS: [(&str, &str); 2] =
        [("before_agent", "after_agent"), ("before_chat", "after_chat")];
    for (begin, end) in PAIRS {
        let of = |kind: &str| -> BTreeSet<(String, String)> {
            let steps = view.steps.iter().filter(|step| &*step.key.kind == kind);
            steps.map(|step| (step.key.path.to_string(), step.key.name.to_string())).collect()
        };
        let ends = of(end);
        for (path, hook) in of(begin) {
            // The hook that asks the person has no end; it has only a begin.
            if hook != "ask_person" && !ends.contains(&(path.clone(), hook.clone())) {
                found.push(format!("{begin} of {hook} at `{path}` is on record, {end} is not"));
            }
        }
    }
}

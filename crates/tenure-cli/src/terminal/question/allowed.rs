//! The decisions that a question allows.

use serde_json::Value;
use tenure_core::ask::Answer;

type Decision = (&'static str, &'static str, &'static str, &'static str);

/// Every decision there is: its name, how it is offered, its key, and what it does.
const DECISIONS: [Decision; 4] = [
    ("approve", "[a]pprove", "a", "do exactly this"),
    ("edit", "[e]dit", "e", "change it first; you see the change and confirm it"),
    ("reject", "[r]eject", "r", "do not do it; the agent is told why"),
    ("respond", "re[s]pond", "s", "do not do it; the agent gets your words as the result"),
];

/// What may be decided about an action: everything, unless the question's form has a list
/// (`allowed_decisions`).
pub(crate) struct Allowed([bool; DECISIONS.len()]);

impl Allowed {
    /// What the form of a question allows. A list without any decision that there is allows all of
    /// them: it is not about decisions.
    pub(crate) fn of(form: Option<&Value>) -> Self {
        let listed = form.and_then(|form| form.get("allowed_decisions")).and_then(Value::as_array);
        let Some(listed) = listed else { return Self([true; DECISIONS.len()]) };
        let allowed = DECISIONS.map(|(name, ..)| listed.iter().any(|it| it == name));
        Self(if allowed.contains(&true) { allowed } else { [true; DECISIONS.len()] })
    }

    fn these(&self) -> impl Iterator<Item = &'static Decision> {
        DECISIONS.iter().zip(self.0).filter(|(_, is_allowed)| *is_allowed).map(|(it, _)| it)
    }

    /// Whether a decision may be made, by its name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.these().any(|(it, ..)| *it == name)
    }

    /// Why an answer does not count, if it does not.
    pub(crate) fn refusal(&self, answer: &Answer) -> Option<String> {
        let name = answer.name();
        (!self.has(name))
            .then(|| format!("`{name}` is not allowed here; allowed: {}", self.names()))
    }

    /// The names of what may be decided: `approve, edit or reject`.
    pub(crate) fn names(&self) -> String {
        listed(self.these().map(|(name, ..)| *name))
    }

    /// What may be typed, in words.
    pub(super) fn keys(&self, more: Option<&'static str>) -> String {
        listed(self.these().map(|(_, _, key, _)| *key).chain(more))
    }

    /// The decisions as they are offered.
    pub(crate) fn choices(&self) -> String {
        self.these().map(|(_, offered, ..)| format!("  {offered}")).collect()
    }

    /// What each of them does.
    pub(super) fn meanings(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.these().map(|(name, _, _, meaning)| (*name, *meaning))
    }

    /// The decision that was typed, by its name or its key.
    pub(super) fn typed(&self, typed: &str) -> Option<&'static str> {
        self.these().find(|(name, _, key, _)| *name == typed || *key == typed).map(|(it, ..)| *it)
    }
}

/// `a, b or c`.
fn listed(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<_> = names.collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_lists_what_may_be_decided() {
        let form = json!({ "allowed_decisions": ["reject", "approve"] });
        let allowed = Allowed::of(Some(&form));
        assert_eq!(allowed.names(), "approve or reject");
        assert_eq!(allowed.choices(), "  [a]pprove  [r]eject");
        assert_eq!(allowed.refusal(&Answer::Approve), None);
        let why = allowed.refusal(&Answer::Respond("x".into()));
        let expected = "`respond` is not allowed here; allowed: approve or reject";
        assert_eq!(why.as_deref(), Some(expected));
        assert_eq!(allowed.typed("s"), None);
        assert_eq!(allowed.typed("r"), Some("reject"));
    }

    #[test]
    fn without_a_list_everything_may_be_decided() {
        for form in [None, Some(json!({})), Some(json!({ "allowed_decisions": ["x"] }))] {
            let allowed = Allowed::of(form.as_ref());
            assert_eq!(allowed.names(), "approve, edit, reject or respond");
            assert_eq!(allowed.refusal(&Answer::Edit(json!({}))), None);
        }
    }
}

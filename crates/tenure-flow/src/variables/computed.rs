//! Variables that follow from others: their expressions, and the order in which they follow.

use super::{Computed, Definition, Kind, Problem, Source};
use crate::route::handoff::without_marks;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tenure_cards::hook::Condition;
use tenure_core::chat::Chat;

/// A computed variable, compiled.
pub(super) struct Formula {
    pub(super) name: String,
    expression: Condition,
    /// What it sees.
    pub(super) inputs: BTreeSet<String>,
    kind: Kind,
}

impl Formula {
    pub(super) fn value(&self, variables: &BTreeMap<String, Value>) -> Result<Value, String> {
        let lookup = |name: &str| match self.inputs.contains(name) {
            true => Some(variables.get(name).cloned().unwrap_or_default()),
            false => None,
        };
        let value = self.expression.value_where(lookup)?;
        self.kind.check(&value)?;
        Ok(value)
    }
}

/// Compiles the computed variables, in an order in which each comes after those it needs.
pub(super) fn compile(definitions: &[Definition], problems: &mut Vec<Problem>) -> Vec<Formula> {
    let names: BTreeSet<&str> = definitions.iter().map(|it| it.name.as_str()).collect();
    let mut formulas = Vec::new();
    for definition in definitions {
        if let Source::Computed(computed) = &definition.source
            && let Some(formula) = formula(definition, computed, &names, problems)
        {
            formulas.push(formula);
        }
    }
    in_order(formulas, problems)
}

fn formula(
    definition: &Definition,
    computed: &Computed,
    names: &BTreeSet<&str>,
    problems: &mut Vec<Problem>,
) -> Option<Formula> {
    let name = &definition.name;
    let text = computed.computation.trim();
    let mut wrong = |field, message: String, help: String| {
        problems.push(Problem::new(name, field, message, help));
    };
    if text.is_empty() {
        let help = "write an expression such as `price * count`".to_owned();
        wrong("source.computation", "the computation is empty".to_owned(), help);
        return None;
    }
    if let Some((file, function)) = text.split_once(':')
        && file.ends_with(".py")
        && !function.contains(char::is_whitespace)
    {
        let message = format!("`{text}` is a function; a computation is an expression");
        let help = "write an expression such as `price * count`, or set a state variable from a \
                    before_agent lifecycle tool"
            .to_owned();
        wrong("source.computation", message, help);
        return None;
    }
    let expression = match without_marks(text).and_then(|plain| Condition::compile(&plain)) {
        Ok(expression) => expression,
        Err(error) => {
            let message = format!("the computation `{text}` cannot be read: {error}");
            let help = "write an expression such as `price * count`".to_owned();
            wrong("source.computation", message, help);
            return None;
        }
    };
    let mentions: BTreeSet<String> = expression.mentions().map(str::to_owned).collect();
    let declares_inputs = !computed.inputs.is_empty();
    let inputs: BTreeSet<String> = match declares_inputs {
        true => computed.inputs.iter().cloned().collect(),
        false => mentions.clone(),
    };
    let mut is_good = true;
    let is_known = |it: &str| names.contains(it) || Chat::system_keys().contains(&it);
    for input in inputs.iter().filter(|input| !is_known(input)) {
        let field = if declares_inputs { "source.inputs" } else { "source.computation" };
        let message = format!("it is computed from `{input}`, which is not declared");
        wrong(field, message, near(input, names));
        is_good = false;
    }
    for name in mentions.iter().filter(|it| declares_inputs && !inputs.contains(*it)) {
        let message = format!("the computation mentions `{name}`, which is not among its inputs");
        wrong("source.inputs", message, format!("add `{name}` to the inputs"));
        is_good = false;
    }
    let kind = computed.output_type.unwrap_or(definition.kind);
    let both = (kind, definition.kind);
    if kind != definition.kind
        && !matches!(definition.kind, Kind::Any | Kind::Json)
        && both != (Kind::Int, Kind::Float)
    {
        let message = format!(
            "its output_type is {kind}, but the variable is declared as {}",
            definition.kind
        );
        wrong("source.output_type", message, "leave output_type out".to_owned());
        is_good = false;
    }
    is_good.then(|| Formula { name: name.clone(), expression, inputs, kind })
}

/// What to do about a name that is not declared.
pub(super) fn near(name: &str, names: &BTreeSet<&str>) -> String {
    match tenure_cards::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare `{name}`"),
    }
}

/// Sorts by need. Those of a circle are reported, and left out.
fn in_order(mut rest: Vec<Formula>, problems: &mut Vec<Problem>) -> Vec<Formula> {
    let mut sorted: Vec<Formula> = Vec::new();
    loop {
        let waiting: BTreeSet<String> = rest.iter().map(|it| it.name.clone()).collect();
        let (ready, later): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|it| it.inputs.is_disjoint(&waiting));
        if ready.is_empty() {
            report_circles(&later, problems);
            return sorted;
        }
        sorted.extend(ready);
        if later.is_empty() {
            return sorted;
        }
        rest = later;
    }
}

/// Follows needs until one comes again; what only leads to a circle is none.
fn report_circles(rest: &[Formula], problems: &mut Vec<Problem>) {
    let mut told = BTreeSet::new();
    for start in rest {
        let mut path = vec![start.name.as_str()];
        let mut at = start;
        while let Some(next) = rest.iter().find(|it| at.inputs.contains(&it.name)) {
            if let Some(first) = path.iter().position(|it| *it == next.name) {
                let circle = &path[first..];
                if circle.iter().all(|it| told.insert((*it).to_owned())) {
                    let mut shown: Vec<_> = circle.iter().map(|it| format!("`{it}`")).collect();
                    shown.push(format!("`{}`", circle[0]));
                    let message = format!("it needs itself: {}", shown.join(" needs "));
                    let help = "compute one of them from something else";
                    problems.push(Problem::new(circle[0], "source.computation", message, help));
                }
                break;
            }
            path.push(&next.name);
            at = next;
        }
    }
}

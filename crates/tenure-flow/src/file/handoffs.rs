//! The file `handoffs`, in its three shapes.

use super::part::{Folder, Part, declared, head, unknown_fields};
use super::said::Said;
use super::scope::Visible;
use super::team::Team;
use crate::route::Target;
use crate::route::handoff::{Condition, HandoffKind, HandoffRule, ModelCondition, Scope, Source};
use std::collections::HashMap;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Reader, SpecScope, present};
use tenure_cards::source::{Node, Span, Value};

const FIELDS: &[&str] = &[
    "source_agent",
    "target_agent",
    "handoff_type",
    "condition_type",
    "condition_scope",
    "condition",
    "transition_target",
    "description",
];
const SHORT_FIELDS: &[&str] = &["from", "to", "trigger", "description", "conditions"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    AfterWork,
    Condition,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Judge {
    Expression,
    Model,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leads {
    Agent,
    User,
    End,
}

const TYPES: &[(&str, Type)] = &[("after_work", Type::AfterWork), ("condition", Type::Condition)];
const JUDGES: &[(&str, Judge)] = &[("expression", Judge::Expression), ("string_llm", Judge::Model)];
const SCOPES: &[(&str, Scope)] =
    &[("pre", Scope::Pre), ("after", Scope::Post), ("post", Scope::Post)];
const LEADS: &[(&str, Leads)] = &[
    ("AgentTarget", Leads::Agent),
    ("AgentNameTarget", Leads::Agent),
    ("RevertToUserTarget", Leads::User),
    ("TerminateTarget", Leads::End),
];

/// Reads the rules. `said` takes the words that rules wait for, `visible` the variables.
pub(super) fn read(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    team: &Team,
    said: &mut Said,
    visible: &Visible,
) -> Vec<HandoffRule> {
    let Some((items, field)) = rules(folder, part) else { return Vec::new() };
    let mut found: Vec<Placed> = Vec::new();
    for (at, node) in items.iter().enumerate() {
        let text = |name: &str| node.field(name).and_then(Node::text).map(str::trim);
        let source = text("source_agent").or_else(|| text("from"));
        let target = text("target_agent").or_else(|| text("to"));
        let label = match (source, target) {
            (Some(source), Some(target)) => format!("{field}[{at}] `{source} -> {target}`"),
            _ => format!("{field}[{at}]"),
        };
        let rule = folder.entry(&part.source, &label, |scope| {
            if node.map().is_none() {
                scope.reader.wrong_kind("a handoff", "a mapping", node);
                return None;
            }
            let short = node.field("from").is_some() || node.field("to").is_some();
            match short {
                true => short_rule(node, scope, team, said, visible),
                false => rule(node, scope, team, visible),
            }
        });
        let rule = rule.map(|rule| rule.declared(declared(&part.source, head(node))));
        found.extend(rule.map(|rule| Placed { rule, span: head(node), label }));
    }
    overridden(folder, part, &found);
    found.into_iter().map(|it| it.rule).collect()
}

/// A rule with its place.
struct Placed {
    rule: HandoffRule,
    span: Span,
    label: String,
}

/// Warns of rules without a condition behind which the same source has another: the last counts.
fn overridden(folder: &mut Folder<'_, '_>, part: &Part, rules: &[Placed]) {
    let mut last: HashMap<&Source, &Placed> = HashMap::new();
    let always = rules.iter().filter(|it| it.rule.kind == HandoffKind::After);
    for placed in always.rev() {
        let source = &placed.rule.source;
        let Some(later) = last.get(source) else {
            last.insert(source, placed);
            continue;
        };
        let line = part.source.line_col(later.span.start as usize).line;
        folder.entry(&part.source, &placed.label, |scope| {
            let message = format!(
                "this handoff never happens: of those of `{source}` without a condition the last \
                 counts, and that is the one on line {line}"
            );
            let help =
                "remove one of the two, or write `handoff_type: condition` with a `condition`";
            scope.reader.problem_help(Code::UnusedHandoffs, placed.span, message, help);
        });
    }
}

/// The list of rules, wherever the shape has it, and what it is called.
fn rules<'p>(folder: &mut Folder<'_, '_>, part: &'p Part) -> Option<(&'p [Node], &'static str)> {
    let tree = &part.tree;
    folder.entry(&part.source, "", |scope| {
        let reader = &mut *scope.reader;
        let (holder, list, field) = match (&tree.value, tree.field("handoffs")) {
            (Value::List(_), _) => (None, tree, "handoffs"),
            (_, Some(inner)) if inner.map().is_some() => {
                unknown_fields(reader, tree, "the file", &["handoffs"]);
                (Some(inner), inner.field("handoff_rules")?, "handoff_rules")
            }
            (_, Some(list)) => (Some(tree), list, "handoffs"),
            (_, None) => {
                unknown_fields(reader, tree, "the file", &["handoff_rules"]);
                (None, tree.field("handoff_rules")?, "handoff_rules")
            }
        };
        if let Some(holder) = holder {
            unknown_fields(reader, holder, "the file", &[field]);
        }
        if list.value == Value::Null {
            return None;
        }
        if list.list().is_none() {
            reader.wrong_kind(field, "a list of handoffs", list);
        }
        list.list().map(|items| (items, field))
    })
}

/// Both ends of a rule.
fn ends(
    node: &Node,
    reader: &mut Reader<'_>,
    team: &Team,
    names: [&str; 2],
) -> (Option<Source>, Option<(Target, Span)>) {
    let mut said = names.map(|field| {
        let place = present(node, field);
        if place.is_none() {
            let span = node.entry(field).map_or(head(node), |(key, _)| key.span);
            let message = format!("this handoff has no `{field}`");
            let help = format!("add `{field}`, the name of an agent or `user`");
            reader.problem_help(Code::MissingField, span, message, help);
        }
        place.and_then(|place| Some((reader.words_of(field, place)?, place.span)))
    });
    let source = said[0].take().and_then(|(name, span)| {
        let who = format!("`{}`", names[0]);
        match team.target(name.trim(), span, &who, reader)? {
            Target::Agent(name) => Some(Source::Agent(name)),
            Target::User => Some(Source::User),
            Target::End => {
                let message = "nobody hands over when the chat is over";
                let help = "name an agent or `user`";
                reader.problem_help(Code::BadHandoff, span, message, help);
                None
            }
        }
    });
    let target = said[1].take().and_then(|(name, span)| {
        let who = format!("`{}`", names[1]);
        Some((team.target(name.trim(), span, &who, reader)?, span))
    });
    (source, target)
}

fn rule(
    node: &Node,
    scope: &mut SpecScope<'_, '_>,
    team: &Team,
    visible: &Visible,
) -> Option<HandoffRule> {
    let reader = &mut *scope.reader;
    let errors = reader.report.errors();
    unknown_fields(reader, node, "a handoff", FIELDS);
    let (source, target) = ends(node, reader, team, ["source_agent", "target_agent"]);
    let kind = reader.one_of(node, "handoff_type", TYPES).unwrap_or(Type::AfterWork);
    let judge = reader.one_of(node, "condition_type", JUDGES);
    let when = reader.one_of(node, "condition_scope", SCOPES);
    let leads = reader.one_of(node, "transition_target", LEADS);
    let description = reader.words(node, "description");
    if let (Some(leads), Some((target, span))) = (leads, &target) {
        let expected = match target {
            Target::Agent(_) => Leads::Agent,
            Target::User => Leads::User,
            Target::End => Leads::End,
        };
        if leads != expected {
            let name = |leads: Leads| LEADS.iter().find(|it| it.1 == leads).map_or("", |it| it.0);
            let place = node.field("transition_target").map_or(*span, |it| it.span);
            let message = format!(
                "`transition_target` is {}, but `target_agent` leads to {target}",
                name(leads)
            );
            let help = format!("write `{}`, or another `target_agent`", name(expected));
            reader.problem_help(Code::BadHandoff, place, message, help);
        }
    }
    let condition = present(node, "condition").and_then(|place| {
        let text = reader.text_of("condition", place)?;
        (!text.trim().is_empty()).then_some((text, place.span))
    });
    let kind = match (kind, condition) {
        (Type::AfterWork, None) => {
            if when == Some(Scope::Pre) {
                let span = node.field("condition_scope").map_or(node.span, |it| it.span);
                let message = "`condition_scope: pre` needs a condition, and this has none";
                let help = "write `handoff_type: condition` with a `condition`, or remove it";
                reader.problem_help(Code::BadHandoff, span, message, help);
            }
            Some(HandoffKind::After)
        }
        (Type::AfterWork, Some((_, span))) => {
            let message = "an `after_work` handoff happens without a condition, and here is one";
            let help = "write `handoff_type: condition`, or remove `condition`";
            reader.problem_help(Code::BadHandoff, span, message, help);
            None
        }
        (Type::Condition, None) => {
            let span = node.entry("condition").map_or(head(node), |(key, _)| key.span);
            let message = "this handoff waits for a condition, and there is none";
            let help = "add `condition`, or write `handoff_type: after_work`";
            reader.problem_help(Code::BadHandoff, span, message, help);
            None
        }
        (Type::Condition, Some((text, span))) => {
            let guessed = if text.contains("${") { Judge::Expression } else { Judge::Model };
            let judge = judge.unwrap_or(guessed);
            condition_of(&text, span, judge, when.unwrap_or_default(), reader, visible)
        }
    };
    let mut rule = HandoffRule::new(source?, target?.0, kind?);
    rule.description = description.map(|it| it.trim().to_owned());
    (reader.report.errors() == errors).then_some(rule)
}

fn condition_of(
    text: &str,
    span: Span,
    judge: Judge,
    scope: Scope,
    reader: &mut Reader<'_>,
    visible: &Visible,
) -> Option<HandoffKind> {
    let failed = |reader: &mut Reader<'_>, why: &str| {
        let why = why.split(" (in <expression>").next().unwrap_or(why);
        let message = format!("the condition cannot be used: {why}");
        let help = match judge {
            Judge::Expression => "write an expression such as `${approved} == True`",
            Judge::Model => "say in plain words when it holds",
        };
        reader.problem_help(Code::BadCondition, span, message, help);
    };
    match judge {
        Judge::Expression => match Condition::compile(text) {
            Ok(condition) => {
                let names: Vec<&str> = condition.variables().collect();
                visible.check(&names, span, text, reader);
                Some(HandoffKind::Expression { condition, scope })
            }
            Err(why) => {
                failed(reader, &why);
                None
            }
        },
        Judge::Model if scope == Scope::Pre => {
            let message = "a model judges what was said, and `pre` comes before that";
            let help = "write an expression, or remove `condition_scope`";
            reader.problem_help(Code::BadHandoff, span, message, help);
            None
        }
        Judge::Model => match ModelCondition::new(text) {
            Ok(condition) => {
                visible.check(&condition.variables(), span, text, reader);
                Some(HandoffKind::Model { condition })
            }
            Err(why) => {
                failed(reader, &why);
                None
            }
        },
    }
}

/// The shape with `from` and `to`: `trigger` is a word that the agent ends with, `conditions` are
/// expressions that all have to hold.
fn short_rule(
    node: &Node,
    scope: &mut SpecScope<'_, '_>,
    team: &Team,
    said: &mut Said,
    visible: &Visible,
) -> Option<HandoffRule> {
    let reader = &mut *scope.reader;
    let errors = reader.report.errors();
    unknown_fields(reader, node, "a handoff with `from` and `to`", SHORT_FIELDS);
    let (source, target) = ends(node, reader, team, ["from", "to"]);
    let description = reader.words(node, "description");
    let word = reader.words(node, "trigger").map(|word| word.trim().to_owned());
    let mut parts: Vec<String> = Vec::new();
    let conditions = match present(node, "conditions") {
        Some(place) if place.text().is_some() => {
            reader.words_of("conditions", place).map(|it| vec![(it, place.span)])
        }
        Some(place) => reader.texts_of("conditions", place),
        None => None,
    };
    for (text, span) in conditions.into_iter().flatten() {
        let plain = translated(&text);
        match Condition::compile(&plain) {
            Ok(condition) => {
                let names: Vec<&str> = condition.variables().collect();
                visible.check(&names, span, &text, reader);
                parts.push(format!("({plain})"));
            }
            Err(why) => {
                let why = why.split(" (in <expression>").next().unwrap_or(&why);
                let message = format!("the condition cannot be used: {why}");
                let help = "write an expression such as `approved == True`";
                reader.problem_help(Code::BadCondition, span, message, help);
            }
        }
    }
    let source = source?;
    if let Some(word) = word {
        match &source {
            Source::Agent(agent) => parts.insert(0, said.variable(agent, &word, visible)),
            Source::User => {
                let span = node.field("trigger").map_or(node.span, |it| it.span);
                let message = "`trigger` is a word that an agent says, and this is the user";
                let help = "remove `trigger`, or write `conditions`";
                reader.problem_help(Code::BadHandoff, span, message, help);
            }
        }
    }
    if reader.report.errors() != errors {
        return None;
    }
    let rule = match parts.as_slice() {
        [] => HandoffRule::after(source, target?.0),
        parts => HandoffRule::when(source, target?.0, &parts.join(" and ")).ok()?,
    };
    Some(match description {
        Some(description) => rule.described(description.trim()),
        None => rule,
    })
}

/// An expression in the one language: `context_variables.x is not null` is `x is not none`.
fn translated(text: &str) -> String {
    let text = text.replace("context_variables.", "");
    text.replace("is not null", "is not none").replace("is null", "is none")
}
